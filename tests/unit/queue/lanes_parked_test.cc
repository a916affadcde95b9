// Lanes that hold more records than fit into memory.
#include <atomic>
#include <future>

#include "queue/shares.h"
#include "tests/unit/queue/held_runs.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

// A log whose reads fail on demand.
class ReadableLog {
 public:
  // Lanes with room for two records in memory and eight in the log.
  LanesSettings settings() {
    LanesSettings settings;
    settings.max_run = 3;
    settings.in_flight_limit = 2;
    settings.parked_limit = 8;
    settings.retry_interval = 0ms;
    settings.read = [this](std::span<const Position> at) -> Result<std::vector<LogRecord>> {
      std::unique_lock lock(mutex_);
      ++reads_;
      changed_.notify_all();
      changed_.wait(lock, [this] { return !held_; });
      if (fails_) return model::fail(Errc::unavailable, "told to");
      return records_at(at);
    };
    return settings;
  }
  void hold() { set(held_, true); }
  void let_go_on() { set(held_, false); }
  void fail() { set(fails_, true); }
  void heal() { set(fails_, false); }
  // Waits until `count` reads have been made since the beginning.
  void wait_for_reads(int count) {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, 1min, [&] { return reads_ >= count; }));
  }
  int reads() {
    const std::lock_guard lock(mutex_);
    return reads_;
  }

 private:
  void set(bool& what, bool to) {
    const std::lock_guard lock(mutex_);
    what = to;
    changed_.notify_all();
  }
  std::mutex mutex_;
  std::condition_variable changed_;
  int reads_ = 0;
  bool held_ = false;
  bool fails_ = false;
};

class ParkedRecords : public testing::Test {
 protected:
  // Takes `a` in hand with record 0. `b` waits with record 1, later records are parked.
  std::pair<queue::Run, Finish> fill(Lanes& lanes) {
    lanes.assign(from_zero());
    offer(lanes, record(0, "a"));
    auto first = runs_.next();
    offer(lanes, record(1, "b"));
    return first;
  }
  LanesSettings one_worker() {
    auto settings = log_.settings();
    settings.workers = 1;
    return settings;
  }
  ReadableLog log_;
  HeldRuns runs_;
};

TEST_F(ParkedRecords, AreReadWhenTheirRunBeginsInOrder) {
  Lanes lanes(one_worker(), runs_.handler());
  auto [first, finish_first] = fill(lanes);
  EXPECT_EQ(offsets(runs_.next_finished()), (Offsets{1}));
  offer(lanes, record(2, "b"));
  for (std::int64_t n = 3; n < 8; ++n) offer(lanes, record(n, "a"));
  EXPECT_EQ(offsets(runs_.next_finished()), (Offsets{2}));
  EXPECT_EQ(log_.reads(), 0);
  finish_first(Next::idle);
  const queue::Run second = runs_.next_finished();
  EXPECT_EQ(second.key, "a");
  EXPECT_EQ(second.records.front().record.id, "3");
  EXPECT_EQ(offsets(second), (Offsets{3, 4, 5}));
  EXPECT_EQ(offsets(runs_.next_finished()), (Offsets{6, 7}));
  EXPECT_TRUE(lanes.stop(1min));
  EXPECT_EQ(lanes.finished().front().offset, 7);
}

// The length of the first share's backlog does not matter.
TEST_F(ParkedRecords, LetAnotherShareRunBehindABacklog) {
  auto settings = log_.settings();
  settings.share_of = [](const std::string& key) { return key; };
  std::promise<void> release;
  const auto released = release.get_future().share();
  std::promise<void> quiet;
  Lanes lanes(settings, [&](queue::Run&& run, Finish finish) {
    if (run.key == "noisy") released.wait();
    if (run.key == "quiet") quiet.set_value();
    finish(Next::idle);
  });
  lanes.assign(from_zero());
  for (std::int64_t n = 0; n < 9; ++n) offer(lanes, record(n, "noisy"));
  offer(lanes, record(9, "quiet"));
  EXPECT_EQ(quiet.get_future().wait_for(1min), std::future_status::ready);
  EXPECT_TRUE(lanes.wait_for_room(1min));
  EXPECT_TRUE(lanes.finished().empty());
  release.set_value();
}

TEST_F(ParkedRecords, HaveABound) {
  Lanes lanes(log_.settings(), runs_.handler());
  auto [first, finish_first] = fill(lanes);
  for (std::int64_t n = 2; n < 10; ++n) offer(lanes, record(n, "a"));
  EXPECT_EQ(lanes.in_flight(), 10U);
  EXPECT_EQ(lanes.room(), 0U);
  EXPECT_FALSE(lanes.wait_for_room(0ms));
  runs_.next_finished();
  EXPECT_TRUE(lanes.wait_for_room(1min));
  finish_first(Next::idle);
  for (int n = 0; n < 3; ++n) runs_.next_finished();
}

// Otherwise a stopped store would bring the whole backlog into memory.
TEST_F(ParkedRecords, ComeIntoMemoryNoFasterThanRunsAreFinished) {
  constexpr std::size_t records = 500;
  auto settings = one_worker();
  settings.max_run = 1;
  settings.parked_limit = records;
  const std::size_t most = settings.in_flight_limit + 2 * Shares::max_taken;
  Lanes lanes(settings, runs_.handler());
  lanes.assign(from_zero());
  for (std::size_t n = 0; n < records; ++n) {
    offer(lanes, record(static_cast<std::int64_t>(n), std::to_string(n)));
  }
  for (std::size_t finished = 0; finished < records; ++finished) {
    auto [run, finish] = runs_.next();
    EXPECT_LE(runs_.seen() - finished, most);
    finish(Next::idle);
  }
}

TEST_F(ParkedRecords, ThatCanNotBeReadAreReadLaterAndStayInFrontOfNewRecords) {
  Lanes lanes(one_worker(), runs_.handler());
  auto [first, finish_first] = fill(lanes);
  offer(lanes, record(2, "a"));
  runs_.next_finished();
  log_.hold();
  log_.fail();
  finish_first(Next::idle);
  log_.wait_for_reads(1);
  // There is room in memory for one of these.
  for (std::int64_t n = 3; n < 6; ++n) offer(lanes, record(n, "a"));
  log_.let_go_on();
  log_.wait_for_reads(3);
  EXPECT_EQ(lanes.in_flight(), 4U);
  EXPECT_EQ(lanes.finished().front().offset, 1);
  log_.heal();
  EXPECT_EQ(offsets(runs_.next_finished()), (Offsets{2, 3, 4}));
  EXPECT_EQ(offsets(runs_.next_finished()), (Offsets{5}));
}

TEST_F(ParkedRecords, OfARevokedPartitionAreDropped) {
  Lanes lanes(log_.settings(), runs_.handler());
  auto [first, finish_first] = fill(lanes);
  for (std::int64_t n = 2; n < 6; ++n) offer(lanes, record(n, "a"));
  runs_.next_finished();
  const std::vector<std::int32_t> lost{0};
  EXPECT_FALSE(lanes.revoke(lost, 0ms).complete);
  EXPECT_EQ(lanes.in_flight(), 0U) << "the run in hand takes no room any more";
  EXPECT_EQ(lanes.in_flight_of_share("any"), 0U);
  EXPECT_EQ(lanes.room(), 10U);
  finish_first(Next::idle);
  EXPECT_TRUE(lanes.stop(1min));
  EXPECT_EQ(runs_.seen(), 2U);
}

TEST_F(ParkedRecords, WhosePartitionIsRevokedDuringAFailedReadAreDropped) {
  Lanes lanes(one_worker(), runs_.handler());
  auto [first, finish_first] = fill(lanes);
  for (std::int64_t n = 2; n < 4; ++n) offer(lanes, record(n, "a"));
  runs_.next_finished();
  log_.hold();
  log_.fail();
  finish_first(Next::idle);
  log_.wait_for_reads(1);
  const std::vector<std::int32_t> lost{0};
  const auto revoked = lanes.revoke(lost, 0ms);
  EXPECT_FALSE(revoked.complete);
  EXPECT_EQ(revoked.finished.front().offset, 1);
  // After the new assignment the partition starts at 2 again.
  const std::vector<PartitionRange> again{{0, 1, 0, 4, 2}};
  lanes.assign(again);
  offer(lanes, record(2, "a"));
  log_.let_go_on();
  log_.wait_for_reads(2);
  log_.heal();
  EXPECT_EQ(offsets(runs_.next_finished()), (Offsets{2}));
  EXPECT_TRUE(lanes.stop(1min));
  EXPECT_EQ(runs_.seen(), 3U);
  EXPECT_EQ(lanes.finished().front().offset, 2);
}

TEST_F(ParkedRecords, ThatCanNotBeReadDoNotKeepAStopWaiting) {
  auto settings = one_worker();
  settings.retry_interval = 10min;
  Lanes lanes(settings, runs_.handler());
  auto [first, finish_first] = fill(lanes);
  offer(lanes, record(2, "a"));
  runs_.next_finished();
  log_.hold();
  log_.fail();
  finish_first(Next::idle);
  log_.wait_for_reads(1);
  EXPECT_FALSE(lanes.stop(0ms));
  log_.let_go_on();
  EXPECT_TRUE(lanes.stop(1min));
  EXPECT_EQ(lanes.in_flight(), 0U);
  EXPECT_EQ(lanes.in_flight_of_share("any"), 0U);
  EXPECT_EQ(lanes.finished().front().offset, 1);
}

}  // namespace
}  // namespace conversed::queue
