#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/model/keyed_hash.h"
#include "store/runtime/guarded.h"

namespace conversed::api {

// The prefix of names that are addresses.
inline constexpr std::string_view address_prefix = "address ";

struct RateLimits {
  std::uint32_t requests_per_second = 0;  // of one name; 0: no limit at all
  std::uint32_t burst = 100;              // requests at once after a pause; at least 1
  std::size_t max_names = 65'536;         // remembered; see below
};

// A token bucket for each API key or client address. Thread-safe. Names are spread over shards,
// each with its own lock. A full bucket equals no bucket, so a full shard drops its full buckets.
// If no bucket is full, a new name shares one bucket with all other new names. This bounds the
// memory and still limits the rate.
class RateLimiter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit RateLimiter(const RateLimits& limits)
      : max_names_(limits.max_names),
        requests_per_second_(limits.requests_per_second),
        burst_(limits.burst) {}

  // Changes the limits, also for remembered names. `max_names` stays.
  void set_limits(const RateLimits& limits);

  // Takes tokens if the bucket has at least one. Missing tokens become a debt, and no request
  // passes before it is paid. Otherwise returns the time until the next token, above zero.
  [[nodiscard]] std::optional<std::chrono::milliseconds> take(std::string_view name, TimePoint now,
                                                              std::uint32_t tokens = 1);
  // Takes tokens even if the bucket has none, for a cost that is known after the request was let
  // in. A bucket does not fall further below zero than its depth.
  void charge(std::string_view name, TimePoint now, std::uint32_t tokens);

  // The tokens taken here since the last call, by name. Returns at most `at_most` names; the next
  // calls return the others. Other daemons count them as if they were taken there. The first call
  // starts the recording. Names beyond `max_names` are not reported.
  struct Spent {
    std::string name;
    std::uint32_t tokens = 0;
  };
  [[nodiscard]] std::vector<Spent> take_spent(std::size_t at_most);
  // Counts tokens that were taken at another daemon, as `charge` does.
  void spent_elsewhere(const Spent& spent, TimePoint now);

  // Whether there is a limit. Without one, callers need no name.
  [[nodiscard]] bool active() const { return requests_per_second_.load() > 0; }

 private:
  struct Bucket {
    double tokens = 0;
    TimePoint at;
  };
  struct Shard {
    std::unordered_map<std::string, Bucket, model::KeyedHash, std::equal_to<>> buckets;
    std::unordered_map<std::string, std::uint32_t, model::KeyedHash, std::equal_to<>> spent;
    std::optional<Bucket> newcomers;
    TimePoint swept_at{};
  };
  static constexpr std::size_t shard_count = 16;

  [[nodiscard]] double tokens_at(const Bucket& bucket, TimePoint now) const;
  void sweep(Shard& shard, TimePoint now) const;
  void drain(Shard& shard, std::string_view name, TimePoint now, std::uint32_t tokens) const;
  void note_spent(Shard& shard, std::string_view name, std::uint32_t tokens) const;
  Bucket& bucket_of(Shard& shard, std::string_view name, TimePoint now) const;
  [[nodiscard]] double burst() const;

  const std::size_t max_names_;
  std::atomic<std::uint32_t> requests_per_second_;
  std::atomic<std::uint32_t> burst_;
  std::atomic<bool> shares_{false};
  std::atomic<std::size_t> next_told_{0};
  std::array<model::Guarded<Shard>, shard_count> shards_;
};

}  // namespace conversed::api
