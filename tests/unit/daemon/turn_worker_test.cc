#include "daemon/turns/turn_worker.h"

#include <atomic>
#include <latch>
#include <mutex>
#include <optional>
#include <set>
#include <thread>

#include "api/live/busy_sessions.h"
#include "api/live/pending_replies.h"
#include "daemon/ops/metrics.h"
#include "daemon/turns/partition_keeper.h"
#include "daemon/turns/poison_search.h"
#include "store/commit/session_commit_writes.h"
#include "store/conversation/recent_sessions.h"
#include "tests/unit/daemon/turn_batch_world.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {
namespace {

// A worker on Lanes and a store. Turns tell the test when they begin and end, and on which thread.
class TurnWorkerTest : public TurnBatchTest {
 protected:
  static constexpr std::size_t workers = 4;

  TurnBatchContext watched() {
    TurnBatchContext made = context();
    made.stopwatch = [this] {
      looked();
      return std::chrono::steady_clock::time_point{};
    };
    return made;
  }

  // Called before and after each Turn.
  void looked() {
    thread_local bool within = false;
    within = !within;
    if (!within) {
      --running_;
      return;
    }
    const auto now = ++running_;
    const bool on_worker = [this] {
      const std::lock_guard lock(mutex_);
      return worker_threads_.contains(std::this_thread::get_id());
    }();
    if (!on_worker) {
      ++alone_;
      EXPECT_EQ(now, 1U);
      return;
    }
    // Makes all workers run side by side.
    if (first_.fetch_add(1) < workers) all_workers_.arrive_and_wait();
  }

  TurnPorts ports() {
    return {
        .deliver = [this](const auto&, bool older_are_known) { told_.push_back(older_are_known); },
        .call = [](const auto&, const auto&) {},
        .timer = [](const auto&, auto) {},
        .schedule = [](const auto&) {},
        .counted =
            [this](const auto&, auto) {
              ++committed_;
              committed_.notify_all();
            },
        .fatal = [](const model::Error& error) { ADD_FAILURE() << error.message; }};
  }

  Metrics metrics_;
  std::vector<bool> told_;  // to the Deliverer: whether older outputs are known
  std::mutex mutex_;
  std::set<std::thread::id> worker_threads_;
  std::atomic<std::size_t> running_{0};
  std::atomic<std::size_t> alone_{0};
  std::atomic<std::size_t> first_{0};
  std::atomic<std::size_t> committed_{0};
  std::latch all_workers_{workers};
};

TEST_F(TurnWorkerTest, EventsInHandAtACrashRunAloneAndOthersSideBySide) {
  constexpr std::size_t count = 300;
  std::vector<queue::LogRecord> records;
  for (std::size_t n = 0; n < count; ++n) {
    key_ = session("plain", std::to_string(n));
    records.push_back(record(event("x")));
  }
  const std::vector<store::InHand> left{{records[100].record.id, 0, 100},
                                        {records[101].record.id, 0, 101},
                                        {records[250].record.id, 0, 250}};
  const std::vector<model::Position> committed{{1, 0, 0}};
  ASSERT_TRUE(store_->first().attempts().attribute(1, left, committed));
  Recovery recovery(*store_);
  const std::vector<queue::PartitionRange> ranges{{0, 1, 0, count, 0}};
  ASSERT_TRUE(recovery.begin(nullptr, ranges));
  recovery_ = &recovery;
  api::KeyWatch watch;
  api::BusySessions busy;
  TurnWorker worker(watched(), watch, busy, metrics_, ports());
  queue::LanesSettings settings;
  settings.workers = workers;
  {
    queue::Lanes lanes(settings, [&](queue::Run&& run, queue::Finish finish) {
      {
        const std::lock_guard lock(mutex_);
        worker_threads_.insert(std::this_thread::get_id());
      }
      worker.handle(std::move(run), std::move(finish));
    });
    lanes.assign(ranges);
    lanes.offer(records);
    for (auto now = committed_.load(); now < count; now = committed_.load()) committed_.wait(now);
  }
  EXPECT_EQ(alone_.load(), left.size());
  EXPECT_TRUE(store_->first().attempts().counted()->empty());
  EXPECT_EQ(metrics_.turns.value(), count);
  store_->committer().stop();
}

TEST_F(TurnWorkerTest, ASessionThatChangesAfterItWasReadAheadIsReadAgain) {
  std::vector<queue::LogRecord> records{record(event("x"))};
  key_.user_id = "bob";
  run({event("x")});
  records.push_back(record(event("x")));
  api::KeyWatch watch;
  api::BusySessions busy;
  auto with = context();
  with.reads_ahead = true;
  TurnWorker worker(with, watch, busy, metrics_, ports());
  queue::LanesSettings settings;
  settings.workers = 1;
  {
    queue::Lanes lanes(settings, [&](queue::Run&& taken, queue::Finish finish) {
      // Bob's session was read with the first one.
      if (taken.in_a_row.empty()) {
        EXPECT_TRUE(store_->first().sessions().reset(key_));
      }
      worker.handle(std::move(taken), std::move(finish));
    });
    lanes.assign(std::vector<queue::PartitionRange>{{0, 1, 0, 3, 0}});
    lanes.offer(records);
    for (auto now = committed_.load(); now < 2; now = committed_.load()) committed_.wait(now);
  }
  EXPECT_EQ(metrics_.turn_conflicts.value(), 1);
  const auto session = *store_->first().sessions().load(key_);
  ASSERT_TRUE(session);
  EXPECT_EQ(session->version, 3);
  EXPECT_EQ(session->context["count"], 1);
  store_->committer().stop();
}

// A worker that keeps sessions in memory. Records run one by one, each in a run of its own.
class RecentTurnsTest : public TurnWorkerTest {
 protected:
  void SetUp() override {
    TurnWorkerTest::SetUp();
    auto with = context();
    with.recent = &recent_;
    worker_.emplace(with, watch_, busy_, metrics_, ports());
    queue::LanesSettings settings;
    settings.workers = 1;
    lanes_.emplace(settings, [this](queue::Run&& taken, queue::Finish finish) {
      worker_->handle(std::move(taken), std::move(finish));
    });
    lanes_->assign(std::vector<queue::PartitionRange>{{0, 1, 0, 100, 0}});
  }
  void TearDown() override {
    lanes_.reset();
    store_->committer().stop();
  }

  void run_inject(const std::string& text) {
    const auto before = committed_.load();
    lanes_->offer({record(event(text))});
    committed_.wait(before);
  }
  model::Session stored() { return **store_->first().sessions().load(key_); }
  void write(std::string_view sql) {
    ASSERT_TRUE(store_->committer().write_and_wait(
        [&](store::Writer& writer) { writer.connection().run(sql); }));
  }

  store::RecentSessions recent_;
  api::KeyWatch watch_;
  api::BusySessions busy_;
  std::optional<TurnWorker> worker_;
  std::optional<queue::Lanes> lanes_;
};

TEST_F(RecentTurnsTest, TheNextTurnOfASessionNeedsNoRead) {
  run_inject("x");
  // A change without a new version is not noticed.
  write("UPDATE sessions SET context = '{\"count\": 40}'");
  run_inject("x");
  EXPECT_EQ(metrics_.turn_conflicts.value(), 0);
  EXPECT_EQ(stored().context["count"], 2);
  EXPECT_TRUE(recent_.has(key_));
}

TEST_F(RecentTurnsTest, OlderOutputsAreKnownSinceTheFirstCommitThatToldOfThem) {
  key_ = session("hooked", "s");
  run_inject("x");
  run_inject("x");
  recent_.clear();  // as when partitions are taken up
  run_inject("x");
  run_inject("x");
  lanes_.reset();
  store_->committer().stop();
  EXPECT_EQ(told_, (std::vector{true, true, false, true}));
}

TEST_F(RecentTurnsTest, ASessionThatChangedBehindItsLastTurnIsReadAgain) {
  run_inject("x");
  run_inject("x");
  ASSERT_TRUE(store_->first().sessions().reset(key_));
  run_inject("x");
  EXPECT_EQ(metrics_.turn_conflicts.value(), 1);
  EXPECT_EQ(stored().context["count"], 1);
}

TEST_F(RecentTurnsTest, AResetSessionRunsItsInbox) {
  run_inject("call");
  run_inject("x");
  ASSERT_TRUE(stored().busy());
  ASSERT_EQ(stored().inbox_size, 1);
  ASSERT_TRUE(recent_.has(key_));
  ASSERT_TRUE(store_->first().sessions().reset(key_));
  lanes_->touch(key_.encode());
  EXPECT_TRUE(eventually([&] { return stored().inbox_size == 0; }));
  EXPECT_EQ(stored().context["count"], 1);
}

TEST_F(RecentTurnsTest, ATurnThatFailsOnAnOldSessionRunsOnTheNewOne) {
  run_inject("x");
  store::SessionCommit old{
      .key = key_, .expected_version = stored().version - 1, .after = stored()};
  old.after.context = {{"count", std::string(100'000, 'x')}};  // too large a context
  recent_.keep(store::encode(std::move(old)), {}, false);
  run_inject("x");
  EXPECT_EQ(stored().context["count"], 2);
  EXPECT_EQ(metrics_.dead_letters.value(), 0);
}

TEST_F(RecentTurnsTest, AnUnreadableProfileIsNotKept) {
  run_inject("profile");
  recent_.clear();
  write("UPDATE profiles SET data = '{'");
  run_inject("profile");
  EXPECT_EQ(metrics_.dead_letters.value(), 1);
  run_inject("profile");
  EXPECT_EQ(metrics_.dead_letters.value(), 2) << "the damaged profile was overwritten";
}

TEST_F(RecentTurnsTest, PartitionsThatAreTakenUpHaveNoRecentSessions) {
  run_inject("x");
  ASSERT_TRUE(recent_.has(key_));
  const std::vector<queue::PartitionRange> ranges{{0, 1, 0, 1, 0}};
  Ownership ownership(Ownership::Of::partitions);
  ownership.begin(1);
  Recovery recovery(*store_);
  ASSERT_TRUE(recovery.begin(nullptr, {}));
  PartitionKeeper keeper({}, *store_, ownership, recovery, busy_, recent_,
                         {.ownership_changed = [] {}, .touch = [](const auto&) {}});
  ASSERT_TRUE(keeper.take_up(ranges));
  EXPECT_FALSE(recent_.has(key_)) << "another owner may have erased the session and begun it anew";
}

class PartitionKeeperTest : public RecentTurnsTest {
 protected:
  PartitionKeeperTest() { ownership_.begin(1); }

  // With an event in the session's inbox.
  void SetUp() override {
    RecentTurnsTest::SetUp();
    run_inject("call");
    run_inject("x");
    ASSERT_EQ(stored().inbox_size, 1);
    busy_.set(key_, 0);
    ASSERT_TRUE(keeper_recovery_.emplace(*store_).begin(nullptr, {}));
    keeper_.emplace(PartitionKeeperSettings{.look_interval = std::chrono::milliseconds(1)}, *store_,
                    ownership_, *keeper_recovery_, busy_, recent_,
                    PartitionKeeperPorts{.ownership_changed = [] {}, .touch = [](const auto&) {}});
    ASSERT_TRUE(keeper_->take_up(std::vector<queue::PartitionRange>{{0, 1, 0, 1, 0}}));
  }
  void TearDown() override {
    keeper_->stop();
    RecentTurnsTest::TearDown();
  }
  std::int64_t inbox_size() { return busy_.inbox_size(key_.encode()); }
  void give_up() { keeper_->given_up(std::vector<std::int32_t>{0}, true); }

  Ownership ownership_{Ownership::Of::partitions};
  std::optional<Recovery> keeper_recovery_;
  std::optional<PartitionKeeper> keeper_;
};

TEST_F(PartitionKeeperTest, ForgetsTheInboxesOfLostPartitions) {
  EXPECT_EQ(inbox_size(), 1);
  give_up();
  EXPECT_EQ(inbox_size(), 0);
}

TEST_F(PartitionKeeperTest, ForgetsTheInboxThatALateCommitHasSet) {
  ASSERT_TRUE(keeper_->start());
  give_up();
  busy_.set(key_, 1);
  EXPECT_TRUE(eventually([&] { return inbox_size() == 0; }));
}

TEST_F(PartitionKeeperTest, KeepsTheInboxesOfItsPartitions) {
  ASSERT_TRUE(keeper_->start());
  model::SessionKey other = key_;
  other.user_id = "other";
  keeper_->given_up({}, true);
  busy_.set(other, 1);
  EXPECT_EQ(inbox_size(), 1);
  EXPECT_EQ(busy_.inbox_size(other.encode()), 1);
}

// Of two sessions, one has an event whose claim can't be read. The other's was in hand in a crash.
TEST_F(TurnWorkerTest, AnUnreadableRowDelaysNoEventThatRunsAlone) {
  run({event("loop")});
  const auto letter = letters().at(0).id;
  Event replay = event("unreadable");
  replay.claim = Claim{Claim::Kind::dead_letter, letter};
  std::vector<queue::LogRecord> records{record(replay)};
  const auto key_of_letter = key_.encode();
  key_ = session("plain", "other");
  records.push_back(record(event("alone")));
  write("UPDATE dead_letters SET key = 'damaged'");
  const std::vector<store::InHand> left{{records[1].record.id, 0, records[1].position.offset}};
  ASSERT_TRUE(
      store_->first().attempts().attribute(1, left, std::vector<model::Position>{{1, 0, 0}}));
  Recovery recovery(*store_);
  const std::vector<queue::PartitionRange> ranges{{0, 1, 0, 10, 0}};
  ASSERT_TRUE(recovery.begin(nullptr, ranges));
  recovery_ = &recovery;
  api::KeyWatch watch;
  api::BusySessions busy;
  TurnWorker worker(context(), watch, busy, metrics_, ports());
  queue::LanesSettings settings;
  settings.workers = 1;
  {
    queue::Lanes lanes(settings, [&](queue::Run&& taken, queue::Finish finish) {
      worker.handle(std::move(taken), std::move(finish));
    });
    lanes.assign(ranges);
    lanes.offer({records[0]});
    lanes.offer({records[1]});
    EXPECT_TRUE(eventually([&] { return committed_.load() == 1; }));
    write("UPDATE dead_letters SET key = '" + key_of_letter + "'");
    EXPECT_TRUE(eventually([&] { return committed_.load() == 2; }));
  }
  EXPECT_EQ(metrics_.turns.value(), 2);
  store_->committer().stop();
}

// All first commits conflict, since the sessions in memory are out of date. The rerunner begins
// once all of them wait.
TEST_F(TurnWorkerTest, ManyConflictsOfOneOrganisationDelayAnotherOneByARun) {
  constexpr std::size_t hostile = 30;
  store::RecentSessions recent;
  std::vector<queue::LogRecord> records;
  const auto add = [&](const std::string& user) {
    key_ = session("plain", "s");
    key_.user_id = user;
    store::SessionCommit stale{.key = key_, .expected_version = 4};
    stale.after.key = key_;
    recent.keep(store::encode(std::move(stale)), {}, false);
    records.push_back(record(event("x")));
  };
  for (std::size_t n = 0; n < hostile; ++n) add(std::to_string(n));
  const auto other = store_->accounts().create_organisation("Other", {.email = "b@example.com"});
  ASSERT_TRUE(other) << other.error().message;
  organisation_ = other->id;
  import("one");
  add("neighbour");
  auto with = context();
  with.recent = &recent;
  std::atomic<bool> held{false};
  with.stopwatch = [&] {
    const auto all_wait = [&] { return metrics_.turn_conflicts.value() == records.size(); };
    const bool on_worker = [this] {
      const std::lock_guard lock(mutex_);
      return worker_threads_.contains(std::this_thread::get_id());
    }();
    if (!on_worker && !held.exchange(true)) EXPECT_TRUE(eventually(all_wait));
    return std::chrono::steady_clock::time_point{};
  };
  Texts order;  // the organisations of the commits
  auto told = ports();
  told.counted = [&](const std::string& organisation, auto) {
    order.push_back(organisation);
    ++committed_;
    committed_.notify_all();
  };
  api::KeyWatch watch;
  api::BusySessions busy;
  TurnWorker worker(with, watch, busy, metrics_, told);
  queue::LanesSettings settings;
  settings.workers = 1;
  {
    queue::Lanes lanes(settings, [&](queue::Run&& taken, queue::Finish finish) {
      {
        const std::lock_guard lock(mutex_);
        worker_threads_.insert(std::this_thread::get_id());
      }
      worker.handle(std::move(taken), std::move(finish));
    });
    lanes.assign(std::vector<queue::PartitionRange>{{0, 1, 0, 100, 0}});
    lanes.offer(records);
    for (auto now = committed_.load(); now <= hostile; now = committed_.load()) {
      committed_.wait(now);
    }
  }
  store_->committer().stop();
  const auto neighbour = std::ranges::find(order, organisation_) - order.begin();
  EXPECT_EQ(order.size(), hostile + 1);
  EXPECT_LE(neighbour, 5) << "it was put last";
}

TEST_F(TurnWorkerTest, EachTurnShowsTheHeartbeatOfItsWorker) {
  model::Heartbeats heartbeats;
  model::Heartbeat heartbeat = heartbeats.add("worker");
  const auto at = std::chrono::steady_clock::time_point{};
  EXPECT_TRUE(heartbeats.stalled(at, std::chrono::seconds(1)).empty());
  api::KeyWatch watch;
  api::BusySessions busy;
  TurnWorker worker(context(), watch, busy, metrics_, ports());
  queue::LanesSettings settings;
  settings.workers = 1;
  {
    queue::Lanes lanes(settings, [&](queue::Run&& run, queue::Finish finish) {
      run.heartbeat = &heartbeat;
      worker.handle(std::move(run), std::move(finish));
    });
    lanes.assign(std::vector<queue::PartitionRange>{{0, 1, 0, 1, 0}});
    lanes.offer({record(event("x"))});
    committed_.wait(0);
  }
  EXPECT_TRUE(heartbeats.stalled(at + std::chrono::hours(1), std::chrono::seconds(1)).empty());
  EXPECT_FALSE(heartbeats.stalled(at + std::chrono::hours(2), std::chrono::seconds(1)).empty());
  store_->committer().stop();
}

TEST(PoisonSearch, NamesTheEventThatStartedOrElseTheRecordThatWaits) {
  std::vector<queue::LogRecord> records(2);
  records[0].record.id = "a";
  records[1].record.id = "b";
  const auto names = [](const PoisonSearch& search) {
    std::set<std::string> found;
    for (const auto& [id, reason] : search.found()) found.insert(id);
    return found;
  };
  PoisonSearch search;
  EXPECT_EQ(search.next_of(records).size(), 1U);
  search.refused(records, "from the inbox");
  EXPECT_EQ(names(search), (std::set<std::string>{"from the inbox"}));
  search.refused(records, "from the inbox");
  EXPECT_EQ(names(search), (std::set<std::string>{"a", "from the inbox"}));
  EXPECT_TRUE(search.advance(records));
  EXPECT_EQ(search.next_of(records).front().record.id, "b");
  search.refused(records, "");
  EXPECT_TRUE(names(search).contains("b"));
  EXPECT_FALSE(search.advance(records));
  EXPECT_TRUE(PoisonSearch().next_of({}).empty());
}

}  // namespace
}  // namespace conversed::daemon
