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

// How many events wait in the inboxes of busy sessions. An accept refuses a full inbox by it,
// without a read from the store. The turn worker calls `set` after each commit that changed an
// inbox, and for every non-empty inbox at start-up. Events that are in the log and have not run are
// not counted, so they may exceed the bound.
//
// Of several daemons on one log, each knows the inboxes of the sessions that it runs, and tells the
// others again and again which of these are full.
// Kept by: BusySessions.WhatAnotherDaemonSaidHoldsForAWhile.
// Thread-safe; sessions are spread over shards, each with its own lock.
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

  // Forgets the sessions whose encoded key this names; called under a lock, it must not block.
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

  // Whether `bound` events wait for the session, here or as another daemon has told.
  [[nodiscard]] bool is_full(const std::string& encoded_key, std::int64_t bound,
                             TimePoint now) const;

  // For other daemons: marks of up to `at_most` sessions in whose inboxes `bound` events wait.
  [[nodiscard]] std::vector<std::string> full(std::int64_t bound, std::size_t at_most) const;
  // From another daemon: these of its sessions are full, and no others. Holds for `believed_for`,
  // in case the daemon dies.
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
