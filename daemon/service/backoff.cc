#include "daemon/service/backoff.h"

#include <algorithm>

namespace conversed::daemon {

std::chrono::milliseconds backoff(const BackoffSettings& settings, int attempts,
                                  std::optional<std::chrono::seconds> retry_after,
                                  std::uint64_t random) {
  auto wait = std::min(settings.first, settings.max);
  for (int i = 1; i < attempts && wait < settings.max; ++i) {
    wait = wait > settings.max / 2 ? settings.max : wait * 2;
  }
  const auto spread = static_cast<std::uint64_t>(wait.count()) / 4 + 1;
  wait += std::chrono::milliseconds(random % spread);
  if (!retry_after) return wait;
  const auto most = std::chrono::ceil<std::chrono::seconds>(settings.max_asked);
  return std::max(
      wait, std::min<std::chrono::milliseconds>(std::min(*retry_after, most), settings.max_asked));
}

}  // namespace conversed::daemon
