#pragma once

#include <functional>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "daemon/app_front.h"
#include "daemon/app_ground.h"
#include "daemon/cluster/ownership.h"
#include "daemon/cluster/peers.h"
#include "daemon/cluster/shared_limits.h"

// For app*.cc only.
namespace conversed::daemon {

// Calls of the cluster group to the other groups.
struct ClusterPorts {
  std::function<void()> daemons_changed;  // daemons joined or left: timers are distributed anew
  std::function<void()> each_second;
  std::function<void(const model::SessionKey&)> touch;
  std::function<void(const model::SessionKey&)> deliver;
  std::function<void(const model::SessionKey&)> retry;
  std::function<void(const std::string& endpoint_id)> resume;
  std::function<void()> forget_sessions;
  std::function<void()> layout_changed;  // must not block
};

// The cluster group: the ownership of sessions, and the exchange with the other daemons through the
// store. A daemon without a cluster owns everything, and the group does nothing.
struct ClusterParts {
  // The ground and `live` must outlive it.
  ClusterParts(Ground& with, LiveParts& live, ClusterPorts told);

  // From now on receives the notifications of other daemons' commits. All groups must exist. `live`
  // must outlive it.
  void hear(LiveParts& live);
  // Joins the other daemons, under a name that no other daemon has.
  [[nodiscard]] model::Result<void> start();
  // Receives no more notifications.
  void stop_hearing();
  void stop();

  [[nodiscard]] bool is_shared() const { return peers != nullptr; }
  // Tells whether a piece of work belongs to this daemon. Empty: there is no cluster.
  [[nodiscard]] std::function<bool(std::string_view)> mine() const;
  // Of all daemons, this one included.
  [[nodiscard]] std::vector<api::MemberView> members() const;

  Ground& ground;
  const ClusterPorts ports;
  Ownership ownership;
  std::unique_ptr<SharedLimits> shared_limits;  // null without a cluster, like `peers`
  std::unique_ptr<Peers> peers;

 private:
  std::vector<store::Notifications::Subscription> heard_;
};

}  // namespace conversed::daemon
