#include "api/live/rate_limiter.h"

#include <algorithm>
#include <cmath>

namespace conversed::api {

std::optional<std::chrono::milliseconds> RateLimiter::take(std::string_view name, TimePoint now,
                                                           std::uint32_t tokens) {
  if (!active()) return std::nullopt;
  const std::size_t index = model::KeyedHash{}(name) % shard_count;
  return shards_[index].with([&](Shard& shard) -> std::optional<std::chrono::milliseconds> {
    Bucket& bucket = bucket_of(shard, name, now);
    bucket = {tokens_at(bucket, now), std::max(bucket.at, now)};
    if (bucket.tokens >= 1) {
      bucket.tokens -= tokens;
      if (shares_.load(std::memory_order_relaxed)) note_spent(shard, name, tokens);
      return std::nullopt;
    }
    // Another thread may have removed the limit meanwhile.
    const double rate = std::max<std::uint32_t>(1, requests_per_second_.load());
    const double seconds = (1 - bucket.tokens) / rate;
    return std::chrono::milliseconds(std::max<std::int64_t>(1, std::llround(seconds * 1000)));
  });
}

// The list is reported soon, so it stays short. If it is full, further names are left out.
void RateLimiter::note_spent(Shard& shard, std::string_view name, std::uint32_t tokens) const {
  if (const auto known = shard.spent.find(name); known != shard.spent.end()) {
    known->second += tokens;
  } else if (shard.spent.size() < max_names_ / shard_count) {
    shard.spent.emplace(std::string(name), tokens);
  }
}

std::vector<RateLimiter::Spent> RateLimiter::take_spent(std::size_t at_most) {
  shares_ = true;
  std::vector<Spent> all;
  // Starts at another shard each time, so that every shard is reported.
  const std::size_t first = next_told_.fetch_add(1);
  for (std::size_t i = 0; i < shard_count; ++i) {
    shards_[(first + i) % shard_count].with([&](Shard& shard) {
      while (!shard.spent.empty() && all.size() < at_most) {
        auto node = shard.spent.extract(shard.spent.begin());
        all.push_back({std::move(node.key()), node.mapped()});
      }
    });
  }
  return all;
}

void RateLimiter::drain(Shard& shard, std::string_view name, TimePoint now,
                        std::uint32_t tokens) const {
  Bucket& bucket = bucket_of(shard, name, now);
  const double left = tokens_at(bucket, now);
  bucket = {std::min(left, std::max(left - tokens, -burst())), std::max(bucket.at, now)};
}

void RateLimiter::charge(std::string_view name, TimePoint now, std::uint32_t tokens) {
  if (!active()) return;
  const std::size_t index = model::KeyedHash{}(name) % shard_count;
  shards_[index].with([&](Shard& shard) {
    drain(shard, name, now, tokens);
    if (shares_.load(std::memory_order_relaxed)) note_spent(shard, name, tokens);
  });
}

void RateLimiter::spent_elsewhere(const Spent& spent, TimePoint now) {
  if (!active()) return;
  const std::size_t index = model::KeyedHash{}(spent.name) % shard_count;
  shards_[index].with([&](Shard& shard) { drain(shard, spent.name, now, spent.tokens); });
}

void RateLimiter::set_limits(const RateLimits& limits) {
  requests_per_second_ = limits.requests_per_second;
  burst_ = limits.burst;
}

double RateLimiter::burst() const {
  return std::max<double>(1, burst_.load());
}

double RateLimiter::tokens_at(const Bucket& bucket, TimePoint now) const {
  if (now <= bucket.at) return bucket.tokens;
  const double seconds = std::chrono::duration<double>(now - bucket.at).count();
  return std::min(burst(), bucket.tokens + seconds * requests_per_second_.load());
}

void RateLimiter::sweep(Shard& shard, TimePoint now) const {
  // At most once a second. Walking a shard full of busy names for each request would cause the load
  // that the limit prevents.
  if (now - shard.swept_at < std::chrono::seconds(1)) return;
  shard.swept_at = now;
  std::erase_if(shard.buckets,
                [&](const auto& item) { return tokens_at(item.second, now) >= burst(); });
}

RateLimiter::Bucket& RateLimiter::bucket_of(Shard& shard, std::string_view name,
                                            TimePoint now) const {
  if (const auto known = shard.buckets.find(name); known != shard.buckets.end()) {
    return known->second;
  }
  const std::size_t max_names = std::max<std::size_t>(1, max_names_ / shard_count);
  if (shard.buckets.size() >= max_names) sweep(shard, now);
  const Bucket full{burst(), now};
  if (shard.buckets.size() >= max_names) {
    if (!shard.newcomers) shard.newcomers = full;
    return *shard.newcomers;
  }
  return shard.buckets.emplace(std::string(name), full).first->second;
}

}  // namespace conversed::api
