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
  std::string daemon;            // this one's name
  std::int64_t inbox_limit = 0;  // events; from so many on an inbox is full
  std::function<std::chrono::steady_clock::time_point()> steady_now = [] {
    return std::chrono::steady_clock::now();
  };
};

// What several daemons count together: each tells the others, by the store's notifications, what
// its clients have spent of their rate limits and whose inboxes are full; and counts in the store
// how many injects it has accepted. What is told is bounded: of more spenders, or more full
// inboxes, than fit into a few announcements some are told later, or not. While the store fails
// nothing is told, and each goes by what it knows itself.
//
// What it hears it notes on the watch's thread; `tell` is for one thread at a time.
class SharedLimits {
 public:
  // All must outlive it.
  SharedLimits(SharedLimitsSettings settings, store::Store& store, api::RateLimiter& limiter,
               api::RateLimiter& public_limiter, api::BusySessions& busy, api::InjectQuota& quota);

  // Tells what there is to tell: once a second makes a second's slack. May wait for room with the
  // Committer.
  void tell();

 private:
  void count_accepted();
  void hear_spent(std::string_view payload);
  void hear_full(std::string_view payload);

  const SharedLimitsSettings settings_;
  store::Store& store_;
  api::RateLimiter& limiter_;
  api::RateLimiter& public_limiter_;
  api::BusySessions& busy_;
  api::InjectQuota& quota_;
  bool told_full_ = false;
  store::Notifications::Subscription spent_;
  store::Notifications::Subscription full_;
};

}  // namespace conversed::daemon
