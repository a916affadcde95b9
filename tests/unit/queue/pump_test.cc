#include "queue/pump.h"

#include <gtest/gtest.h>

#include <condition_variable>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <set>

#include "queue/file/file_log.h"
#include "tests/support/kept_keys.h"
#include "tests/support/temp_folder.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

class PumpTest : public testing::Test {
 protected:
  void SetUp() override {
    settings_.partitions = 3;
    open();
  }
  void open() {
    log_.reset();
    auto log = FileLog::open(*open_disk(folder_ / "log"), settings_, kept_, clock_);
    ASSERT_TRUE(log.has_value());
    log_ = std::move(*log);
  }
  void append(int from, int to) {
    for (int n = from; n < to; ++n) {
      log_->append(Record{"key" + std::to_string(n % 11), std::to_string(n), "", "", ""},
                   [](const Result<Appended>& outcome) { EXPECT_TRUE(outcome.has_value()); });
    }
  }
  // Notes the ids of its runs and finishes them at once.
  Handler noting() {
    return [this](queue::Run&& run, Finish finish) {
      {
        const std::lock_guard lock(mutex_);
        for (const auto& each : run.records) ++handled_[std::stoi(each.record.id)];
      }
      finish(Next::idle);
      changed_.notify_all();
    };
  }
  bool wait_for(std::size_t records) {
    std::unique_lock lock(mutex_);
    return changed_.wait_for(lock, 1min, [&] { return handled_.size() >= records; });
  }

  tests::TempFolder folder_;
  FileLogSettings settings_;
  tests::KeysInMemory kept_;
  model::SystemClock clock_;
  std::unique_ptr<FileLog> log_;
  std::mutex mutex_;
  std::condition_variable changed_;
  std::map<int, int> handled_;  // by id: the count of runs
};

TEST_F(PumpTest, EverythingIsHandledOnceAndCommittedAtTheStop) {
  append(0, 2'000);
  LanesSettings tight;
  tight.in_flight_limit = 50;
  Lanes lanes(tight, noting());
  auto pump = Pump::start({}, *log_, lanes);
  ASSERT_TRUE(pump.has_value());
  append(2'000, 3'000);
  ASSERT_TRUE(wait_for(3'000));
  EXPECT_TRUE((*pump)->stop(1min));
  EXPECT_TRUE((*pump)->stop(0ms));
  for (const auto& [id, times] : handled_) EXPECT_EQ(times, 1) << id;
  const auto ranges = log_->ranges().value();
  for (const auto& range : ranges) EXPECT_EQ(range.committed, range.end);
}

TEST_F(PumpTest, UnfinishedRecordsComeAgain) {
  append(0, 100);
  std::set<std::string> begun;
  {
    std::vector<Finish> held;
    Lanes lanes({}, [&](queue::Run&& run, Finish finish) {
      const std::lock_guard lock(mutex_);
      begun.insert(run.key);
      held.push_back(std::move(finish));
      changed_.notify_all();
    });
    auto pump = Pump::start({}, *log_, lanes);
    {
      std::unique_lock lock(mutex_);
      ASSERT_TRUE(changed_.wait_for(lock, 1min, [&] { return begun.size() == 11; }));
    }
    EXPECT_FALSE((*pump)->stop(0ms));
    for (auto& finish : held) finish(Next::idle);
  }
  open();
  Lanes lanes({}, noting());
  auto pump = Pump::start({}, *log_, lanes);
  EXPECT_TRUE(wait_for(100));
}

TEST_F(PumpTest, AppendsWaitForTheBacklogOfTheLanes) {
  settings_.records_a_pause = 1;  // so 1,000 records in the lanes are a pause of a second
  settings_.max_pause = 24h;
  settings_.finished_lately = 24h;
  open();
  append(0, 2'000);
  std::vector<Finish> held;
  Lanes lanes({}, [&](queue::Run&&, Finish finish) {
    const std::lock_guard lock(mutex_);
    held.push_back(std::move(finish));
    changed_.notify_all();
  });
  auto pump = Pump::start({}, *log_, lanes);
  {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, 1min, [&] { return held.size() == 11; }));
    for (auto& finish : held) finish(Next::idle);
    held.clear();
  }
  // An append waits once the log knows of a finished record.
  std::future<bool> appended;
  for (int tries = 0; tries < 20'000; ++tries) {
    auto stored = std::make_shared<std::promise<bool>>();
    appended = stored->get_future();
    log_->append(Record{std::to_string(tries), "id", "", "", ""},
                 [stored](const auto& outcome) { stored->set_value(outcome.has_value()); });
    if (appended.wait_for(50ms) == std::future_status::timeout) break;
  }
  ASSERT_TRUE(appended.valid());
  EXPECT_EQ(appended.wait_for(0ms), std::future_status::timeout);
  log_->stop();
  EXPECT_TRUE(appended.get());
  EXPECT_FALSE((*pump)->stop(0ms));
  const std::lock_guard lock(mutex_);
  for (auto& finish : held) finish(Next::idle);
}

TEST_F(PumpTest, AHeldPumpHandsOutNothingUntilReleased) {
  Lanes lanes({}, noting());
  auto pump = Pump::start({}, *log_, lanes);
  (*pump)->hold();
  append(0, 50);
  (*pump)->release();
  EXPECT_TRUE(wait_for(50));
}

// Notes its calls. Refuses the first `refusals` take_up() calls.
class NotingOwner final : public PartitionOwner {
 public:
  explicit NotingOwner(int refusals) : refusals_(refusals) {}
  Result<std::vector<std::string>> take_up(std::span<const PartitionRange> partitions) override {
    partitions_ = partitions.size();
    if (refusals_-- > 0) return model::fail(Errc::unavailable, "told to");
    return std::vector<std::string>{"touched"};
  }
  void given_up(std::span<const std::int32_t>, bool) override {}

  std::size_t partitions_ = 0;
  int refusals_;
};

TEST_F(PumpTest, NothingRunsBeforeItsOwnerHasTakenItUp) {
  append(0, 1);
  NotingOwner owner(3);
  std::vector<int> refusals;  // the refusals that remain, at each run
  std::vector<std::string> keys;
  // One worker: two would race for these vectors.
  Lanes lanes({.workers = 1}, [&](queue::Run&& run, Finish finish) {
    {
      const std::lock_guard lock(mutex_);
      refusals.push_back(owner.refusals_);
      keys.push_back(run.key);
    }
    finish(Next::idle);
    changed_.notify_all();
  });
  std::vector<std::string> errors;
  PumpSettings settings;
  settings.retry_interval = 1ms;
  settings.owner = &owner;
  settings.report = [&](const Error& error) { errors.push_back(error.message); };
  auto pump = Pump::start(settings, *log_, lanes);
  ASSERT_TRUE(pump);
  {
    std::unique_lock lock(mutex_);
    ASSERT_TRUE(changed_.wait_for(lock, 1min, [&] { return keys.size() == 2; }));
  }
  EXPECT_TRUE((*pump)->stop(1min));
  EXPECT_EQ(refusals, (std::vector<int>{-1, -1}));
  EXPECT_EQ(keys, (std::vector<std::string>{"touched", "key0"}));
  EXPECT_EQ(errors, (std::vector<std::string>(3, "told to")));
  EXPECT_EQ(owner.partitions_, 3U);
}

}  // namespace
}  // namespace conversed::queue
