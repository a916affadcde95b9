#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstdlib>
#include <deque>
#include <mutex>
#include <string>
#include <utility>
#include <vector>

#include "queue/lanes.h"

// Helpers for tests of the Lanes.
namespace conversed::queue {

inline LogRecord record(std::int64_t offset, std::string key, std::int32_t partition = 0) {
  LogRecord made;
  made.record.key = std::move(key);
  made.record.id = std::to_string(offset);
  made.position = {1, partition, offset};
  return made;
}

inline std::vector<PartitionRange> from_zero(std::int32_t partitions = 1) {
  std::vector<PartitionRange> ranges;
  for (std::int32_t number = 0; number < partitions; ++number)
    ranges.push_back({number, 1, 0, 0, 0});
  return ranges;
}

using Offsets = std::vector<std::int64_t>;
inline Offsets offsets(const Run& run) {
  Offsets offsets;
  for (const auto& each : run.records) offsets.push_back(each.position.offset);
  return offsets;
}

// Records as the log reads them: like those of `record`, but without their keys.
inline std::vector<LogRecord> records_at(std::span<const Position> at) {
  std::vector<LogRecord> records;
  for (const auto& position : at) {
    records.push_back(record(position.offset, "", position.partition));
  }
  return records;
}

// Keeps runs until the test finishes them.
class HeldRuns {
 public:
  Handler handler() {
    return [this](queue::Run&& run, Finish finish) {
      const std::lock_guard lock(mutex_);
      held_.emplace_back(std::move(run), std::move(finish));
      ++seen_;
      changed_.notify_all();
    };
  }
  // Waits for a held run and returns the oldest.
  std::pair<Run, Finish> next() {
    std::unique_lock lock(mutex_);
    if (!changed_.wait_for(lock, std::chrono::minutes(1), [this] { return !held_.empty(); }))
      std::abort();
    auto oldest = std::move(held_.front());
    held_.pop_front();
    return oldest;
  }
  // Waits for a held run, finishes the oldest and returns it.
  Run next_finished() {
    auto [run, finish] = next();
    finish(Next::idle);
    return std::move(run);
  }
  std::size_t seen() {
    const std::lock_guard lock(mutex_);
    return seen_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::pair<Run, Finish>> held_;
  std::size_t seen_ = 0;
};

inline void offer(Lanes& lanes, LogRecord one) {
  std::vector<LogRecord> records;
  records.push_back(std::move(one));
  lanes.offer(std::move(records));
}

}  // namespace conversed::queue
