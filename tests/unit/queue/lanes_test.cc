#include <algorithm>
#include <condition_variable>
#include <future>
#include <mutex>
#include <optional>
#include <random>
#include <thread>

#include "tests/unit/queue/held_runs.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

TEST(Lanes, OneKeyHasOneRunInHandAndOthersGoOn) {
  HeldRuns runs;
  Lanes lanes({}, runs.handler());
  lanes.assign(from_zero());
  offer(lanes, record(0, "a"));
  auto [first, finish_first] = runs.next();
  offer(lanes, record(1, "a"));
  offer(lanes, record(2, "b"));
  auto [other, finish_other] = runs.next();
  EXPECT_EQ(other.key, "b");
  EXPECT_EQ(runs.seen(), 2U);
  finish_first(Next::idle);
  auto [second, finish_second] = runs.next();
  EXPECT_EQ(second.key, "a");
  ASSERT_EQ(second.records.size(), 1U);
  EXPECT_EQ(second.records[0].position.offset, 1);
  finish_second(Next::idle);
  finish_other(Next::idle);
  EXPECT_TRUE(lanes.stop(1min));
}

TEST(Lanes, TheFirstOfTheRunsInARowTellsTheirKeys) {
  std::mutex mutex;
  std::condition_variable changed;
  std::vector<std::vector<std::string>> told;
  LanesSettings settings;
  settings.workers = 1;
  Lanes lanes(settings, [&](queue::Run&& run, Finish finish) {
    {
      const std::lock_guard lock(mutex);
      told.emplace_back(run.in_a_row.begin(), run.in_a_row.end());
    }
    changed.notify_all();
    finish(Next::idle);
  });
  lanes.assign(from_zero());
  std::vector<LogRecord> records;
  for (const char* const key : {"a", "b", "c"}) {
    records.push_back(record(static_cast<std::int64_t>(records.size()), key));
  }
  lanes.offer(std::move(records));
  std::unique_lock lock(mutex);
  changed.wait(lock, [&] { return told.size() == 3; });
  EXPECT_EQ(told, (std::vector<std::vector<std::string>>{{"a", "b", "c"}, {}, {}}));
}

TEST(Lanes, TheCommittedOffsetNeverPassesAnUnfinishedRecord) {
  HeldRuns runs;
  Lanes lanes({}, runs.handler());
  lanes.assign(from_zero());
  offer(lanes, record(0, "a"));
  auto [a, finish_a] = runs.next();
  offer(lanes, record(1, "b"));
  auto [b, finish_b] = runs.next();
  finish_b(Next::idle);
  EXPECT_TRUE(lanes.finished().empty());
  finish_a(Next::idle);
  const auto finished = lanes.finished();
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0], (Position{1, 0, 1}));
  EXPECT_TRUE(lanes.finished().empty());
  lanes.forget_reported();
  EXPECT_EQ(lanes.finished().size(), 1U);
}

TEST(Lanes, RunsAreBounded) {
  HeldRuns runs;
  LanesSettings settings;
  settings.max_run = 3;
  Lanes lanes(settings, runs.handler());
  lanes.assign(from_zero());
  offer(lanes, record(0, "a"));
  auto [first, finish_first] = runs.next();
  for (std::int64_t n = 1; n <= 5; ++n) offer(lanes, record(n, "a"));
  finish_first(Next::idle);
  EXPECT_EQ(offsets(runs.next_finished()), (Offsets{1, 2, 3}));
  EXPECT_EQ(offsets(runs.next_finished()), (Offsets{4, 5}));
}

TEST(Lanes, ATouchedKeyRunsOnceWithoutRecordsAndAgainIfTouchedInHand) {
  HeldRuns runs;
  Lanes lanes({}, runs.handler());
  lanes.touch("a");
  auto [first, finish_first] = runs.next();
  EXPECT_EQ(first.key, "a");
  EXPECT_TRUE(first.records.empty());
  lanes.touch("a");
  lanes.touch("a");
  finish_first(Next::idle);
  auto [second, finish_second] = runs.next();
  EXPECT_TRUE(second.records.empty());
  finish_second(Next::idle);
  EXPECT_TRUE(lanes.stop(1min));
  EXPECT_EQ(runs.seen(), 2U);
}

TEST(Lanes, NextAgainSchedulesAnotherRunBehindTheOthers) {
  HeldRuns runs;
  LanesSettings settings;
  settings.workers = 1;
  Lanes lanes(settings, runs.handler());
  lanes.touch("a");
  auto [first, finish_first] = runs.next();
  finish_first(Next::again);
  auto [second, finish_second] = runs.next();
  EXPECT_EQ(second.key, "a");
  EXPECT_TRUE(second.records.empty());
  finish_second(Next::idle);
}

TEST(Lanes, RoomIsTheRestOfTheLimit) {
  HeldRuns runs;
  LanesSettings settings;
  settings.in_flight_limit = 2;
  Lanes lanes(settings, runs.handler());
  lanes.assign(from_zero());
  EXPECT_EQ(lanes.room(), 2U);
  offer(lanes, record(0, "a"));
  offer(lanes, record(1, "b"));
  EXPECT_EQ(lanes.room(), 0U);
  EXPECT_FALSE(lanes.wait_for_room(0ms));
  auto [run, finish] = runs.next();
  std::jthread finisher([&, done = std::move(finish)]() mutable { done(Next::idle); });
  EXPECT_TRUE(lanes.wait_for_room(1min));
  EXPECT_EQ(lanes.in_flight(), 1U);
  runs.next().second(Next::idle);
}

TEST(Lanes, CountTheRecordsOfEachShare) {
  HeldRuns runs;
  LanesSettings settings;
  settings.workers = 2;
  settings.in_flight_limit = 3;
  settings.parked_limit = 10;
  settings.read = [](std::span<const Position> at) { return records_at(at); };
  settings.share_of = [](const std::string& key) { return key.substr(0, 1); };
  Lanes lanes(std::move(settings), runs.handler());
  lanes.assign(from_zero(2));
  lanes.offer(
      {record(0, "a1"), record(1, "a2"), record(2, "b1"), record(3, "a1"), record(4, "a3")});
  lanes.offer({record(0, "b2", 1)});
  EXPECT_EQ(lanes.in_flight_of_share("a1"), 4U);
  EXPECT_EQ(lanes.in_flight_of_share("a-new-lane"), 4U);
  EXPECT_EQ(lanes.in_flight_of_share("b1"), 2U);
  EXPECT_EQ(lanes.in_flight_of_share("c1"), 0U);
  std::size_t left_of_a = 4;
  std::size_t left_of_b = 2;
  while (left_of_a + left_of_b > 2) {
    const auto run = runs.next_finished();
    (run.key.starts_with('a') ? left_of_a : left_of_b) -= run.records.size();
    EXPECT_EQ(lanes.in_flight_of_share("a1"), left_of_a);
    EXPECT_EQ(lanes.in_flight_of_share("b1"), left_of_b);
  }
  static_cast<void>(lanes.stop(0ms));
  while (lanes.in_flight() > 0) runs.next_finished();
  EXPECT_EQ(lanes.in_flight_of_share("a1") + lanes.in_flight_of_share("b1"), 0U);
}

TEST(Lanes, InterruptEndsTheWaitForRoom) {
  HeldRuns runs;
  LanesSettings settings;
  settings.in_flight_limit = 1;
  Lanes lanes(settings, runs.handler());
  lanes.assign(from_zero());
  offer(lanes, record(0, "a"));
  lanes.interrupt();
  EXPECT_FALSE(lanes.wait_for_room(10min));
  runs.next().second(Next::idle);
}

TEST(Lanes, ARevokedPartitionLosesWaitingRecordsAndKeepsFinishedOnes) {
  HeldRuns runs;
  Lanes lanes({}, runs.handler());
  lanes.assign(from_zero(2));
  offer(lanes, record(0, "a", 0));
  auto [done, finish_done] = runs.next();
  finish_done(Next::idle);
  offer(lanes, record(1, "a", 0));
  auto [late, finish_late] = runs.next();
  offer(lanes, record(2, "a", 0));
  offer(lanes, record(0, "b", 1));
  const std::vector<std::int32_t> lost{0};
  const auto finished = lanes.revoke(lost, 0ms).finished;
  ASSERT_EQ(finished.size(), 1U);
  EXPECT_EQ(finished[0].offset, 0);
  EXPECT_EQ(lanes.in_flight(), 1U) << "the run in hand takes no room any more";
  // After the new assignment the partition starts at 1 again. The earlier run does not finish
  // record 1.
  const std::vector<PartitionRange> again{{0, 1, 0, 3, 1}};
  lanes.assign(again);
  offer(lanes, record(1, "a", 0));
  finish_late(Next::idle);
  EXPECT_TRUE(lanes.finished().empty());
  for (int n = 0; n < 2; ++n) runs.next().second(Next::idle);
  EXPECT_EQ(lanes.finished().size(), 2U);
  EXPECT_EQ(lanes.in_flight(), 0U);
  EXPECT_EQ(lanes.in_flight_of_share("any"), 0U);
}

TEST(Lanes, StopWaitsForRunsInHandAndDropsWaitingOnes) {
  HeldRuns runs;
  Lanes lanes({}, runs.handler());
  lanes.assign(from_zero());
  offer(lanes, record(0, "a"));
  auto [run, finish] = runs.next();
  offer(lanes, record(1, "a"));
  EXPECT_FALSE(lanes.stop(0ms));
  lanes.touch("b");
  finish(Next::again);
  EXPECT_TRUE(lanes.stop(1min));
  EXPECT_EQ(runs.seen(), 1U);
  EXPECT_EQ(lanes.finished().front().offset, 0);
  EXPECT_EQ(lanes.in_flight(), 0U);
  EXPECT_EQ(lanes.in_flight_of_share("any"), 0U);
}

TEST(LanesDeathTest, AFinishThatIsLostAborts) {
  GTEST_FLAG_SET(death_test_style, "threadsafe");
  EXPECT_DEATH(
      {
        Lanes lanes({}, [](queue::Run&&, Finish) {});
        lanes.touch("a");
        std::promise<void>().get_future().wait_for(1min);  // the worker ends the process
      },
      "");
}

// Finishes some runs at once, and some later on other threads, in any order.
class AsyncFinisher {
 public:
  explicit AsyncFinisher(std::uint32_t seed) : random_(seed) {
    for (int n = 0; n < 2; ++n) threads_.emplace_back([this] { work(); });
  }
  ~AsyncFinisher() {
    {
      const std::lock_guard lock(mutex_);
      ended_ = true;
    }
    changed_.notify_all();
  }
  void later(Finish finish) {
    {
      const std::lock_guard lock(mutex_);
      waiting_.push_back(std::move(finish));
    }
    changed_.notify_one();
  }
  std::uint32_t random() {
    const std::lock_guard lock(mutex_);
    return static_cast<std::uint32_t>(random_());
  }

 private:
  void work() {
    std::unique_lock lock(mutex_);
    for (;;) {
      changed_.wait(lock, [this] { return !waiting_.empty() || ended_; });
      if (waiting_.empty()) return;
      std::swap(waiting_[random_() % waiting_.size()], waiting_.back());
      Finish finish = std::move(waiting_.back());
      waiting_.pop_back();
      lock.unlock();
      finish(Next::idle);
      lock.lock();
    }
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  std::mt19937 random_;
  std::vector<Finish> waiting_;
  bool ended_ = false;
  std::vector<std::jthread> threads_;
};

void run_randomly(std::uint32_t seed, const std::function<void(LanesSettings&)>& vary) {
  SCOPED_TRACE("seed " + std::to_string(seed));
  constexpr std::int64_t records = 20'000;
  constexpr int keys = 50;
  std::mt19937 random(seed);
  std::mutex mutex;
  std::vector<std::int64_t> last(keys, -1);
  std::vector<bool> running(keys, false);
  std::vector<bool> done(records, false);
  int failures = 0;
  AsyncFinisher finisher(seed);
  LanesSettings settings;
  settings.workers = 3;
  settings.max_run = 4;
  settings.in_flight_limit = 500;
  vary(settings);
  std::optional<Lanes> lanes;
  const auto handler = [&](queue::Run&& run, Finish finish) {
    const auto key = static_cast<std::size_t>(std::stoi(run.key));
    {
      const std::lock_guard lock(mutex);
      failures += running[key] ? 1 : 0;
      running[key] = true;
      for (const auto& each : run.records) {
        failures += each.position.offset > last[key] ? 0 : 1;
        last[key] = each.position.offset;
        done[static_cast<std::size_t>(each.position.offset)] = true;
      }
      // After this the key's next run may begin. Before the finish it must not.
      running[key] = false;
    }
    const auto choice = finisher.random() % 8;
    if (choice == 0) lanes->touch(run.key);
    if (choice < 4) return finisher.later(std::move(finish));
    finish(Next::idle);
  };
  lanes.emplace(settings, handler);
  lanes->assign(from_zero());
  for (std::int64_t offset = 0; offset < records;) {
    if (!lanes->wait_for_room(1min)) break;
    std::vector<LogRecord> some;
    for (std::size_t n = std::min<std::size_t>(lanes->room(), 1 + random() % 64);
         n > 0 && offset < records; --n) {
      some.push_back(record(offset++, std::to_string(random() % keys)));
    }
    lanes->offer(std::move(some));
    EXPECT_LE(lanes->in_flight(), settings.in_flight_limit + settings.parked_limit);
    for (const auto& position : lanes->finished()) {
      const std::lock_guard lock(mutex);
      EXPECT_TRUE(std::all_of(done.begin(), done.begin() + position.offset + 1,
                              [](bool each) { return each; }));
    }
  }
  while (lanes->in_flight() > 0) std::this_thread::yield();
  EXPECT_EQ(lanes->in_flight_of_share("any"), 0U);
  EXPECT_TRUE(lanes->stop(1min));
  const auto finished = lanes->finished();
  if (!finished.empty()) {
    EXPECT_EQ(finished.front().offset, records - 1);
  }
  lanes.reset();  // a run without records may remain
  EXPECT_EQ(failures, 0);
  EXPECT_EQ(std::count(done.begin(), done.end(), true), records);
}

TEST(Lanes, OrderAndBoundsHoldUnderRandomAsynchronousFinishes) {
  run_randomly(std::random_device{}(), [](LanesSettings& /*settings*/) {});
}

TEST(Lanes, OrderAndBoundsHoldWhileMostRecordsAreParkedAndReadsFail) {
  std::atomic<unsigned> reads{0};
  run_randomly(std::random_device{}(), [&](LanesSettings& settings) {
    settings.in_flight_limit = 20;
    settings.parked_limit = 480;
    settings.retry_interval = 0ms;
    settings.read = [&](std::span<const Position> at) -> Result<std::vector<LogRecord>> {
      if (++reads % 3 == 0) return model::fail(Errc::unavailable, "told to");
      return records_at(at);
    };
  });
  EXPECT_GT(reads.load(), 0U);
}

}  // namespace
}  // namespace conversed::queue
