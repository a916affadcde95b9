#pragma once

#include <cstdint>
#include <optional>

#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/shards/shard.h"

namespace conversed::store {

// How many rows of each kind wait in the store, and when the oldest row of a kind was made. A kind
// without rows has no time.
struct Backlog {
  // Rows, at most `most_counted` of each kind.
  std::int64_t deliveries = 0;
  std::int64_t dead_letters = 0;   // new ones
  std::int64_t running_calls = 0;  // calls and timers that executions wait for
  std::int64_t inbox_events = 0;

  std::optional<model::Timestamp> dead_letter{};
  std::optional<model::Timestamp> inbox_event{};  // accepted
  std::optional<model::Timestamp> queued_job{};   // created
  // By the clock of timers.
  std::optional<model::Timestamp> failing_endpoint{};  // not paused
  std::optional<model::Timestamp> paused_endpoint{};

  Backlog& operator+=(const Backlog& other);
};

// Reads each shard by one statement, and looks up the oldest event of its inboxes. An error: one of
// the shards can't be read. Thread-safe.
[[nodiscard]] model::Result<Backlog> read_backlog(const Shards& shards);

}  // namespace conversed::store
