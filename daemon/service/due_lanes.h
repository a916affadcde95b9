#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <utility>

#include "store/model/clock.h"

namespace conversed::daemon {

[[nodiscard]] inline std::size_t room_left(std::size_t all, std::size_t taken) {
  return all > taken ? all - taken : 0;
}

// The part of a lane that DueLanes needs. `Row` names the place of a row of the store.
template <typename Row>
struct DueLane {
  // The end of a wait, and its number: waits that end together end in the order in which they
  // began.
  using Place = std::pair<model::Timestamp, std::uint64_t>;

  std::optional<model::Timestamp> due;  // when to read its rows; none: wait for `wake`
  model::Timestamp not_before{};        // the earliest turn, even if `due` is earlier
  // Rows up to here have been read. None: the next read begins with the earliest due row.
  std::optional<Row> read_up_to;
  bool read_again = false;  // after the last page, read from the beginning again
  bool in_turn = false;     // false: it waits at `place` if it has a `due`
  Place place{};
  std::size_t in_hand = 0;  // rows or sessions; kept by the owner
};

// Lanes of due rows. Each lane waits for its time; then all due lanes take turns. The owner owns
// the lanes and must not move them. Times use the clock of timers. One thread.
// Kept by: DeliveryQueueTest.EndpointsTakeTurns,
// DeliveryQueueTest.WokenWhileItIsReadItIsReadFromTheBeginningAgain.
template <typename Lane>
class DueLanes {
 public:
  // The lane may have a row that is due at `due`.
  void wake(Lane& lane, model::Timestamp due) {
    if (lane.read_up_to) lane.read_again = true;
    if (lane.in_turn || (lane.due && *lane.due <= due)) return;
    waiting_.erase(lane.place);
    lane.due = due;
    wait(lane);
  }

  void put_off(Lane& lane, model::Timestamp until) {
    lane.not_before = until;
    if (lane.in_turn || !lane.due) return;  // `next` checks `not_before`
    waiting_.erase(lane.place);
    wait(lane);
  }

  // Gives turns to the lanes whose wait is over.
  void wake_due(model::Timestamp now) {
    while (!waiting_.empty() && waiting_.begin()->first.first <= now) {
      Lane& lane = *waiting_.begin()->second;
      waiting_.erase(waiting_.begin());
      lane.in_turn = true;
      turns_.push_back(&lane);
    }
  }

  // The next lane in turn that `has_room`, or null. It goes to the end of the turns.
  template <typename HasRoom>
  [[nodiscard]] Lane* next(model::Timestamp now, const HasRoom& has_room) {
    for (std::size_t tried = turns_.size(); tried > 0; --tried) {
      Lane& lane = *turns_.front();
      turns_.pop_front();
      if (lane.not_before > now) {
        wait(lane);
        continue;
      }
      turns_.push_back(&lane);
      if (has_room(lane)) return &lane;
    }
    return nullptr;
  }

  // Notes that all due rows of the lane have been read. `next_due`: of the first row that is not
  // due.
  void read_all(Lane& lane, std::optional<model::Timestamp> next_due) {
    lane.read_up_to.reset();
    if (std::exchange(lane.read_again, false)) return;
    std::erase(turns_, &lane);
    lane.due = next_due;
    wait(lane);
  }

  [[nodiscard]] std::optional<model::Timestamp> next_due() const {
    if (waiting_.empty()) return std::nullopt;
    return waiting_.begin()->first.first;
  }
  [[nodiscard]] std::size_t in_turn() const { return turns_.size(); }

 private:
  void wait(Lane& lane) {
    lane.in_turn = false;
    if (!lane.due) return;
    lane.place = {std::max(*lane.due, lane.not_before), ++waits_};
    waiting_.emplace(lane.place, &lane);
  }

  std::deque<Lane*> turns_;  // in order of their turns
  std::map<typename Lane::Place, Lane*> waiting_;
  std::uint64_t waits_ = 0;  // so far
};

}  // namespace conversed::daemon
