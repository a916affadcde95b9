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
#include "store/runtime/guarded.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

class TimerClock;

struct PeersSettings {
  std::string name;  // this daemon's, and nobody else's
  std::vector<std::string> roles;
  std::string version;
  std::string previous_run;  // of which is known that it has ended; may be empty
  std::chrono::milliseconds interval{1'000};
  // The partitions of the log that this daemon has now. May be empty.
  std::function<std::vector<std::int32_t>()> partitions{};
  // Those who do the scheduler's work are others than before. May be empty.
  std::function<void()> changed{};
  // Once an interval, whatever the store does. May be empty.
  std::function<void()> also{};
  // Another daemon has taken the name meanwhile, so that this one has to end. May be empty.
  std::function<void(const model::Error&)> replaced{};
};

// Says again and again that this daemon is there, and knows which others share its store. The clock
// of timers follows the store's, which is measured on the way. All that it calls back is called on
// its own thread, and must not wait for it.
//
// `mine`, `members` and `retire` are thread-safe. One thread of its own does the work.
class Peers final : public Service {
 public:
  // All must outlive it.
  Peers(PeersSettings settings, store::Store& store, TimerClock& clock);
  ~Peers() override;

  // Joins; from then on `members` and the clock are known. `conflict`, naming the name, if another
  // daemon that lives has it; one that may have died is waited for until that is certain, which
  // takes as long as store::member_lifetime.
  [[nodiscard]] model::Result<void> start() override;
  // Leaves, if the store works.
  void stop() override;
  [[nodiscard]] std::string_view name() const override { return "peers"; }

  // From now on this daemon has no roles: what was shared with it is the others' at once.
  void retire();

  // Whether `what` is this daemon's to do, of all that live and have the role scheduler. They agree
  // but for a moment after one has come or gone, and each has an equal part. A daemon without the
  // role has none.
  [[nodiscard]] bool mine(std::string_view what) const;

  // All that live, as of the last look, this one included.
  [[nodiscard]] std::vector<store::ClusterMember> members() const { return *seen(); }
  // Of this daemon's start.
  [[nodiscard]] const std::string& run() const { return self_.run; }

 private:
  using Shared = std::shared_ptr<const std::vector<store::ClusterMember>>;
  struct Letters {
    bool stop = false;
    bool retire = false;
    [[nodiscard]] bool empty() const { return !stop && !retire; }
  };
  [[nodiscard]] Shared seen() const {
    return members_.with([](const Shared& members) { return members; });
  }
  [[nodiscard]] model::Result<void> join();
  void work();
  void beat();
  [[nodiscard]] model::Result<void> look();

  const PeersSettings settings_;
  store::Store& store_;
  TimerClock& clock_;
  store::ClusterMember self_;  // the thread's own once that runs, but for what never changes
  bool joined_ = false;
  bool replaced_ = false;
  std::atomic<bool> schedules_{false};
  model::Guarded<Shared> members_{std::make_shared<const std::vector<store::ClusterMember>>()};
  ServiceThread<Letters> thread_;  // last: it uses all others
};

}  // namespace conversed::daemon
