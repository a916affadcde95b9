#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>

#include "store/cluster/notifications.h"

namespace conversed::api {
class BusySessions;
class InjectQuota;
class RateLimiter;
}  // namespace conversed::api
namespace conversed::store {
class Store;
}

namespace conversed::daemon {

struct SharedLimitsSettings {
  std::string daemon;            // the name of this daemon
  std::int64_t inbox_limit = 0;  // events; an inbox with this many is full
  std::function<std::chrono::steady_clock::time_point()> steady_now = [] {
    return std::chrono::steady_clock::now();
  };
};

// The counts that daemons share. Each daemon notifies the others of the rate limits that its
// clients have spent and of the inboxes that are full, and counts its accepted injects in the
// store. The notifications are bounded: with too many spenders or full inboxes, some are sent later
// or never. While the store fails nothing is sent, and each daemon goes by its own counts.
// Kept by: PeersTest.SpentTokensAndFullInboxesAreKnownToOtherDaemons.
//
// Another daemon may erase a session and its inbox. It announces that as a change of the session's
// deliveries, as it does after a replay or drop of an output. This daemon then forgets the inbox's
// size. The next commit that changes the inbox sets the size again. Until then an inbox may take a
// few events more than its limit. Kept by:
// SharedLimitsTest.TheInboxOfASessionThatIsErasedElsewhereIsForgotten.
//
// Notifications arrive on the watch's thread; `tell` is for one thread at a time.
class SharedLimits {
 public:
  // All must outlive it.
  SharedLimits(SharedLimitsSettings settings, store::Store& store, api::RateLimiter& limiter,
               api::RateLimiter& public_limiter, api::BusySessions& busy, api::InjectQuota& quota);

  // Sends the counts. When called once a second, the others know them a second late. May wait for
  // room in the Committer.
  void tell();

 private:
  void count_accepted();
  void hear_spent(std::string_view payload);
  void hear_full(std::string_view payload);
  void hear_deliver(std::string_view session);

  const SharedLimitsSettings settings_;
  store::Store& store_;
  api::RateLimiter& limiter_;
  api::RateLimiter& public_limiter_;
  api::BusySessions& busy_;
  api::InjectQuota& quota_;
  bool told_full_ = false;
  store::Notifications::Subscription spent_;
  store::Notifications::Subscription full_;
  std::vector<store::Notifications::Subscription> deliver_;
};

}  // namespace conversed::daemon
