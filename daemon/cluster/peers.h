#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/service/service.h"
#include "daemon/service/service_thread.h"
#include "store/accounts/members.h"
#include "store/cluster/notifications.h"
#include "store/runtime/guarded.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

class TimerClock;

struct PeersSettings {
  std::string name;  // unique among the daemons that share the store
  std::vector<std::string> roles;
  std::string version;
  std::string previous_run;                   // a run that has certainly ended; may be empty
  std::chrono::milliseconds interval{1'000};  // there is a heartbeat every two intervals
  // Each of these callbacks may be empty.
  std::function<std::vector<std::int32_t>()> partitions{};  // owned by this daemon now
  std::function<void()> changed{};  // the set of live schedulers has changed
  std::function<void()> also{};     // called once per interval
  // Another daemon has taken the name, so that this one has to end.
  std::function<void(const model::Error&)> replaced{};
};

// Writes this daemon's heartbeat to the store, and knows the other daemons that share it. The clock
// of timers follows the store's clock, which each heartbeat measures. Callbacks run on its own
// thread and must not wait for it.
//
// A name belongs to one daemon. A daemon that starts under a name with a recent heartbeat waits: it
// is refused if another heartbeat follows, and takes the name after 8 s without one. After a crash
// `run/member` proves that the last run has ended, and there is no wait. A daemon whose name was
// taken while it was suspended ends. Kept by: PeersTest.ANameThatALiveDaemonHasIsRefused,
// PeersTest.TheNameOfAnEndedRunIsTakenAtOnceAndTheOldRunIsReplaced, test_members.py
// Members.test_a_second_daemon_of_the_same_name_is_refused.
//
// `mine`, `members` and `retire` are thread-safe. One thread of its own does the work.
class Peers final : public Service {
 public:
  // All must outlive it.
  Peers(PeersSettings settings, store::Store& store, TimerClock& clock);
  ~Peers() override { stop(); }

  // Joins; from then on `members` and the clock are known. `conflict`, with the name, if another
  // live daemon has the name. Waits up to store::member_lifetime to learn whether that daemon is
  // alive.
  [[nodiscard]] model::Result<void> start() override;
  // Leaves, if the store works.
  void stop() override;

  // Gives up this daemon's roles and notifies the other daemons, which take over its share at once.
  // Kept by: PeersTest.OthersTakeOverAtOnceWhenADaemonRetires.
  void retire();

  // Whether `what` belongs to this daemon's share among the live daemons with the role scheduler.
  // The shares are equal. Daemons agree on them, except for a moment after a daemon joined or left.
  // False without the role.
  [[nodiscard]] bool mine(std::string_view what) const;

  // All live daemons as of the last look, this one included.
  [[nodiscard]] std::vector<store::ClusterMember> members() const { return *seen(); }
  // The id of this daemon's run, new at each start.
  [[nodiscard]] const std::string& run() const { return self_.run; }

 private:
  using Shared = std::shared_ptr<const std::vector<store::ClusterMember>>;
  struct Letters {
    bool stop = false;
    bool retire = false;
    bool look = false;  // the members have changed
  };
  [[nodiscard]] Shared seen() const {
    return members_.with([](const Shared& members) { return members; });
  }
  [[nodiscard]] model::Result<void> join();
  void work();
  [[nodiscard]] bool try_to_beat();
  void tell_others();
  [[nodiscard]] model::Result<void> beat();

  const PeersSettings settings_;
  store::Store& store_;
  TimerClock& clock_;
  store::ClusterMember self_;  // used by the thread alone once it runs, except for constant members
  bool joined_ = false;
  bool replaced_ = false;
  std::atomic<bool> schedules_{false};
  model::Guarded<Shared> members_{std::make_shared<const std::vector<store::ClusterMember>>()};
  store::Notifications::Subscription heard_;
  ServiceThread<Letters> thread_;  // last: it uses all others
};

}  // namespace conversed::daemon
