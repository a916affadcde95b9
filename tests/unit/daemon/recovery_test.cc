#include "daemon/recovery.h"

#include <algorithm>
#include <condition_variable>
#include <mutex>
#include <set>

#include "queue/lanes.h"
#include "tests/unit/daemon/chain_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using queue::Next;

// A log in memory and the daemon's recovery, Lanes, chains and store over many starts. What would
// bring the daemon down leaves its run unfinished and ends this start: a kill, to all that is kept.
class RecoveryTest : public ChainTest {
 protected:
  static constexpr std::size_t in_flight = 4;

  // Appended in this order, each in a session of its own name, so that each has its own lane.
  void append(const std::string& session_id, const std::string& text) {
    key_ = session("plain", session_id);
    log_.push_back(record(event(text)));
  }

  queue::PartitionRange range() const {
    return {0, epoch_, 0, static_cast<std::int64_t>(log_.size()), committed_};
  }

  // A start that goes no further than to find out what the last stop has left.
  std::map<std::int32_t, std::int64_t> found() {
    Recovery recovery(*store_, clock_);
    const std::vector ranges{range()};
    EXPECT_TRUE(recovery.begin(ranges, in_flight));
    suspected_ = recovery.suspect_before(0);
    EXPECT_EQ(recovery.going_on(), !store_->was_clean());
    return recovery.one_by_one_below();
  }

  enum class End : std::uint8_t { worked_off, went_down };

  // From the start to where nothing is left, or to where `deadly` or the `kill_at`-th Turn of this
  // start brings it down.
  End run_daemon(const std::set<std::string>& deadly, std::size_t kill_at = 1'000) {
    Recovery recovery(*store_, clock_);
    const std::vector ranges{range()};
    queue::Assignment with;
    if (run_.empty()) {
      EXPECT_TRUE(recovery.begin(ranges, in_flight));
      EXPECT_TRUE(store_->mark_running());
    } else {
      recovery.begin_run(run_);
      with.one_by_one_below = recovery.take_up(ranges, in_flight).value();
      recovers_ = !with.one_by_one_below.empty();
    }
    suspect_before_ = recovery.suspect_before(0);
    begun_.clear();
    went_down_ = false;
    std::set<std::string> handled;
    std::unique_ptr<queue::Lanes> lanes;
    const auto handler = [&](queue::Run&& run, queue::Finish finish) {
      const Next next = handle(std::move(run), recovery.care(*lanes), deadly, kill_at);
      finish(next);
      const std::lock_guard lock(mutex_);
      changed_.notify_all();
    };
    queue::LanesSettings settings;
    settings.workers = 1;
    settings.max_run = 1;
    settings.one_by_one_below = recovery.one_by_one_below();
    lanes = std::make_unique<queue::Lanes>(settings, handler);
    lanes->assign(ranges, with);
    recovery.taken_up();
    lanes->offer({log_.begin() + committed_, log_.end()});
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return went_down_ || lanes->in_flight() == 0; });
    }
    lanes->stop(1min);
    const auto finished = lanes->finished();
    if (!finished.empty()) committed_ = finished.front().offset + 1;
    recovered_ = recovery.done(*lanes);
    lanes.reset();
    if (!run_.empty() && !went_down_) {
      const std::vector<std::int32_t> lost{0};
      recovery.giving_up(lost);
      EXPECT_TRUE(recovery.given_up(lost));
    }
    return went_down_ ? End::went_down : End::worked_off;
  }

  void restart() {
    store_.reset();
    auto opened = store::Store::open({.data_dir = folder_.path()}, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    cache_ = std::make_unique<api::AssetsCache>(store_->assets());
    clock_.advance(1s);
  }

  // The texts of the events that were begun in the last start, in order.
  const Texts& begun() const { return begun_; }

  std::vector<queue::LogRecord> log_;
  std::int64_t committed_ = 0;
  std::int64_t epoch_ = 1;
  std::optional<model::Timestamp> suspected_;
  bool recovered_ = false;
  std::string run_;        // of a daemon among others; empty: of one that is alone
  bool recovers_ = false;  // it has found something to recover

 private:
  Next handle(queue::Run run, Care care, const std::set<std::string>& deadly, std::size_t kill_at) {
    {
      const std::lock_guard lock(mutex_);
      if (went_down_) return Next::abandoned;
    }
    auto chain = build_chain(context(), {.key = *model::SessionKey::decode(run.key),
                                         .records = run.records,
                                         .care = care,
                                         .refused = {},
                                         .attempted = {}});
    EXPECT_TRUE(chain);
    if (chain->turns > 0) {
      const auto& record = run.records.front().record;
      const auto begun =
          model::decode_event(record.key, record.id, record.type, record.trace_id, record.value);
      begun_.push_back(*begun->text);
      if (deadly.contains(*begun->text) || begun_.size() == kill_at) {
        const std::lock_guard lock(mutex_);
        went_down_ = true;
        return Next::abandoned;
      }
    }
    if (chain->changes) {
      EXPECT_EQ(commit(*chain), Outcome::committed);
    }
    return chain->drain_more ? Next::again : Next::idle;
  }

  std::mutex mutex_;
  std::condition_variable changed_;
  bool went_down_ = false;
  Texts begun_;  // the worker's, while there is one
};

using Limits = std::map<std::int32_t, std::int64_t>;

TEST_F(RecoveryTest, ARestartInTheMiddleKeepsTheLimitsOfTheFirstStart) {
  for (const auto* name : {"a", "b", "c", "d", "e", "f"}) append(name, name);
  ASSERT_TRUE(store_->mark_running());
  restart();
  ASSERT_EQ(found(), (Limits{{0, 4}}));
  EXPECT_EQ(suspected_, clock_.now());
  const auto first_start = *suspected_;
  restart();
  // Nothing has run yet: whatever was accepted before the first start is suspected still, and only
  // that.
  EXPECT_EQ(found(), (Limits{{0, 4}}));
  EXPECT_EQ(suspected_, first_start);
  ASSERT_EQ(run_daemon({}, 3), End::went_down);
  EXPECT_EQ(committed_, 2);
  append("g", "g");
  restart();
  EXPECT_EQ(found(), (Limits{{0, 4}}));
  EXPECT_FALSE(suspected_);
}

TEST_F(RecoveryTest, ItsEndClearsCountsAndLimits) {
  for (const auto* name : {"a", "b", "c", "d", "e", "f"}) append(name, name);
  ASSERT_TRUE(store_->mark_running());
  restart();
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_EQ(begun(), (Texts{"a", "b", "c", "d", "e", "f"}));
  EXPECT_TRUE(recovered_);
  EXPECT_TRUE(store_->attempts().recorded()->marks.empty());
  EXPECT_FALSE(store_->attempts().recorded()->counts);
  // A stop behind it is one that nothing is known of.
  append("g", "g");
  restart();
  EXPECT_EQ(found(), (Limits{{0, 7}}));
  EXPECT_EQ(suspected_, clock_.now());
}

TEST_F(RecoveryTest, WhatEndedWithNothingLeftToRunIsClearedByTheNextStart) {
  for (const auto* name : {"a", "b"}) append(name, name);
  ASSERT_TRUE(store_->mark_running());
  restart();
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_TRUE(recovered_);
  EXPECT_FALSE(store_->attempts().recorded()->marks.empty());
  ASSERT_TRUE(store_->mark_clean_stop());
  restart();
  EXPECT_TRUE(found().empty());
  EXPECT_TRUE(store_->attempts().recorded()->marks.empty());
  EXPECT_FALSE(store_->attempts().recorded()->counts);
}

TEST_F(RecoveryTest, AStopInItsMiddleLeavesItToTheNextStart) {
  for (const auto* name : {"a", "b", "c"}) append(name, name);
  ASSERT_TRUE(store_->mark_running());
  restart();
  ASSERT_EQ(run_daemon({}, 2), End::went_down);
  EXPECT_FALSE(recovered_);  // so that the stop is not marked as a clean one
  restart();
  EXPECT_EQ(found(), (Limits{{0, 3}}));
}

TEST_F(RecoveryTest, APartitionOfAnotherEpochGetsANewLimit) {
  for (const auto* name : {"a", "b", "c", "d", "e", "f"}) append(name, name);
  ASSERT_TRUE(store_->mark_running());
  restart();
  ASSERT_EQ(found(), (Limits{{0, 4}}));
  committed_ = 3;
  epoch_ = 2;
  restart();
  EXPECT_EQ(found(), (Limits{{0, 6}}));
  append("g", "g");
  restart();
  EXPECT_EQ(found(), (Limits{{0, 6}}));  // and keeps it
}

TEST_F(RecoveryTest, APoisonEventIsGivenUpAndInnocentOnesAreNot) {
  for (const auto* name : {"a", "b", "boom", "c", "d", "e", "f"}) append(name, name);
  // In hand without a record.
  ASSERT_EQ(run_daemon({"boom"}), End::went_down);
  std::size_t times = 1;
  for (restart(); run_daemon({"boom"}) == End::went_down; restart()) {
    ASSERT_LE(++times, 3U);
    EXPECT_EQ(begun().back(), "boom");
    append("later" + std::to_string(times), "x");
  }
  EXPECT_EQ(times, 3U);
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_EQ(letters()[0].key.session_id, "boom");
  for (const auto* name : {"a", "b", "c", "d", "e", "f", "later2", "later3"}) {
    key_ = session("plain", name);
    EXPECT_EQ(texts().size(), 1U) << name;
  }
}

TEST_F(RecoveryTest, InACrashLoopUnderLoadTheLimitDoesNotMoveAndComesToAnEnd) {
  for (const auto* name : {"a", "b", "c", "d", "e", "f"}) append(name, name);
  ASSERT_TRUE(store_->mark_running());
  restart();
  // Each start works off one event and dies at the next; four newer ones arrive meanwhile.
  int starts = 0;
  while (run_daemon({}, 2) == End::went_down && !recovered_) {
    ASSERT_LE(++starts, 3);
    for (int n = 0; n < 4; ++n) append("new" + std::to_string(log_.size()), "x");
    restart();
    EXPECT_EQ(found(), (Limits{{0, 4}}));
  }
  EXPECT_EQ(starts, 3);
  EXPECT_TRUE(letters().empty());
}

// Begun with a record while the recovery went on, although it did not wait for it: it counts, so
// the recovery has to come to it before it may forget its counts.
TEST_F(RecoveryTest, WhatIsBegunBeyondTheLimitsBelongsToTheRecoveryFromThereOn) {
  for (const auto* name : {"a", "b", "c", "d", "e", "boom"}) append(name, name);
  ASSERT_TRUE(store_->mark_running());
  restart();
  ASSERT_EQ(found(), (Limits{{0, 4}}));
  EXPECT_EQ(build({log_[5]}, Care::record_attempts).turns, 1U);  // and the daemon goes down
  restart();
  EXPECT_EQ(found(), (Limits{{0, 6}}));
  for (int count = 2; count <= 3; ++count) {
    ASSERT_EQ(run_daemon({"boom"}), End::went_down);
    restart();
  }
  EXPECT_EQ(run_daemon({"boom"}), End::worked_off);
  ASSERT_EQ(letters().size(), 1U);
}

// --- One daemon after the other takes the partition up -------------------------------------------

TEST_F(RecoveryTest, WhatADaemonHasGivenUpTheNextOneNeedNotRecover) {
  append("a", "a");
  run_ = "first";
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_FALSE(recovers_);
  append("b", "b");
  run_ = "second";
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_FALSE(recovers_);
  EXPECT_EQ(begun(), (Texts{"b"}));
}

TEST_F(RecoveryTest, WhatBringsDownThreeDaemonsInTurnIsADeadLetter) {
  for (const auto* name : {"a", "b", "boom", "c", "d"}) append(name, name);
  for (const auto* run : {"first", "second", "third"}) {
    run_ = run;
    ASSERT_EQ(run_daemon({"boom"}), End::went_down) << run;
    EXPECT_EQ(recovers_, run_ != "first");
    append("later than " + run_, "x");
    restart();
  }
  run_ = "fourth";
  ASSERT_EQ(run_daemon({"boom"}), End::worked_off);
  EXPECT_TRUE(recovered_);
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_EQ(letters()[0].key.session_id, "boom");
  for (const auto* name : {"a", "b", "c", "d", "later than first", "later than third"}) {
    key_ = session("plain", name);
    EXPECT_EQ(texts().size(), 1U) << name;
  }
  // And with that it is over.
  append("e", "e");
  run_ = "fifth";
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_FALSE(recovers_);
}

TEST_F(RecoveryTest, ARunThatBeginsNothingElseClearsWhatItHasRecovered) {
  for (const auto* name : {"a", "b"}) append(name, name);
  run_ = "first";
  ASSERT_EQ(run_daemon({"a"}), End::went_down);
  run_ = "second";
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_TRUE(recovers_);
  // Its marks are there yet, since no run came behind the recovery: the next one goes through it
  // with nothing left below them, and ends it.
  for (const auto* run : {"third", "fourth"}) {
    append(run, run);
    run_ = run;
    ASSERT_EQ(run_daemon({}), End::worked_off);
  }
  EXPECT_FALSE(recovers_);
  EXPECT_FALSE(store_->attempts().recorded()->counts);
  EXPECT_TRUE(store_->attempts().recorded()->marks.empty());
}

}  // namespace
}  // namespace conversed::daemon
