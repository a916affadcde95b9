#pragma once

#include <array>
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

// A project has three quarters of its organization's lanes and calls under way at most.
struct CallQueueLimits {
  // Calls that have begun and whose mark is not known yet. An organization has a quarter at most.
  std::size_t in_hand = 4'096;
  std::size_t lanes = 4'096;          // in memory. An organization has a quarter at most.
  std::size_t requests = 512;         // HTTP requests under way at once
  std::size_t per_upstream = 16;      // under way at once to one host and port
  std::size_t per_organization = 24;  // calls of all kinds under way at once
  // Searches in hand: one runs and one waits. An organization has half of them at most, so that
  // organizations take turns.
  std::size_t searches = 2;
  // Processes of scripts at once. An organization has half of them at most.
  std::size_t scripts = 4;
};

// Chooses the lane to read next, and knows the calls in hand. A lane is the calls of one project to
// one target. Lanes take turns. The limits of an organization hold over all its projects, so that
// no organization, project or upstream delays another. A call is *in hand* until the commit that
// marks its row is known, so that it is not read twice. Does no I/O. One thread.
// Kept by: CallQueue.ProjectsTakeTurnsAtAnUpstream, CallQueue.AnOrganizationIsBoundOverAllProjects,
// CallQueue.AProjectIsBoundOverAllUpstreams, CallQueue.SlotsAndIdsInHandAreCountedApart,
// CallQueue.AnOrganizationHasHalfOfTheScripts, CallQueue.OrganizationsTakeTurnsAtSearches.
class CallQueue {
 public:
  // The calls of one project to one target.
  struct Name {
    std::string organisation_id;
    std::string project_id;
    std::string target;
  };
  struct Lane : DueLane<store::Calls::Due> {
    std::string organisation_id;
    std::string project_id;
    std::string target;
    std::string upstream;  // calls to one upstream share its limit
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
  [[nodiscard]] Lane* add_lane(Name name, const std::string& upstream);
  // Whether the project or its organization has all lanes of its share.
  [[nodiscard]] bool is_full(const std::string& organisation_id,
                             const std::string& project_id) const;
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
  // The part of an organization or a project.
  struct Share {
    std::size_t lanes = 0;
    std::size_t in_hand = 0;
    // Under way.
    std::size_t requests = 0;
    std::size_t searches = 0;
    std::size_t scripts = 0;

    [[nodiscard]] std::size_t under_way() const { return requests + searches + scripts; }
  };
  using Shares = std::unordered_map<std::string, Share>;  // with lanes

  [[nodiscard]] static std::size_t Share::*kind_of(const Lane& lane);
  [[nodiscard]] std::array<Share*, 2> shares_of(const Lane& lane);
  void drop_if_idle(Lane& lane);

  const CallQueueLimits limits_;
  std::map<Key, Lane> lanes_;
  Shares organizations_;
  Shares projects_;
  std::unordered_map<std::string, std::size_t> upstreams_;  // calls under way; no entry for none
  std::unordered_map<std::string, Call, model::KeyedHash, std::equal_to<>> calls_;  // by id
  DueLanes<Lane> turns_;
  std::size_t requests_ = 0;  // under way
  bool passed_over_ = false;  // a lane had no room
};

}  // namespace conversed::daemon
