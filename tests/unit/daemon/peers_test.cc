#include "daemon/cluster/peers.h"

#include <algorithm>
#include <atomic>
#include <set>

#include "api/live/busy_sessions.h"
#include "api/live/inject_quota.h"
#include "api/live/rate_limiter.h"
#include "daemon/cluster/shared_limits.h"
#include "daemon/jobs/job_worker.h"
#include "daemon/ops/metrics.h"
#include "daemon/timers/scheduler.h"
#include "daemon/timers/timer_clock.h"
#include "tests/support/store_place.h"
#include "tests/unit/daemon/world.h"

// Several daemons on one store: their knowledge of each other, and their shares of the work.
namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using model::Errc;

TEST(TimerClock, FollowsAnotherClockWhateverTheWallClockDoes) {
  tests::ManualClock wall;
  std::chrono::milliseconds steady{1'000};
  TimerClock clock(wall, [&] { return steady; });
  const auto theirs = [&] { return model::from_unix_ms(1'900'000'000'000) + steady; };
  clock.follow(theirs(), steady, 5ms);
  EXPECT_EQ(wall.now() + clock.offset(), theirs());
  steady += 10s;
  wall.advance(10s - 1h);
  EXPECT_EQ(wall.now() + clock.offset(), theirs());
  // A measurement that is a second old, followed by a jump of the clock.
  const auto then = theirs();
  const auto at = steady;
  steady += 1s;
  wall.advance(3h);
  clock.follow(then, at, 5ms);
  EXPECT_EQ(wall.now() + clock.offset(), theirs());
}

TEST(TimerClock, AChangeWithinTheErrorOfMeasurementIsIgnored) {
  tests::ManualClock wall;
  std::chrono::milliseconds steady{0};
  TimerClock clock(wall, [&] { return steady; });
  clock.follow(wall.now() + 1h, steady, 0ms);
  clock.follow(wall.now() + 1h + 250ms, steady, 100ms);
  EXPECT_EQ(clock.offset(), 1h);
  clock.follow(wall.now() + 1h + 350ms, steady, 100ms);
  EXPECT_EQ(clock.offset(), 1h + 350ms);
}

// The stores of two daemons on one database.
class PeersTest : public testing::Test {
 protected:
  struct Daemon {
    std::unique_ptr<store::Store> store;
    std::unique_ptr<TimerClock> clock;
    std::unique_ptr<Peers> peers;
  };

  void SetUp() override {
    if (!place_.in_postgres()) GTEST_SKIP() << "a file has one daemon at most";
    for (auto* daemon : {&a_, &b_}) {
      auto opened = store::Store::open(place_.store(), clock_);
      ASSERT_TRUE(opened) << opened.error().message;
      daemon->store = *std::move(opened);
      daemon->clock = std::make_unique<TimerClock>(clock_);
    }
  }
  void TearDown() override {
    for (auto* daemon : {&a_, &b_}) {
      if (daemon->peers) daemon->peers->stop();
    }
  }

  model::Result<void> join(Daemon& daemon, const std::string& name,
                           const std::function<void(PeersSettings&)>& with = {}) {
    PeersSettings settings;
    settings.name = name;
    settings.roles = {"api", "worker", "scheduler"};
    settings.version = "1";
    settings.interval = 10ms;
    if (with) with(settings);
    daemon.peers = std::make_unique<Peers>(std::move(settings), *daemon.store, *daemon.clock);
    return daemon.peers->start();
  }
  [[nodiscard]] static bool sees(const Daemon& daemon, std::size_t members) {
    return eventually([&] { return daemon.peers->members().size() == members; });
  }
  // After this b hears every notification. Before, it hears only that it may have missed some.
  void wait_until_b_listens() {
    std::atomic<bool> heard{false};
    const auto probe = b_.store->first().notifications().subscribe(
        "probe", [&](std::string_view payload) { heard = heard || payload == "1"; });
    EXPECT_TRUE(eventually([&] {
      const auto work = [](store::Writer& writer) -> model::Result<void> {
        store::announce(writer.connection(), "probe 1");
        return {};
      };
      return a_.store->committer().write_and_wait(work) && heard;
    }));
  }
  // The count of ids, out of a hundred, that belong to this daemon.
  [[nodiscard]] static int share(const Daemon& daemon) {
    int count = 0;
    for (int i = 0; i < 100; ++i) count += daemon.peers->mine(std::to_string(i)) ? 1 : 0;
    return count;
  }

  const tests::StorePlace place_;
  tests::ManualClock clock_;
  Daemon a_;
  Daemon b_;
};

TEST_F(PeersTest, EachIdBelongsToOneLiveDaemon) {
  ASSERT_TRUE(join(a_, "a"));
  EXPECT_EQ(share(a_), 100);
  ASSERT_TRUE(join(b_, "b"));
  ASSERT_TRUE(sees(a_, 2) && sees(b_, 2));
  for (int i = 0; i < 100; ++i) {
    EXPECT_NE(a_.peers->mine(std::to_string(i)), b_.peers->mine(std::to_string(i))) << i;
  }
  EXPECT_GT(share(a_), 20);
  EXPECT_GT(share(b_), 20);
  b_.peers->stop();
  ASSERT_TRUE(sees(a_, 1));
  EXPECT_EQ(share(a_), 100);
}

TEST_F(PeersTest, OnlySchedulersShareAndARetiredOneHasNoShare) {
  std::atomic<int> changes{0};
  ASSERT_TRUE(join(a_, "a", [&](auto& with) { with.changed = [&] { ++changes; }; }));
  ASSERT_TRUE(join(b_, "b", [](auto& with) { with.roles = {"api", "worker"}; }));
  ASSERT_TRUE(sees(a_, 2));
  EXPECT_EQ(share(a_), 100);
  EXPECT_EQ(share(b_), 0);
  EXPECT_EQ(changes, 1) << "only its own start was a change";
  a_.peers->retire();
  EXPECT_EQ(share(a_), 0);
  EXPECT_TRUE(eventually([&] { return changes == 2; }));
}

TEST_F(PeersTest, OthersTakeOverAtOnceWhenADaemonRetires) {
  ASSERT_TRUE(join(a_, "a"));
  ASSERT_TRUE(join(b_, "b", [](auto& with) { with.interval = 1h; }));
  ASSERT_TRUE(sees(b_, 2));
  wait_until_b_listens();
  EXPECT_LT(share(b_), 100);
  a_.peers->retire();
  EXPECT_TRUE(eventually([&] { return share(b_) == 100; }));
}

TEST_F(PeersTest, ANameThatALiveDaemonHasIsRefused) {
  ASSERT_TRUE(join(a_, "a"));
  const auto joined = join(b_, "a");
  ASSERT_FALSE(joined);
  EXPECT_EQ(joined.error().code, Errc::conflict);
  EXPECT_NE(joined.error().message.find("runs as a"), std::string::npos);
}

TEST_F(PeersTest, TheNameOfAnEndedRunIsTakenAtOnceAndTheOldRunIsReplaced) {
  std::atomic<bool> replaced{false};
  ASSERT_TRUE(join(
      a_, "a", [&](auto& with) { with.replaced = [&](const model::Error&) { replaced = true; }; }));
  ASSERT_TRUE(join(b_, "a", [&](auto& with) { with.previous_run = a_.peers->run(); }));
  EXPECT_TRUE(eventually([&] { return replaced.load(); }))
      << "the replaced run learns that it has to end";
}

// Two schedulers that share timers as the test says.
class SharedTimersTest : public PeersTest {
 protected:
  void SetUp() override {
    PeersTest::SetUp();
    if (IsSkipped()) return;
    start(first_, a_, 0);
    start(second_, b_, 1);
  }
  void TearDown() override {
    for (auto* each : {&first_, &second_}) {
      if (each->scheduler) each->scheduler->stop();
    }
    PeersTest::TearDown();
  }

  struct One {
    EventSink sink;
    Metrics metrics;
    std::unique_ptr<Scheduler> scheduler;
  };
  // Timers whose names begin with "a" belong to the first scheduler, all others to the second.
  void start(One& one, Daemon& daemon, int number) {
    SchedulerSettings settings;
    settings.look_interval = 1h;  // only notifications wake them
    settings.mine = [this, number](std::string_view id) {
      const int owner = id.starts_with('a') ? 0 : 1;
      return (swapped_ ? 1 - owner : owner) == number;
    };
    one.scheduler = std::make_unique<Scheduler>(settings, daemon.store->first(), one.sink.append(),
                                                clock_, one.metrics);
    ASSERT_TRUE(one.scheduler->start());
  }
  // Commits the timers at the first daemon, whichever scheduler owns them.
  void put(const std::vector<std::string>& ids, std::chrono::milliseconds in) {
    for (const auto& id : ids) {
      store::SessionCommit commit;
      commit.key = {"project", "endpoint", "user-" + id, "s"};
      commit.after.key = commit.key;
      model::PendingCall timer;
      timer.id = id;
      timer.session = commit.key;
      timer.due_at = clock_.now() + in;
      commit.calls.started.push_back(timer);
      std::promise<store::Outcome> done;
      a_.store->committer().submit(commit,
                                   [&](store::Outcome end, const auto&) { done.set_value(end); });
      ASSERT_EQ(done.get_future().get(), store::Outcome::committed);
      first_.scheduler->offer(*timer.due_at);
    }
  }
  void advance(std::chrono::milliseconds by) {
    clock_.advance(by);
    first_.scheduler->wake();
    second_.scheduler->wake();
  }
  [[nodiscard]] static std::set<std::string> fired(One& one) {
    std::set<std::string> ids;
    for (const auto& event : one.sink.events()) ids.insert(event.claim->id);
    return ids;
  }
  std::atomic<bool> swapped_{false};
  One first_;
  One second_;
};

TEST_F(SharedTimersTest, EachFiresItsOwnTimersWhereverTheyAreMade) {
  put({"a1", "a2", "b1"}, 10s);
  advance(10s);
  ASSERT_TRUE(first_.sink.wait_for(2));
  ASSERT_TRUE(second_.sink.wait_for(1));
  EXPECT_EQ(fired(first_), (std::set<std::string>{"a1", "a2"}));
  EXPECT_EQ(fired(second_), std::set<std::string>{"b1"});
}

TEST_F(SharedTimersTest, WhenMembersChangeTimersChangeHands) {
  put({"a1", "b1", "b2"}, 10s);
  swapped_ = true;
  first_.scheduler->look_again();
  second_.scheduler->look_again();
  advance(10s);
  ASSERT_TRUE(first_.sink.wait_for(2));
  ASSERT_TRUE(second_.sink.wait_for(1));
  EXPECT_EQ(fired(first_), (std::set<std::string>{"b1", "b2"}));
  EXPECT_EQ(fired(second_), std::set<std::string>{"a1"});
  // The second scheduler stops. Its timers fall due meanwhile.
  put({"a2"}, 10s);
  second_.scheduler->stop();
  clock_.advance(1h);
  swapped_ = false;
  first_.scheduler->look_again();
  ASSERT_TRUE(eventually([&] { return fired(first_).contains("a2"); }));
}

TEST_F(SharedTimersTest, ASchedulesNextTimeIsFound) {
  const auto organisation =
      a_.store->accounts().create_organisation("Acme", {.email = "a@example.com"});
  ASSERT_TRUE(organisation);
  model::Bundle bundle;
  bundle.project_name = "Shop";
  bundle.locales = {"en"};
  const auto imported = a_.store->assets().import_bundle(organisation->id, bundle);
  ASSERT_TRUE(imported) << imported.error().message;
  model::Schedule schedule;
  schedule.id = "b";
  schedule.session = {(*imported)["project"]["_id"], "endpoint", "user", "s"};
  schedule.text = "later";
  schedule.timezone = "UTC";
  schedule.due_at = clock_.now() + 10s;
  const auto created = a_.store->first().schedules().create(schedule, std::nullopt);
  ASSERT_TRUE(created) << created.error().message;
  store::SessionCommit commit;
  commit.key = commit.after.key = schedule.session;
  commit.claims.push_back({model::Claim::Kind::schedule, schedule.claim()});
  commit.schedules_fired.push_back({schedule.claim(), clock_.now() + 1h});
  std::promise<store::Outcome> done;
  a_.store->committer().submit(commit,
                               [&](store::Outcome end, const auto&) { done.set_value(end); });
  ASSERT_EQ(done.get_future().get(), store::Outcome::committed);
  ++schedule.run;
  advance(1h);
  ASSERT_TRUE(eventually([&] { return fired(second_).contains(schedule.claim()); }));
}

// Finishes each job in its only step.
class OneStep final : public JobSteps {
 public:
  explicit OneStep(store::Jobs& jobs) : jobs_(jobs) {}
  model::Result<void> advance(const model::Job& job, JobHold& /*hold*/) override {
    return jobs_.finish(job.id, job.fencing_token, model::JobState::done, "");
  }

 private:
  store::Jobs& jobs_;
};

TEST_F(PeersTest, AJobBeginsInADaemonThatDidNotMakeIt) {
  const auto organisation =
      a_.store->accounts().create_organisation("Acme", {.email = "a@example.com"});
  ASSERT_TRUE(organisation);
  model::Bundle bundle;
  bundle.project_name = "Shop";
  bundle.locales = {"en"};
  const auto imported = a_.store->assets().import_bundle(organisation->id, bundle);
  ASSERT_TRUE(imported) << imported.error().message;
  model::Job job;
  job.project_id = (*imported)["project"]["_id"];
  job.created_at = clock_.now();
  const auto create = [&](const std::string& type) {
    job.id = model::new_id();
    job.type = type;
    const auto created = a_.store->jobs().create(job);
    EXPECT_TRUE(created) << created.error().message;
  };
  const auto is_done = [&] {
    const auto stored = b_.store->jobs().get(job.id);
    return stored && stored->state == model::JobState::done;
  };
  create("first");
  wait_until_b_listens();  // b's worker does not hear of the first job
  OneStep steps(b_.store->jobs());
  JobWorker worker({.rescue_interval = 24h}, b_.store->jobs(), steps, clock_,
                   &b_.store->first().notifications());
  ASSERT_TRUE(worker.start());
  ASSERT_TRUE(eventually(is_done)) << "the rescue finds the job";
  create("second");
  EXPECT_TRUE(eventually(is_done));
}

TEST_F(PeersTest, SpentTokensAndFullInboxesAreKnownToOtherDaemons) {
  constexpr api::RateLimits limits{.requests_per_second = 1, .burst = 100};
  const auto now = std::chrono::steady_clock::now();
  api::RateLimiter limiter_a(limits);
  api::RateLimiter limiter_b(limits);
  api::RateLimiter public_a(limits);
  api::RateLimiter public_b(limits);
  api::BusySessions busy_a;
  api::BusySessions busy_b;
  api::InjectQuota quota_a({.injects_per_month = 10, .shared = true}, a_.store->usage(), clock_);
  api::InjectQuota quota_b({.injects_per_month = 10, .shared = true}, b_.store->usage(), clock_);
  SharedLimits limits_a({.daemon = "a", .inbox_limit = 3, .steady_now = [&] { return now; }},
                        *a_.store, limiter_a, public_a, busy_a, quota_a);
  SharedLimits limits_b({.daemon = "b", .inbox_limit = 3, .steady_now = [&] { return now; }},
                        *b_.store, limiter_b, public_b, busy_b, quota_b);
  wait_until_b_listens();
  limits_a.tell();  // begins the count of spent tokens
  const model::SessionKey full{"project", "endpoint", "full", "s"};
  const model::SessionKey other{"project", "endpoint", "other", "s"};
  busy_a.set(full, 3);
  busy_a.set(other, 2);
  for (int i = 0; i < 100; ++i) {
    ASSERT_FALSE(limiter_a.take("key k", now));
    ASSERT_FALSE(public_a.take("address 192.0.2.1", now));
  }
  limits_a.tell();
  ASSERT_TRUE(eventually([&] { return busy_b.is_full(full.encode(), 3, now); }));
  EXPECT_FALSE(busy_b.is_full(other.encode(), 3, now));
  EXPECT_TRUE(limiter_b.take("key k", now)) << "all tokens were spent elsewhere";
  EXPECT_TRUE(public_b.take("address 192.0.2.1", now));
  EXPECT_FALSE(limiter_b.take("key l", now));
  EXPECT_FALSE(limiter_a.take("key l", now)) << "a daemon ignores its own reports";
  busy_a.set(full, 0);
  limits_a.tell();
  EXPECT_TRUE(eventually([&] { return !busy_b.is_full(full.encode(), 3, now); }));
  for (int i = 0; i < 9; ++i) ASSERT_TRUE(quota_a.take("organisation", now));
  limits_a.tell();
  ASSERT_TRUE(eventually([&] {
    return a_.store->usage().used("organisation", store::accepted_injects_counter,
                                  store::month_of(clock_.now())) == 9;
  }));
  EXPECT_TRUE(quota_b.take("organisation", now));
  EXPECT_FALSE(quota_b.take("organisation", now)) << "nine injects were accepted elsewhere";
}

using SharedLimitsTest = World;

TEST_F(SharedLimitsTest, TheInboxOfASessionThatIsErasedElsewhereIsForgotten) {
  constexpr api::RateLimits limits{.requests_per_second = 1, .burst = 1};
  api::RateLimiter limiter(limits);
  api::RateLimiter public_limiter(limits);
  api::BusySessions busy;
  api::InjectQuota quota({.injects_per_month = 0, .shared = true}, store_->usage(), clock_);
  const SharedLimits shared({.daemon = "a", .inbox_limit = 1}, *store_, limiter, public_limiter,
                            busy, quota);
  const model::SessionKey erased{"project", "endpoint", "erased", "s"};
  const model::SessionKey other{"project", "endpoint", "other", "s"};
  busy.set(erased, 1);
  busy.set(other, 1);
  store_->first().notifications().tell("deliver " + erased.encode());
  EXPECT_EQ(busy.inbox_size(erased.encode()), 0);
  EXPECT_EQ(busy.inbox_size(other.encode()), 1);
  store_->first().notifications().tell("");
  EXPECT_EQ(busy.inbox_size(other.encode()), 0) << "an announcement may have been lost";
}

}  // namespace
}  // namespace conversed::daemon
