#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <unordered_map>
#include <utility>
#include <vector>

#include "store/model/event.h"
#include "store/model/keyed_hash.h"
#include "store/runtime/guarded.h"

namespace conversed::api {

// How many events wait in the inboxes of busy sessions. An accept refuses a message for a full
// inbox without reading the store. The turn worker calls `set` after each commit that changed an
// inbox, and at start-up for every non-empty inbox. Events in the log that have not run are not
// counted, so an inbox may exceed the bound.
//
// Of several daemons on one log, each knows the inboxes of the sessions that it runs. It repeatedly
// sends the others the names of its full inboxes.
// Kept by: BusySessions.ReportsOfAnotherDaemonExpire.
// Thread-safe. Sessions are spread over shards, each with its own lock.
class BusySessions {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // 0 forgets the session.
  void set(const model::SessionKey& key, std::int64_t inbox_size) {
    std::string encoded = key.encode();
    shard(encoded).with([&](Shard& sizes) {
      if (inbox_size > 0) {
        sizes[std::move(encoded)] = inbox_size;
      } else {
        sizes.erase(encoded);
      }
    });
  }

  // Forgets the sessions for which `is_meant` is true. It runs under a lock and must not block.
  void forget(const std::function<bool(const std::string& encoded_key)>& is_meant) {
    for (auto& each : shards_) {
      each.with([&](Shard& sizes) {
        std::erase_if(sizes, [&](const auto& entry) { return is_meant(entry.first); });
      });
    }
  }

  [[nodiscard]] std::int64_t inbox_size(const std::string& encoded_key) const {
    return shard(encoded_key).with([&](const Shard& sizes) -> std::int64_t {
      const auto place = sizes.find(encoded_key);
      return place == sizes.end() ? 0 : place->second;
    });
  }

  // Whether `bound` events wait for the session, by this or another daemon's count.
  [[nodiscard]] bool is_full(const std::string& encoded_key, std::int64_t bound,
                             TimePoint now) const;

  // For other daemons: up to `at_most` names of sessions with `bound` events in the inbox.
  [[nodiscard]] std::vector<std::string> full(std::int64_t bound, std::size_t at_most) const;
  // Another daemon's complete list of its full sessions. It is valid for `believed_for`, in case
  // that daemon dies.
  void full_elsewhere(const std::string& daemon, std::vector<std::string> marks, TimePoint now);
  static constexpr std::chrono::seconds believed_for{5};

 private:
  struct Told {
    std::set<std::string> marks;
    TimePoint at;
  };
  using Shard = std::unordered_map<std::string, std::int64_t, model::KeyedHash, std::equal_to<>>;
  static constexpr std::size_t shard_count = 16;

  model::Guarded<Shard>& shard(std::string_view key) {
    return shards_[model::KeyedHash{}(key) % shard_count];
  }
  const model::Guarded<Shard>& shard(std::string_view key) const {
    return shards_[model::KeyedHash{}(key) % shard_count];
  }

  std::array<model::Guarded<Shard>, shard_count> shards_;
  std::atomic<bool> told_any_{false};
  model::Guarded<std::map<std::string, Told>> told_;  // by daemon
};

}  // namespace conversed::api
