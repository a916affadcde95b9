#pragma once

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <optional>

namespace conversed::daemon {

struct BackoffSettings {
  std::chrono::milliseconds first{1'000};          // after the first attempt
  std::chrono::milliseconds max{5 * 60'000};       // the pause stops doubling here
  std::chrono::milliseconds max_asked{3'600'000};  // the longest wait that Retry-After may ask for
};

// The pause after `attempts` failed attempts (from 1): doubled each time up to `max`, plus up to a
// quarter, so that attempts that failed together are not repeated together. An answer's Retry-After
// makes it longer, never shorter. `random` is any random number.
[[nodiscard]] inline std::chrono::milliseconds backoff(
    const BackoffSettings& settings, int attempts, std::optional<std::chrono::seconds> retry_after,
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

[[nodiscard]] inline std::chrono::milliseconds longest_wait(const BackoffSettings& settings) {
  return std::max(settings.max + settings.max / 4, settings.max_asked);
}

}  // namespace conversed::daemon
