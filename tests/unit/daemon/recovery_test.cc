#include "daemon/turns/recovery.h"

#include <deque>
#include <set>

#include "tests/unit/daemon/turn_batch_world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using Counted = std::vector<store::Attempts::Counted>;

// A log in memory with the daemon's batches, store and crash attribution, over many starts. A crash
// ends the start as a kill does: events in hand stay unfinished and noted.
class RecoveryTest : public TurnBatchTest {
 protected:
  static constexpr std::size_t in_flight = 4;

  // Appends an event to the session of this name.
  void append(const std::string& session_id, const std::string& text) {
    key_ = session("plain", session_id);
    log_.push_back(record(event(text)));
  }
  void append_all(const Texts& names) {
    for (const auto& name : names) append(name, name);
  }

  std::vector<queue::PartitionRange> ranges() const {
    return {{0, 1, 0, static_cast<std::int64_t>(log_.size()), committed_}};
  }

  // The fates of events in one start.
  struct Fates {
    std::set<std::string> deadly{};  // crash the daemon while they run
    std::set<std::string> held{};    // stay in hand until a crash, or until all others have run
    std::set<std::string> unsaid{};  // the daemon crashes right after their commit
  };
  enum class End : std::uint8_t { worked_off, went_down };

  // Runs from the start to the end of the log, or to a crash.
  End run_daemon(const Fates& fates) {
    begin_start();
    End end = End::worked_off;
    for (auto at = static_cast<std::size_t>(committed_); at < log_.size(); ++at) {
      if (run(at, fates) == End::worked_off) continue;
      end = End::went_down;
      break;
    }
    if (end == End::worked_off) commit_held();
    while (committed_ < next_offset_ && finished_.contains(committed_)) ++committed_;
    if (!run_.empty() && end == End::worked_off) {
      EXPECT_TRUE(recovery_->give_up(std::vector<std::int32_t>{0}, Recovery::InHand::finished));
    }
    return end;
  }

  void begin_start() {
    crashed_.recorder = nullptr;
    alone_.clear();
    begun_.clear();
    life_ = std::make_unique<Recovery>(*store_);
    recovery_ = life_.get();
    if (run_.empty()) {
      auto opened = FlightRecorder::open(flight_recorder_file(folder_.path()), boot_);
      ASSERT_TRUE(opened) << opened.error().message;
      crashed_.recorder = opened->get();
      crashed_.recorders.push_back(std::move(*opened));
      ASSERT_TRUE(recovery_->begin(crashed_.recorder, ranges()));
    } else {
      recovery_->begin_run(run_);
      ASSERT_TRUE(recovery_->take_up(ranges(), in_flight));
    }
  }

  void restart() {
    recovery_ = nullptr;
    life_.reset();
    store_.reset();
    auto opened = store::Store::open(place_.store(), clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = std::move(*opened);
    cache_ = std::make_unique<api::AssetsCache>(store_->assets());
    clock_.advance(1s);
  }

  Counted counted() { return store_->first().attempts().counted().value(); }
  Counted counted_as(const std::map<std::string, int>& counts) {
    Counted expected;
    for (const auto& logged : log_) {
      if (const auto found = counts.find(text_of(logged)); found != counts.end()) {
        expected.push_back({logged.record.id, 0, found->second});
      }
    }
    std::ranges::sort(expected, {}, &store::Attempts::Counted::event_id);
    return expected;
  }
  std::vector<std::string> said_by(const std::string& session_id) {
    key_ = session("plain", session_id);
    return texts();
  }

  std::vector<queue::LogRecord> log_;
  std::string boot_ = "this boot";
  std::string run_;  // the run of a daemon in a cluster; empty: a daemon without others
  Texts begun_;      // the events that began in the last start, in order
  Texts alone_;      // the events of `begun_` that ran alone

 private:
  // The notes of events in hand at crashes. They stay in the file.
  struct Crashed {
    FlightRecorder* recorder = nullptr;
    std::deque<std::unique_ptr<FlightRecorder>> recorders;
    std::vector<std::unique_ptr<FlightRecorder::Notes>> all_noted;
  };
  struct Held {
    std::size_t at;
    TurnBatch batch;
    std::unique_ptr<FlightRecorder::Notes> noted;
  };

  static std::string text_of(const queue::LogRecord& logged) {
    const auto& record = logged.record;
    return *model::decode_event(record.key, record.id, record.type, record.trace_id, record.value)
                ->text;
  }

  // Keeps the notes of the events in hand.
  End crash(std::unique_ptr<FlightRecorder::Notes> noted) {
    crashed_.all_noted.push_back(std::move(noted));
    for (auto& each : held_) crashed_.all_noted.push_back(std::move(each.noted));
    held_.clear();
    return End::went_down;
  }

  void commit_held() {
    for (auto& each : held_) {
      EXPECT_EQ(commit_now(each.batch), Outcome::committed);
      finished_.insert(static_cast<std::int64_t>(each.at));
    }
    held_.clear();
  }

  End run(std::size_t at, const Fates& fates) {
    const std::vector records{log_[at]};
    const auto text = text_of(log_[at]);
    key_ = *model::SessionKey::decode(log_[at].record.key);
    auto noted = std::make_unique<FlightRecorder::Notes>(crashed_.recorder);
    TurnBatch batch = build(records, {.noted = noted.get()});
    if (batch.wants_alone) {
      commit_held();
      batch = build(records, {.alone = true, .noted = noted.get()});
      alone_.push_back(text);
    }
    if (batch.after.turns > 0) begun_.push_back(text);
    if (batch.after.turns > 0 && fates.deadly.contains(text)) return crash(std::move(noted));
    if (batch.after.turns > 0 && fates.held.contains(text)) {
      held_.push_back({at, std::move(batch), std::move(noted)});
      return End::worked_off;
    }
    if (batch.changes) {
      EXPECT_EQ(commit_now(batch), Outcome::committed);
    }
    if (fates.unsaid.contains(text)) return crash(std::move(noted));
    recovery_->settled(batch.commit.attempts_settled);
    finished_.insert(static_cast<std::int64_t>(at));
    return End::worked_off;
  }

  std::int64_t committed_ = 0;
  std::set<std::int64_t> finished_;
  std::unique_ptr<Recovery> life_;
  Crashed crashed_;
  std::vector<Held> held_;
};

TEST_F(RecoveryTest, AnEventIsGivenUpAfterThreeCrashesAndItsNeighborsRunOnce) {
  append_all({"a", "b", "c", "boom", "d", "e"});
  ASSERT_EQ(run_daemon({.deadly = {"boom"}, .held = {"a", "b", "c"}}), End::went_down);
  EXPECT_TRUE(alone_.empty());
  std::size_t crashes = 1;
  for (restart(); run_daemon({.deadly = {"boom"}}) == End::went_down; restart()) {
    ASSERT_LE(++crashes, 3U);
    EXPECT_EQ(alone_, crashes == 2 ? (Texts{"a", "b", "c", "boom"}) : Texts{"boom"});
    append("later" + std::to_string(crashes), "x");
  }
  EXPECT_EQ(crashes, 3U);
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_EQ(letters()[0].key.session_id, "boom");
  for (const auto* name : {"a", "b", "c", "d", "e", "later2", "later3"}) {
    EXPECT_EQ(said_by(name).size(), 1U) << name;
  }
  EXPECT_TRUE(counted().empty());
}

TEST_F(RecoveryTest, ACountIsForgottenWithItsEventsCommit) {
  append_all({"a", "b", "boom"});
  ASSERT_EQ(run_daemon({.deadly = {"boom"}, .held = {"a", "b"}}), End::went_down);
  restart();
  ASSERT_EQ(run_daemon({.deadly = {"b"}}), End::went_down);
  EXPECT_EQ(alone_, (Texts{"a", "b"}));
  EXPECT_EQ(counted(), counted_as({{"b", 1}, {"boom", 1}}));
  restart();
  begin_start();
  EXPECT_EQ(counted(), counted_as({{"b", 2}, {"boom", 1}})) << "only b was in hand in both crashes";
}

TEST_F(RecoveryTest, OnlyEventsThatWereInHandRunAlone) {
  append_all({"a", "boom", "b", "c", "d"});
  ASSERT_EQ(run_daemon({.deadly = {"boom"}}), End::went_down);
  restart();
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_EQ(begun_, (Texts{"boom", "b", "c", "d"}));
  EXPECT_EQ(alone_, Texts{"boom"});
  EXPECT_TRUE(letters().empty());
}

TEST_F(RecoveryTest, StartsThatEndBeforeTheLoneRunsCountNothing) {
  append_all({"a"});
  ASSERT_EQ(run_daemon({.deadly = {"a"}}), End::went_down);
  for (int start = 0; start < 4; ++start) {
    restart();
    begin_start();
    EXPECT_EQ(counted(), counted_as({{"a", 1}})) << start;
  }
  restart();
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_EQ(alone_, Texts{"a"});
  EXPECT_EQ(said_by("a").size(), 1U);
}

TEST_F(RecoveryTest, AStartThatEndsBeforeItsRecorderBeginsIsNotCountedTwice) {
  append_all({"a"});
  ASSERT_EQ(run_daemon({.deadly = {"a"}}), End::went_down);
  auto recorder = FlightRecorder::open(flight_recorder_file(folder_.path()), boot_).value();
  const auto left = recorder->left();
  const std::vector<model::Position> committed{{1, 0, 0}};
  ASSERT_TRUE(store_->first().attempts().attribute(left.run, left.events, committed));
  restart();
  begin_start();
  EXPECT_EQ(counted(), counted_as({{"a", 1}}));
}

TEST_F(RecoveryTest, ALossOfPowerAttributesNothing) {
  append_all({"a"});
  ASSERT_EQ(run_daemon({.deadly = {"a"}}), End::went_down);
  boot_ = "another boot";
  restart();
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_TRUE(alone_.empty());
  EXPECT_EQ(said_by("a").size(), 1U);
}

TEST_F(RecoveryTest, ACommittedEventIsForgottenAlthoughItIsStillNoted) {
  append_all({"a", "b"});
  ASSERT_EQ(run_daemon({.unsaid = {"a"}}), End::went_down);
  restart();
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_EQ(begun_, Texts{"b"}) << "a is committed";
  EXPECT_EQ(counted(), counted_as({{"a", 1}}));
  restart();
  begin_start();
  EXPECT_TRUE(counted().empty());
}

// --- Daemons of a cluster take the partition over, one after the other ---------------------------

TEST_F(RecoveryTest, AfterACleanHandoverNoEventRunsAlone) {
  append_all({"a"});
  run_ = "first";
  ASSERT_EQ(run_daemon({}), End::worked_off);
  append_all({"b"});
  run_ = "second";
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_EQ(begun_, Texts{"b"});
  EXPECT_TRUE(alone_.empty());
}

TEST_F(RecoveryTest, AnEventThatCrashesThreeDaemonsInTurnIsADeadLetter) {
  append_all({"a", "b", "boom", "c", "d"});
  for (const auto* run : {"first", "second", "third"}) {
    run_ = run;
    ASSERT_EQ(run_daemon({.deadly = {"boom"}}), End::went_down) << run;
    EXPECT_EQ(alone_, run_ == "first" ? Texts{} : Texts{"boom"}) << run;
    append("later than " + run_, "x");
    restart();
  }
  run_ = "fourth";
  ASSERT_EQ(run_daemon({.deadly = {"boom"}}), End::worked_off);
  ASSERT_EQ(letters().size(), 1U);
  EXPECT_EQ(letters()[0].key.session_id, "boom");
  for (const auto* name : {"a", "b", "c", "d", "later than first", "later than third"}) {
    EXPECT_EQ(said_by(name).size(), 1U) << name;
  }
  EXPECT_TRUE(counted().empty());
  // After the dead letter, events run side by side again.
  append_all({"e"});
  run_ = "fifth";
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_TRUE(alone_.empty());
}

TEST_F(RecoveryTest, EventsOfALeftPartitionThatMayHaveBeenInHandRunAlone) {
  append_all({"a", "b", "c", "d", "e", "f"});
  run_ = "first";
  ASSERT_EQ(run_daemon({.deadly = {"a"}}), End::went_down);
  run_ = "second";
  restart();
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_EQ(alone_, (Texts{"a", "b", "c", "d"}));
  EXPECT_EQ(begun_, (Texts{"a", "b", "c", "d", "e", "f"}));
  EXPECT_TRUE(counted().empty());
}

TEST_F(RecoveryTest, EventsThatARunGivesUpUnreachedRunAloneInTheNext) {
  append_all({"a", "b", "c", "d", "e"});
  run_ = "first";
  ASSERT_EQ(run_daemon({.deadly = {"a"}}), End::went_down);
  run_ = "second";
  restart();
  begin_start();
  ASSERT_TRUE(recovery_->give_up(std::vector<std::int32_t>{0}, Recovery::InHand::finished));
  run_ = "third";
  restart();
  ASSERT_EQ(run_daemon({}), End::worked_off);
  EXPECT_EQ(alone_, (Texts{"a", "b", "c", "d"}));
}

TEST_F(RecoveryTest, NoMoreEventsRunAloneThanWereInFlightInAllLeftPartitions) {
  std::vector<queue::PartitionRange> many;
  for (std::int32_t partition = 0; partition < 3; ++partition) {
    many.push_back({partition, 1, 0, 100, 0});
  }
  Recovery first(*store_);
  first.begin_run("first");
  ASSERT_TRUE(first.take_up(many, in_flight));
  Recovery second(*store_);
  second.begin_run("second");
  ASSERT_TRUE(second.take_up(many, in_flight));
  std::size_t alone = 0;
  for (std::int64_t offset = 0; offset < 5; ++offset) {
    for (const auto& range : many) {
      const model::Position at{1, range.partition, offset};
      const auto one = event("x");
      const auto crashes = second.crashes(one, range.partition, at);
      if (!crashes) continue;
      ++alone;
      EXPECT_TRUE(second.start({one.id, range.partition, offset}, *crashes));
    }
  }
  EXPECT_EQ(alone, in_flight);
}

TEST_F(RecoveryTest, InboxEventsOfALeftPartitionRunAloneAndLaterEventsDoNot) {
  Recovery first(*store_);
  first.begin_run("first");
  ASSERT_TRUE(first.take_up(ranges(), in_flight));
  const auto waited = event("waited");
  clock_.advance(1s);
  Recovery second(*store_);
  second.begin_run("second");
  ASSERT_TRUE(second.take_up(ranges(), in_flight));
  EXPECT_EQ(second.crashes(waited, 1, std::nullopt), std::nullopt) << "partition 1 was not left";
  EXPECT_EQ(second.crashes(waited, 0, std::nullopt), 1);
  EXPECT_EQ(second.crashes(event("later"), 0, std::nullopt), std::nullopt);
  EXPECT_EQ(second.crashes(waited, 0, std::nullopt), 1) << "counted until the event is settled";
}

}  // namespace
}  // namespace conversed::daemon
