#pragma once

#include <chrono>
#include <cstddef>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>

#include "daemon/service/due_lanes.h"
#include "store/conversation/calls.h"
#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/keyed_hash.h"

namespace conversed::daemon {

struct CallQueueLimits {
  // Calls that have begun and whose mark is not known yet. A project has a quarter at most.
  std::size_t in_hand = 4'096;
  std::size_t lanes = 4'096;      // in memory. A project has a quarter at most.
  std::size_t requests = 512;     // under way at once; searches are not counted
  std::size_t per_upstream = 16;  // under way at once to one host and port
  std::size_t per_project = 24;   // under way at once
  // At once: one runs and one waits, so that projects take turns.
  std::size_t searches = 2;
  // Processes of scripts at once. A project has half of them at most.
  std::size_t scripts = 4;
};

// Chooses the lane to read next, and knows the calls in hand. A lane is the calls of one project to
// one target; lanes take turns, so that no upstream or project delays another. A call is *in hand*
// until the commit that marks its row is known, so that it is not read twice. Does no I/O. One
// thread.
// Kept by: CallQueue.ProjectsTakeTurnsAtAnUpstream, CallQueue.AProjectIsBoundOverAllUpstreams,
// CallQueue.SlotsAndIdsInHandAreCountedApart, CallQueue.AProjectHasHalfOfTheScripts.
class CallQueue {
 public:
  struct Lane : DueLane<store::Calls::Due> {
    std::string project_id;
    std::string target;
    std::string upstream;  // calls to one upstream share its limit
    std::size_t under_way = 0;
  };
  struct Call {
    model::PendingCall pending;
    int attempts = 0;  // failed tries
    Lane* lane = nullptr;
    std::optional<model::Event> result;  // to be appended
    bool under_way = false;
    std::optional<store::ReceiptMark> row{};        // of its last try, written with the next mark
    std::chrono::steady_clock::time_point began{};  // of the present attempt
  };

  explicit CallQueue(const CallQueueLimits& limits) : limits_(limits) {}
  CallQueue(const CallQueue&) = delete;
  CallQueue& operator=(const CallQueue&) = delete;

  // --- Lanes. All times are by the clock of timers. ---------------------------------------------
  [[nodiscard]] Lane* find_lane(const std::string& project_id, const std::string& target);
  // Adds a lane. Null: there is no room, and a later look has to find its calls.
  [[nodiscard]] Lane* add_lane(const std::string& project_id, const std::string& target,
                               const std::string& upstream);
  [[nodiscard]] bool is_full(const std::string& project_id) const;
  // Whether `add_lane` had no room and there is room now. The call resets it.
  [[nodiscard]] bool wants_look();
  // The lane may have a call that is due at `due`.
  void wake(Lane& lane, model::Timestamp due) { turns_.wake(lane, due); }

  // The lane to read next. Null: no lane is due, or no due lane has room.
  [[nodiscard]] Lane* next(model::Timestamp now);
  // How many more calls of the lane may begin now.
  [[nodiscard]] std::size_t room(const Lane& lane) const;
  // Notes that all due calls of the lane have been read. `next_due`: of the first call that is not
  // due.
  void read_all(Lane& lane, std::optional<model::Timestamp> next_due);
  [[nodiscard]] std::optional<model::Timestamp> next_due() const { return turns_.next_due(); }

  // --- In hand ----------------------------------------------------------------------------------
  [[nodiscard]] bool has(const std::string& id) const { return calls_.contains(id); }
  [[nodiscard]] Call& at(const std::string& id) { return calls_.at(id); }
  // Takes the call in hand. It counts as under way from now on.
  [[nodiscard]] Call& take(Lane& lane, store::Calls::Found found);
  void landed(Call& call);
  // The call is no longer in hand. `due`: when to read its row again; none: it has ended.
  void release(const std::string& id, std::optional<model::Timestamp> due);

  [[nodiscard]] bool quiet() const { return calls_.empty() && turns_.in_turn() == 0; }

 private:
  using Key = std::pair<std::string, std::string>;  // project and target
  struct Project {
    std::size_t lanes = 0;
    std::size_t in_hand = 0;
    std::size_t under_way = 0;
  };
  void drop_if_idle(Lane& lane);

  const CallQueueLimits limits_;
  std::map<Key, Lane> lanes_;
  std::unordered_map<std::string, Project> projects_;       // with lanes
  std::unordered_map<std::string, std::size_t> upstreams_;  // calls under way; no entry for none
  std::unordered_map<std::string, Call, model::KeyedHash, std::equal_to<>> calls_;  // by id
  DueLanes<Lane> turns_;
  std::size_t requests_ = 0;  // under way
  bool passed_over_ = false;  // a lane had no room
};

}  // namespace conversed::daemon
