#pragma once

#include <gtest/gtest.h>

#include <chrono>
#include <functional>
#include <future>
#include <memory>
#include <optional>
#include <ostream>
#include <string>
#include <utility>

#include "queue/keyed_append.h"
#include "queue/log.h"

namespace conversed::test {

// A log and its keys. One object may be both.
struct KeyedLog {
  std::shared_ptr<queue::Log> log;
  std::shared_ptr<queue::KeyedAppend> keyed;
};

// One log with keys that can be closed and opened again, for one test. One thread at a time.
class KeyedFixture {
 public:
  virtual ~KeyedFixture() = default;
  // Opens the log as it was left. Destroys the log that was opened before.
  [[nodiscard]] virtual KeyedLog open() = 0;
  // Opens the same log once more, as another daemon does, beside the open one. Nothing for a log of
  // one daemon.
  [[nodiscard]] virtual KeyedLog open_at_another_daemon() { return {}; }
  // Moves the Clock by which keys expire. It stands still otherwise.
  virtual void advance(std::chrono::milliseconds by) = 0;
};

// A driver for the suite in `keyed_append_conformance.cc`. To add a driver, link that file with a
// file that calls INSTANTIATE_TEST_SUITE_P(<driver>, KeyedAppendConformance, ...).
struct KeyedDriver {
  std::string name;
  std::function<std::unique_ptr<KeyedFixture>()> make;
};
inline void PrintTo(const KeyedDriver& driver, std::ostream* out) {
  *out << driver.name;
}

class KeyedAppendConformance : public testing::TestWithParam<KeyedDriver> {
 protected:
  using Found = queue::Result<std::optional<queue::KeyedAppended>>;

  void SetUp() override {
    fixture_ = GetParam().make();
    reopen();
  }
  void reopen() {
    opened_ = {};
    opened_ = fixture_->open();
    ASSERT_NE(opened_.log, nullptr);
    ASSERT_NE(opened_.keyed, nullptr);
  }

  queue::Result<queue::KeyedAppended> append(std::string id, queue::AppendKey key) {
    return append_to(*opened_.keyed, std::move(id), std::move(key));
  }
  static queue::Result<queue::KeyedAppended> append_to(queue::KeyedAppend& keyed, std::string id,
                                                       queue::AppendKey key) {
    std::promise<queue::Result<queue::KeyedAppended>> done;
    keyed.append({"session", std::move(id), "inject", "", "v"}, std::move(key),
                 [&](auto outcome) { done.set_value(std::move(outcome)); });
    return done.get_future().get();
  }
  Found look_up(const queue::AppendKey& key) {
    std::promise<Found> done;
    opened_.keyed->look_up(key, [&](auto found) { done.set_value(std::move(found)); });
    return done.get_future().get();
  }
  // The count of records in the log.
  std::int64_t records() {
    const auto ranges = opened_.log->ranges();
    std::int64_t count = 0;
    if (!ranges) return -1;
    for (const auto& range : *ranges) count += range.end - range.first;
    return count;
  }

  std::unique_ptr<KeyedFixture> fixture_;
  KeyedLog opened_;
};

}  // namespace conversed::test
