#include "daemon/delivery/recent_posts.h"

#include <algorithm>

namespace conversed::daemon {

void RecentPosts::add(const std::string& endpoint_id, bool failed, Time now) {
  const auto number = number_of(now);
  endpoints_.with([&](auto& endpoints) {
    if (endpoints.size() >= max_endpoints && !endpoints.contains(endpoint_id)) {
      std::erase_if(endpoints,
                    [&](const auto& each) { return each.second.last <= number - slices; });
      if (endpoints.size() >= max_endpoints) return;
    }
    Endpoint& endpoint = endpoints[endpoint_id];
    endpoint.last = number;
    Slice& present = endpoint.recent.at(static_cast<std::size_t>(number % slices));
    if (present.number != number) present = {.number = number};
    ++present.posts;
    if (failed) ++present.failed;
  });
}

RecentPosts::Count RecentPosts::of(const std::string& endpoint_id, Time now) const {
  const auto number = number_of(now);
  const auto first = std::max<std::int64_t>(0, number - slices + 1);
  Count count{.time = std::chrono::floor<std::chrono::seconds>(now - begin_) - first * slice};
  endpoints_.with([&](const auto& endpoints) {
    const auto known = endpoints.find(endpoint_id);
    if (known == endpoints.end()) return;
    for (const Slice& each : known->second.recent) {
      if (each.number < first) continue;
      count.posts += each.posts;
      count.failed += each.failed;
    }
  });
  return count;
}

}  // namespace conversed::daemon
