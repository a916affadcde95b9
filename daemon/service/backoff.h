#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

namespace conversed::daemon {

struct BackoffSettings {
  std::chrono::milliseconds first{1'000};          // after the first attempt
  std::chrono::milliseconds max{5 * 60'000};       // doubling ends here
  std::chrono::milliseconds max_asked{3'600'000};  // the longest wait that Retry-After may ask for
};

// How long to wait after `attempts` failed ones (from 1): doubled each time up to `max`, then up to
// a quarter longer, so that what failed together does not come back together. An answer's
// Retry-After makes it longer, never shorter. `random` is any random number.
[[nodiscard]] std::chrono::milliseconds backoff(const BackoffSettings& settings, int attempts,
                                                std::optional<std::chrono::seconds> retry_after,
                                                std::uint64_t random);

}  // namespace conversed::daemon
