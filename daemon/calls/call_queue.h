#pragma once

#include <cstddef>
#include <cstdint>
#include <deque>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "store/conversation/calls.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/keyed_hash.h"

namespace conversed::daemon {

struct CallQueueLimits {
  std::size_t in_hand = 4'096;    // calls; a project has a quarter at most
  std::size_t lanes = 4'096;      // known at once; likewise
  std::size_t requests = 512;     // under way at once; searches are not counted
  std::size_t per_upstream = 16;  // under way at once
  std::size_t per_project = 24;   // likewise
  std::size_t searches = 2;       // likewise
};

// Chooses the calls to make next, and knows the calls in hand. The calls themselves are in the
// store; a lane is the calls of one project to one target. The Caller reads the next due calls of
// the chosen lane. A call is *in hand* until the commit that marks its row is known, so that it is
// not read twice. Lanes take turns, so that no upstream or project delays another. Does no I/O. One
// thread.
// Kept by: CallQueue.ProjectsTakeTurnsAtAnUpstream, CallQueue.AProjectIsBoundOverAllUpstreams,
// CallQueue.SlotsAndIdsInHandAreCountedApart.
class CallQueue {
 public:
  // When a wait ends, and its number: of those that end together the first to begin comes first.
  using Place = std::pair<model::Timestamp, std::uint64_t>;

  struct Lane {
    std::string project_id;
    std::string target;
    std::string upstream;                 // calls to one of these share its limit
    std::optional<model::Timestamp> due;  // when to read its calls; none: not before it is woken
    // Calls up to here have been looked at; none: the next read begins with the longest due.
    std::optional<store::Calls::Due> read_up_to;
    bool read_again = false;  // from the beginning, once the end has been reached
    bool in_turn = false;     // in `turns_`; else in `waiting_`, if it has a `due`
    Place place{};            // in `waiting_`
    std::size_t in_hand = 0;
  };
  struct Call {
    model::PendingCall pending;
    int attempts = 0;  // tries that have failed
    Lane* lane = nullptr;
    std::optional<model::Event> result;  // made; to be appended
    bool under_way = false;
  };

  explicit CallQueue(const CallQueueLimits& limits) : limits_(limits) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // --- Lanes. All times are by the clock of timers. ---------------------------------------------
  [[nodiscard]] Lane* find_lane(const std::string& project_id, const std::string& target);
  // One that is not known yet; null: there is no room for it, and a later look has to find it.
  [[nodiscard]] Lane* add_lane(const std::string& project_id, const std::string& target,
                               const std::string& upstream);
  // Whether the project has as many lanes as it may have.
  [[nodiscard]] bool is_full(const std::string& project_id) const;
  // Lanes had no room, and there is some now. Asked once for each time.
  [[nodiscard]] bool wants_look();
  // The lane may have a call that is due by then.
  void wake(Lane& lane, model::Timestamp due);

  // The lane whose calls are to be read next; null: none, or there is no room for any.
  [[nodiscard]] Lane* next(model::Timestamp now);
  // How many more of its calls may begin now.
  [[nodiscard]] std::size_t room(const Lane& lane) const;
  // All calls that are due have been looked at; `next_due`: the first that is not.
  void read_all(Lane& lane, std::optional<model::Timestamp> next_due);
  [[nodiscard]] std::optional<model::Timestamp> next_due() const;

  // --- In hand ----------------------------------------------------------------------------------
  [[nodiscard]] bool has(const std::string& id) const { return calls_.contains(id); }
  [[nodiscard]] Call& at(const std::string& id) { return calls_.at(id); }
  // It is under way from now on.
  [[nodiscard]] Call& take(Lane& lane, store::Calls::Found found);
  void landed(Call& call);
  // `due`: when the lane has to be read for it again; none: it is over.
  void release(const std::string& id, std::optional<model::Timestamp> due);

  // Nothing is in hand or due.
  [[nodiscard]] bool quiet() const { return calls_.empty() && turns_.empty(); }

 private:
  using Key = std::pair<std::string, std::string>;  // project and target
  struct Project {
    std::size_t lanes = 0;
    std::size_t in_hand = 0;
    std::size_t under_way = 0;
  };
  void wait(Lane& lane);
  void drop_if_idle(Lane& lane);

  const CallQueueLimits limits_;
  std::map<Key, Lane> lanes_;
  std::unordered_map<std::string, Project> projects_;       // those with lanes
  std::unordered_map<std::string, std::size_t> upstreams_;  // calls under way, if there are any
  std::unordered_map<std::string, Call, model::KeyedHash, std::equal_to<>> calls_;  // by id
  std::deque<Lane*> turns_;  // those with something due, the next one first
  std::map<Place, Lane*> waiting_;
  std::uint64_t waits_ = 0;   // so far
  std::size_t requests_ = 0;  // under way
  bool passed_over_ = false;  // a lane had no room
};

}  // namespace conversed::daemon
