#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <string>
#include <unordered_map>

#include "store/runtime/guarded.h"

namespace conversed::daemon {

// Counts the POSTs to each Endpoint in the last five minutes, in memory. Thread-safe.
class RecentPosts {
 public:
  using Time = std::chrono::steady_clock::time_point;
  static constexpr std::chrono::seconds slice{10};
  static constexpr std::int64_t slices = 30;
  static constexpr std::size_t max_endpoints = 10'000;  // the POSTs of others are not counted

  explicit RecentPosts(Time begin) : begin_(begin) {}

  struct Count {
    std::chrono::seconds time{0};  // how long POSTs were counted: at most `slice` * `slices`
    std::int64_t posts = 0;
    std::int64_t failed = 0;
  };
  void add(const std::string& endpoint_id, bool failed, Time now);
  [[nodiscard]] Count of(const std::string& endpoint_id, Time now) const;

 private:
  struct Slice {
    std::int64_t number = 0;  // since the begin; not the expected number: the slice is outdated
    std::int64_t posts = 0;
    std::int64_t failed = 0;
  };
  struct Endpoint {
    std::array<Slice, slices> recent{};
    std::int64_t last = 0;  // the newest slice
  };

  [[nodiscard]] std::int64_t number_of(Time now) const { return (now - begin_) / slice; }

  const Time begin_;
  model::Guarded<std::unordered_map<std::string, Endpoint>> endpoints_;
};

}  // namespace conversed::daemon
