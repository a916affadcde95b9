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

// What names of addresses begin with.
inline constexpr std::string_view address_prefix = "address ";

struct RateLimits {
  std::uint32_t requests_per_second = 0;  // of one name; 0: no limit at all
  std::uint32_t burst = 100;              // at once, after a pause; at least 1 is granted
  std::size_t max_names = 65'536;         // remembered; see below
};

// A token bucket for each API key or client address. Thread-safe; names are spread over shards,
// each with its own lock. A bucket that is full again says no more than none at all, so those are
// dropped when a shard is full; if none is, a new name shares one bucket with all other newcomers,
// which bounds the memory and still limits the rate.
class RateLimiter {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit RateLimiter(const RateLimits& limits)
      : max_names_(limits.max_names),
        requests_per_second_(limits.requests_per_second),
        burst_(limits.burst) {}

  // From now on these hold, for the names that are remembered, too; `max_names` stays.
  void set_limits(const RateLimits& limits);

  // Takes tokens if there is one: those that are short are owed, and no further ones are given
  // before. Without one: how long it takes until there is one, above zero.
  [[nodiscard]] std::optional<std::chrono::milliseconds> take(std::string_view name, TimePoint now,
                                                              std::uint32_t tokens = 1);
  // Takes tokens whether the bucket has them or not: for a cost that is known after the request was
  // let in. A bucket does not fall further below zero than it is deep.
  void charge(std::string_view name, TimePoint now, std::uint32_t tokens);

  // What was taken here by name since the last call, at most `at_most` names at a time; the others
  // come next. For other daemons, which count it as if it had been taken there. The first call
  // begins it. Names beyond `max_names` are not told.
  struct Spent {
    std::string name;
    std::uint32_t tokens = 0;
  };
  [[nodiscard]] std::vector<Spent> take_spent(std::size_t at_most);
  // What was taken at another daemon, as by `charge`.
  void spent_elsewhere(const Spent& spent, TimePoint now);

  // Whether there is any limit; callers need not make a name up otherwise.
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
