// Partitions that the pump leaves alone (Pump::set_aside).
#include <gtest/gtest.h>

#include <condition_variable>
#include <functional>
#include <map>
#include <mutex>
#include <set>

#include "queue/file/file_log.h"
#include "queue/pump.h"
#include "tests/support/kept_keys.h"
#include "tests/support/temp_folder.h"
#include "tests/unit/queue/held_runs.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

constexpr std::int32_t memory_partitions = 3;

// A log in memory. Its consumer can set partitions aside. Thread-safe.
class MemoryLog final : public Log {
 public:
  void append(Record record, AppendCallback /*done*/) override {
    const std::lock_guard lock(mutex_);
    const auto partition = partition_of(record.key, memory_partitions);
    records_[partition].push_back(std::move(record));
    changed_.notify_all();
  }
  Result<std::unique_ptr<Consumer>> subscribe(Listener& listener) override {
    return std::make_unique<MemoryConsumer>(*this, listener);
  }
  Result<std::vector<PartitionRange>> ranges() override {
    const std::lock_guard lock(mutex_);
    std::vector<PartitionRange> all;
    for (std::int32_t number = 0; number < memory_partitions; ++number)
      all.push_back(range(number));
    return all;
  }
  Result<std::int64_t> new_epoch(std::int64_t /*above*/) override { return 1; }
  Result<void> health() override { return {}; }
  void stop() override {}

  // Before the pump starts: the next calls of `set_aside` fail, so many of them.
  int failures = 0;
  // Likewise for partitions that return.
  int put_offs = 0;

 private:
  class MemoryConsumer final : public Consumer {
   public:
    MemoryConsumer(MemoryLog& log, Listener& listener) : log_(log), listener_(listener) {}

    Result<std::vector<LogRecord>> poll(std::size_t max, std::chrono::milliseconds wait) override {
      begin_all();
      std::unique_lock lock(log_.mutex_);
      std::vector<LogRecord> some;
      log_.changed_.wait_for(lock, wait, [&] { return log_.woken_ || has_more(); });
      log_.woken_ = false;
      for (auto& [number, next] : next_) {
        const auto& all = log_.records_[number];
        for (; some.size() < max && next < static_cast<std::int64_t>(all.size()); ++next) {
          some.push_back({all[static_cast<std::size_t>(next)], {1, number, next}});
        }
      }
      return some;
    }
    Result<void> commit(std::span<const Position> finished) override {
      const std::lock_guard lock(log_.mutex_);
      for (const auto& at : finished) {
        if (!next_.contains(at.partition)) return model::fail(not_handed_out(at));
        log_.committed_[at.partition] = at.offset + 1;
      }
      return {};
    }
    Result<void> set_aside(std::span<const std::int32_t> numbers) override {
      if (log_.failures-- > 0) return model::fail(Errc::unavailable, "not now");
      set_aside_ = {numbers.begin(), numbers.end()};
      std::vector<std::int32_t> lost;
      for (const auto& [number, next] : next_) {
        if (set_aside_.contains(number)) lost.push_back(number);
      }
      listener_.on_revoked(lost);
      for (const auto number : lost) next_.erase(number);
      return {};
    }
    void wake() override {
      const std::lock_guard lock(log_.mutex_);
      log_.woken_ = true;
      log_.changed_.notify_all();
    }

   private:
    void begin_all() {
      std::vector<PartitionRange> begun;
      const auto ranges = log_.ranges().value();
      for (const auto& range : ranges) {
        if (set_aside_.contains(range.partition) || next_.contains(range.partition)) continue;
        begun.push_back(range);
      }
      if (begun.empty()) return;
      if (!next_.empty() && log_.put_offs-- > 0) {
        return listener_.on_put_off({Errc::unavailable, "its store is away"});
      }
      EXPECT_TRUE(listener_.on_assigned(begun).has_value());
      for (const auto& range : begun) next_[range.partition] = range.committed;
    }
    bool has_more() {
      for (const auto& [number, next] : next_) {
        if (next < static_cast<std::int64_t>(log_.records_[number].size())) return true;
      }
      return false;
    }
    MemoryLog& log_;
    Listener& listener_;
    std::set<std::int32_t> set_aside_;
    std::map<std::int32_t, std::int64_t> next_;  // of the partitions that are read
  };

  PartitionRange range(std::int32_t number) {
    const auto end = static_cast<std::int64_t>(records_[number].size());
    return {number, 1, 0, end, committed_[number]};
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<std::int32_t, std::vector<Record>> records_;
  std::map<std::int32_t, std::int64_t> committed_;
  bool woken_ = false;
};

// Notes which partitions the pump reads.
class Owner final : public PartitionOwner {
 public:
  Result<std::vector<std::string>> take_up(std::span<const PartitionRange> taken) override {
    const std::lock_guard lock(mutex_);
    for (const auto& range : taken) owned_.insert(range.partition);
    changed_.notify_all();
    return std::vector<std::string>{};
  }
  void given_up(std::span<const std::int32_t> lost, bool /*complete*/) override {
    const std::lock_guard lock(mutex_);
    for (const auto partition : lost) owned_.erase(partition);
    changed_.notify_all();
  }
  [[nodiscard]] bool wait_for(const std::set<std::int32_t>& owned) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 1min, [&] { return owned_ == owned; });
  }

 private:
  std::mutex mutex_;
  std::condition_variable changed_;
  std::set<std::int32_t> owned_;
};

class PumpSetAside : public testing::Test {
 protected:
  static std::string key_in(std::int32_t partition) {
    for (int n = 0;; ++n) {
      auto key = "key" + std::to_string(n);
      if (partition_of(key, memory_partitions) == partition) return key;
    }
  }
  void append(std::int32_t partition) { log_.append({key_in(partition), "", "", "", ""}, {}); }
  PumpSettings settings() {
    PumpSettings settings;
    settings.retry_interval = 1ms;
    settings.revoke_wait = 0ms;
    settings.owner = &owner_;
    settings.report = [this](const Error& error) {
      const std::lock_guard lock(mutex_);
      errors_.push_back(error.message);
      reported_.notify_all();
    };
    return settings;
  }
  std::vector<std::string> errors() {
    const std::lock_guard lock(mutex_);
    return errors_;
  }

  [[nodiscard]] bool wait_for_an_error() {
    std::unique_lock lock(mutex_);
    return reported_.wait_for(lock, 1min, [this] { return !errors_.empty(); });
  }

  MemoryLog log_;
  Owner owner_;
  HeldRuns runs_;

 private:
  std::mutex mutex_;
  std::condition_variable reported_;
  std::vector<std::string> errors_;
};

TEST_F(PumpSetAside, APartitionReturnsWithItsUnfinishedRecordsWhileOthersGoOn) {
  LanesSettings one_by_one;
  one_by_one.max_run = 1;
  Lanes lanes(one_by_one, runs_.handler());
  auto pump = Pump::start(settings(), log_, lanes);
  ASSERT_TRUE(pump.has_value());
  for (int n = 0; n < 3; ++n) append(1);
  EXPECT_EQ(offsets(runs_.next_finished()), Offsets{0});
  auto [unfinished, finish] = runs_.next();
  EXPECT_EQ(offsets(unfinished), Offsets{1});
  (*pump)->set_aside({1});
  ASSERT_TRUE(owner_.wait_for({0, 2}));
  finish(Next::idle);  // too late: the partition is given up
  append(1);
  append(0);
  EXPECT_EQ(runs_.next_finished().key, key_in(0));
  append(2);
  EXPECT_EQ(runs_.next_finished().key, key_in(2));
  EXPECT_EQ(runs_.seen(), 4U);
  (*pump)->set_aside({});
  for (std::int64_t expected = 1; expected < 4; ++expected) {
    EXPECT_EQ(offsets(runs_.next_finished()), Offsets{expected});
  }
  EXPECT_TRUE((*pump)->stop(1min));
  const auto ranges = log_.ranges().value();
  for (const auto& range : ranges) EXPECT_EQ(range.committed, range.end);
  EXPECT_TRUE(errors().empty());
}

TEST_F(PumpSetAside, AlsoWhileThePumpIsHeld) {
  Lanes lanes({}, runs_.handler());
  auto pump = Pump::start(settings(), log_, lanes);
  ASSERT_TRUE(owner_.wait_for({0, 1, 2}));
  (*pump)->hold();
  (*pump)->set_aside({0, 1});
  EXPECT_TRUE(owner_.wait_for({2}));
  (*pump)->set_aside({1});
  EXPECT_TRUE(owner_.wait_for({0, 2}));
}

TEST_F(PumpSetAside, AlsoWithoutRoom) {
  LanesSettings full;
  full.in_flight_limit = 1;
  Lanes lanes(full, runs_.handler());
  auto pump = Pump::start(settings(), log_, lanes);
  append(0);
  auto [run, finish] = runs_.next();
  (*pump)->set_aside({0, 1});
  EXPECT_TRUE(owner_.wait_for({2}));
  (*pump)->set_aside({1});
  EXPECT_TRUE(owner_.wait_for({0, 2}));
  finish(Next::idle);
  EXPECT_EQ(offsets(runs_.next_finished()), Offsets{0}) << "it was not finished in time";
}

TEST_F(PumpSetAside, IsRepeatedUntilTheConsumerAcceptsIt) {
  log_.failures = 3;
  Lanes lanes({}, runs_.handler());
  auto pump = Pump::start(settings(), log_, lanes);
  (*pump)->set_aside({2});
  EXPECT_TRUE(owner_.wait_for({0, 1}));
  EXPECT_TRUE((*pump)->stop(1min));
  EXPECT_EQ(errors(), std::vector<std::string>(3, "not now"));
  (*pump)->set_aside({});  // a stopped pump does nothing
}

TEST_F(PumpSetAside, APartitionThatCanNotReturnIsReportedAndDelaysNoOther) {
  log_.put_offs = 2;
  Lanes lanes({}, runs_.handler());
  auto pump = Pump::start(settings(), log_, lanes);
  ASSERT_TRUE(owner_.wait_for({0, 1, 2}));
  (*pump)->set_aside({2});
  ASSERT_TRUE(owner_.wait_for({0, 1}));
  (*pump)->set_aside({});
  append(0);
  EXPECT_EQ(runs_.next_finished().key, key_in(0));
  EXPECT_TRUE(owner_.wait_for({0, 1, 2}));
  EXPECT_TRUE((*pump)->stop(1min));
  EXPECT_EQ(errors(), std::vector<std::string>(2, "its store is away"));
}

TEST_F(PumpSetAside, ALogThatCanNotDoItIsReadOn) {
  const tests::TempFolder folder;
  tests::KeysInMemory kept;
  const model::SystemClock clock;
  FileLogSettings file;
  file.partitions = memory_partitions;
  auto log = FileLog::open(*open_disk(folder / "log"), file, kept, clock);
  ASSERT_TRUE(log.has_value());
  Lanes lanes({}, runs_.handler());
  auto pump = Pump::start(settings(), **log, lanes);
  (*pump)->set_aside({0});
  ASSERT_TRUE(wait_for_an_error());
  (*log)->append({key_in(0), "", "", "", ""}, [](const Result<Appended>&) {});
  EXPECT_EQ(runs_.next_finished().key, key_in(0));
  EXPECT_TRUE((*pump)->stop(1min));
  EXPECT_EQ(errors().front(), "this log's partitions are all read by one daemon");
}

}  // namespace
}  // namespace conversed::queue
