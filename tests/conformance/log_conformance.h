#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "queue/log.h"
#include "tests/conformance/log_driver.h"

namespace conversed::test {

class LogConformance : public testing::TestWithParam<LogDriver> {
 protected:
  static constexpr std::int32_t partitions = 4;
  void SetUp() override {
    fixture_ = GetParam().make(partitions);
    log_ = fixture_->open();
    ASSERT_NE(log_, nullptr);
  }
  void reopen() {
    log_.reset();
    log_ = fixture_->open();
    ASSERT_NE(log_, nullptr);
  }
  std::unique_ptr<LogFixture> fixture_;
  std::unique_ptr<queue::Log> log_;
};

// Collects the outcomes of appends, and waits for the expected count.
class Outcomes {
 public:
  [[nodiscard]] queue::AppendCallback callback(std::string id) {
    return [this, id = std::move(id)](queue::Result<queue::Appended> outcome) {
      const std::lock_guard lock(mutex_);
      arrived_.emplace_back(id, std::move(outcome));
      changed_.notify_all();
    };
  }
  // The outcomes in the order of their callbacks. Fails the test if they take a minute.
  std::vector<std::pair<std::string, queue::Result<queue::Appended>>> wait(std::size_t count) {
    std::unique_lock lock(mutex_);
    EXPECT_TRUE(
        changed_.wait_for(lock, std::chrono::minutes(1), [&] { return arrived_.size() >= count; }));
    return arrived_;
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<std::pair<std::string, queue::Result<queue::Appended>>> arrived_;
};

// Remembers the listener's calls. Refuses the first `refusals` calls.
class RecordingListener final : public queue::Listener {
 public:
  queue::Result<void> on_assigned(std::span<const queue::PartitionRange> ranges) override {
    if (refusals > 0) {
      --refusals;
      return model::fail(queue::Errc::unavailable, "told to");
    }
    for (const auto& range : ranges) assigned[range.partition] = range;
    return {};
  }
  void on_revoked(std::span<const std::int32_t> lost) override {
    for (const auto partition : lost) assigned.erase(partition);
  }
  std::map<std::int32_t, queue::PartitionRange> assigned;
  int refusals = 0;  // the refusals that remain
};

}  // namespace conversed::test
