// Timers, leases, keys and expiries of every kind while the wall clock is set back or forward, by
// seconds to years, in a running daemon and across a restart. daemon/timers/timer_clock.h has the
// rule.
#include <gtest/gtest.h>

#include <atomic>
#include <memory>
#include <optional>
#include <set>
#include <string>

#include "api/auth/lockout.h"
#include "api/live/rate_limiter.h"
#include "daemon/data/housekeeper.h"
#include "daemon/ops/metrics.h"
#include "daemon/timers/scheduler.h"
#include "daemon/timers/timer_clock.h"
#include "flows/time/schedule_times.h"
#include "queue/file/file_log.h"
#include "tests/support/kept_keys.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using std::chrono::milliseconds;
using Ids = std::set<std::string>;

struct Jump {
  milliseconds by;
  enum class Then : std::uint8_t { goes_on, restarts } then;
};

class ClockJumps : public World, public testing::WithParamInterface<Jump> {
 protected:
  void SetUp() override {
    World::SetUp();
    import({{ "web", "" }});
    reopen();
  }
  void TearDown() override {
    scheduler_.reset();
    store_.reset();  // the store uses the clock of timers
  }

  // Opens the store as a start of the daemon does.
  void reopen() {
    store_.reset();
    timers_ = std::make_unique<TimerClock>(clock_, [this] { return milliseconds(steady_ms_); });
    store::StoreSettings settings{.data_dir = folder_.path()};
    settings.committer.timer_clock = timers_.get();
    auto opened = store::Store::open(settings, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
    timers_->set_offset(*store_->first().timers().offset());
  }

  void start_scheduler() {
    scheduler_ = std::make_unique<Scheduler>(SchedulerSettings{.timer_clock = timers_.get()},
                                             store_->first(), sink_.append(), clock_, metrics_);
    ASSERT_TRUE(scheduler_->start());
  }

  // Moves the steady clock first, so that other threads never see the timers' clock go back.
  void pass(milliseconds time) {
    steady_ms_ += time.count();
    clock_.advance(time);
    if (scheduler_) scheduler_->wake();
  }

  void set_clock(milliseconds by) {
    clock_.advance(by);
    ASSERT_TRUE(store_->first().timers().keep_offset(timers_->offset()));  // as the Scheduler does
    if (scheduler_) scheduler_->wake();
  }

  // Sets the clock in the middle of a wait, as the test's parameter says.
  void jump() {
    set_clock(GetParam().by);
    if (GetParam().then == Jump::Then::goes_on) return;
    const bool schedules = scheduler_ != nullptr;
    scheduler_.reset();
    reopen();
    if (schedules) start_scheduler();
  }

  Ids fired() {
    Ids ids;
    for (const auto& event : sink_.events()) ids.insert(event.claim->id);
    return ids;
  }
  // The ids of the timers that were due until now. Timers are appended in order of their due time,
  // so the last probe ends the wait.
  Ids fired_by_now() {
    const auto probe = timer("probe", 0ms);
    commit_timer(probe);
    scheduler_->offer(*probe.due_at);
    EXPECT_TRUE(eventually([&] { return fired().contains("probe"); }));
    auto ids = fired();
    ids.erase("probe");
    return ids;
  }

  model::PendingCall timer(const std::string& id, milliseconds in) {
    model::PendingCall pending;
    pending.id = id;
    pending.session = key("user-" + id);
    pending.trace_id = model::new_trace_id();
    pending.due_at = timers_->now() + in;
    return pending;
  }
  void commit_timer(const model::PendingCall& pending) {
    auto commit = turn(pending.session, {});
    commit.calls.started.push_back(pending);
    commit_now(std::move(commit));
  }

  std::atomic<std::int64_t> steady_ms_{1'000'000};
  std::unique_ptr<TimerClock> timers_;
  Metrics metrics_;
  EventSink sink_;
  std::unique_ptr<Scheduler> scheduler_;
};

TEST_P(ClockJumps, SleepQuestionAndFollowUpComeWhenTheirTimeIsOver) {
  start_scheduler();
  auto question = timer("question", 10min);
  question.is_time_out = true;
  model::FollowUp follow_up;
  follow_up.id = "followup";
  follow_up.session = key("silent");
  follow_up.trace_id = model::new_trace_id();
  follow_up.due_at = timers_->now() + 10min;
  const auto sleep = timer("sleep", 10min);
  commit_timer(sleep);
  commit_timer(question);
  auto commit = turn(follow_up.session, {});
  commit.follow_ups.added.push_back(follow_up);
  commit_now(std::move(commit));
  scheduler_->offer(*sleep.due_at);
  pass(5min);
  jump();
  pass(5min - 1ms);
  EXPECT_EQ(fired_by_now(), Ids{});
  pass(1ms);
  const Ids all{"sleep", "question", "followup", "probe"};
  EXPECT_TRUE(eventually([&] { return fired() == all; }));
}

TEST_P(ClockJumps, ScheduleIsNeverSilentForLongerThanItsRuleSays) {
  start_scheduler();
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = key("ann");
  schedule.text = "news";
  schedule.timezone = "UTC";
  ASSERT_TRUE(flows::set_times(schedule, {.cron = "0 * * * *"}, clock_.now()));
  ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  scheduler_->offer(schedule);
  const auto stored = [&] { return *store_->first().schedules().get(project(), schedule.id); };
  const auto comes = [&] {
    const auto row = stored();
    ASSERT_TRUE(eventually([&] { return fired().contains(row.claim()); }));
    auto commit = turn(schedule.session, {});  // the Turn of its event
    commit.claims.push_back({model::Claim::Kind::schedule, row.claim()});
    commit.schedules_fired.push_back({row.claim(), flows::next_time(row, clock_.now())});
    commit_now(std::move(commit));
    scheduler_->offer(stored());
  };
  jump();
  if (GetParam().by >= 1h) comes();  // due early, by the wrong clock
  pass(7s);
  set_clock(-GetParam().by);
  ASSERT_TRUE(eventually([&] { return stored().due_at <= clock_.now() + 1h; }));
  for (int hour = 0; hour < 3; ++hour) {
    pass(1h);
    comes();
    EXPECT_LE(stored().due_at, clock_.now() + 1h);
  }
}

TEST_P(ClockJumps, ScheduleIsFoundAtTheStartIfTheClockWasCorrectedMeanwhile) {
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = key("ann");
  schedule.text = "news";
  schedule.timezone = "UTC";
  const auto ahead = clock_.now() + std::chrono::abs(GetParam().by);
  ASSERT_TRUE(flows::set_times(schedule, {.cron = "0 * * * *"}, ahead));
  ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  start_scheduler();
  EXPECT_TRUE(eventually([&] {
    return store_->first().schedules().get(project(), schedule.id)->due_at <= clock_.now() + 1h;
  }));
}

TEST_P(ClockJumps, LeaseOfAJobLastsItsTime) {
  model::Job job;
  job.id = model::new_id();
  job.project_id = project();
  job.type = "proactiveSetup";
  job.created_at = clock_.now();
  ASSERT_TRUE(store_->jobs().create(job));
  const auto lease = [&] { return store_->jobs().lease(job.id, timers_->now() + 60s); };
  ASSERT_TRUE(lease());
  jump();
  pass(59s);
  EXPECT_TRUE(store_->jobs().waiting(timers_->now(), 10)->empty());
  EXPECT_FALSE(lease()) << "another worker has the lease";
  pass(1s);
  EXPECT_EQ(store_->jobs().waiting(timers_->now(), 10)->size(), 1U);
  EXPECT_TRUE(lease());
}

TEST_P(ClockJumps, IdempotencyKeyStandsForADay) {
  const store::AppendKeyUse use{
      .scope = "s", .key = "k", .body_hash = "h", .event_id = model::new_id(), .supersedes = ""};
  const auto reserve = [&](const store::AppendKeyUse& by) {
    std::promise<bool> fresh;
    store_->append_keys().reserve(by, [&](auto done) { fresh.set_value(done && done->fresh); });
    return fresh.get_future().get();
  };
  ASSERT_TRUE(reserve(use));
  const store::KeyedAnswer answer{
      .key = {.scope = "s", .key = "k", .body_hash = "h"},
      .answer = {.status = 201, .content_type = "text/plain", .body = "made"}};
  const auto keep = [&] {
    model::Schedule schedule;
    schedule.id = model::new_id();
    schedule.session = key("ann");
    schedule.text = "news";
    schedule.timezone = "UTC";
    return store_->first().schedules().create(schedule, answer)->has_value();
  };
  ASSERT_FALSE(keep());
  jump();
  auto other = use;
  other.key = "other";
  EXPECT_TRUE(reserve(other)) << "a reservation prunes expired keys";
  pass(24h - 1ms);
  EXPECT_FALSE(reserve(use));
  EXPECT_TRUE(keep()) << "the first answer is repeated";
  pass(1ms);
  EXPECT_TRUE(reserve(use));
  EXPECT_FALSE(keep());
}

TEST_P(ClockJumps, KeyInTheEmbeddedLogStandsForADay) {
  tests::KeysInMemory kept;
  const auto open = [&] {
    return *queue::FileLog::open(*queue::open_disk(folder_ / "log"), {.partitions = 1}, kept,
                                 *timers_);
  };
  auto log = open();
  const auto repeated = [&](const std::string& key) {
    std::promise<bool> told;
    log->append({.key = "k", .id = model::new_id(), .type = "inject", .trace_id = "", .value = ""},
                {.scope = "s", .key = key, .supersedes = ""},
                [&](const auto& done) { told.set_value(done && done->repeated); });
    return told.get_future().get();
  };
  ASSERT_FALSE(repeated("one"));
  log.reset();
  jump();
  log = open();
  EXPECT_FALSE(repeated("other"));
  pass(24h - 1ms);
  EXPECT_TRUE(repeated("one"));
  pass(1ms);
  EXPECT_FALSE(repeated("one"));
}

TEST_P(ClockJumps, AnswerOfAKeyAndItsClaimAreKeptForTheirTime) {
  auto commit = turn(key("ann"), {});
  commit.answers.kept.push_back({.input_id = "input",
                                 .body = "said",
                                 .expires_at = store_->timer_now() + store::answer_lifetime});
  commit.claims.push_back({model::Claim::Kind::keyed_event, "input"});
  commit_now(std::move(commit));
  const auto never = [] { return false; };
  const auto tidy_up = [&] { ASSERT_TRUE(tidy(*store_, {}, timers_->retention_now(), never)); };
  const auto kept = [&] {
    return store_->first()
        .answers()
        .look({key("ann"), "input"}, store_->timer_now())
        ->kept.has_value();
  };
  jump();
  pass(store::answer_lifetime - 1ms);
  tidy_up();
  EXPECT_TRUE(kept());
  pass(std::chrono::days(7) - store::answer_lifetime);
  tidy_up();
  EXPECT_FALSE(kept());
  EXPECT_TRUE(*store_->first().answers().claimed("input")) << "a second append has no effect";
  pass(2ms);
  tidy_up();
  EXPECT_FALSE(*store_->first().answers().claimed("input"));
}

TEST_P(ClockJumps, TokensAndCodesLiveForTheirTime) {
  auto& accounts = store_->accounts();
  ASSERT_TRUE(accounts.create_user(organisation_, {.email = "ann@example.com",
                                                   .name = "Ann",
                                                   .roles = {},
                                                   .password = "correct horse battery"}));
  const auto signed_in = accounts.authenticate("ann@example.com", "correct horse battery");
  ASSERT_TRUE(signed_in);
  const std::string redirect = "https://shop.example/cb";
  const auto client = store_->oauth().create_client({.id = "",
                                                     .organisation_id = organisation_,
                                                     .name = "Shop",
                                                     .redirect_uris = {redirect},
                                                     .password_grant = true});
  ASSERT_TRUE(client);
  const store::TokenLifetimes lifetimes{.access = 1h, .refresh = 24h};
  const auto tokens = store_->oauth().grant(client->client.id, signed_in->sign_in, lifetimes);
  ASSERT_TRUE(tokens);
  const auto code = [&] {
    return *store_->oauth().create_code({.client_id = client->client.id,
                                         .sign_in = signed_in->sign_in,
                                         .redirect_uri = redirect,
                                         .redirect_uri_sent = true,
                                         .challenge = std::nullopt},
                                        60s);
  };
  const auto exchanged = [&](const std::string& value) {
    return store_->oauth()
        .exchange_code({.client_id = client->client.id, .code = value, .redirect_uri = redirect},
                       lifetimes)
        .has_value();
  };
  const auto works = [&] {
    return store_->oauth().verify_access_token(tokens->access, store_->timer_now()).has_value();
  };
  const auto good = code();
  const auto late = code();
  jump();
  pass(60s - 1ms);
  EXPECT_TRUE(exchanged(good));
  pass(1ms);
  EXPECT_FALSE(exchanged(late));
  pass(59min - 1ms);
  EXPECT_TRUE(works());
  pass(1ms);
  EXPECT_FALSE(works());
  pass(23h - 1ms);
  EXPECT_TRUE(store_->oauth().refresh(client->client.id, tokens->refresh, lifetimes));
}

TEST_P(ClockJumps, CursorIsValidForAnHour) {
  model::Bundle bundle;
  bundle.project_name = "Words";
  bundle.locales = {"en"};
  model::BundleLexicon words{"Words", {}, {}};
  for (const char* word : {"a", "b", "c"}) {
    words.entries.push_back({word, {}, {}, nlohmann::json::object()});
  }
  bundle.lexicons = {words};
  const auto report = store_->assets().import_bundle(organisation_, bundle);
  ASSERT_TRUE(report);
  const std::string lexicon = report->at("lexicons")[0]["_id"];
  const auto page = [&](const std::string& next) {
    store::PageRequest request{.limit = 1, .now = store_->timer_now()};
    request.next = next;
    return store_->assets().lexicon_entries(lexicon, request);
  };
  const auto first = page("");
  ASSERT_TRUE(first);
  jump();
  pass(1h - 1ms);
  EXPECT_TRUE(page(first->next));
  pass(1ms);
  EXPECT_FALSE(page(first->next));
}

TEST_P(ClockJumps, NothingYoungIsRemovedOnADayWithAWrongClock) {
  auto commit = turn(key("ann"), {"said"});
  commit.outputs.front().delivery = model::Delivery::none;
  commit.dead_letters.push_back({model::new_id(), {model::new_id(), "inject", "", "{}"}, "why"});
  commit_now(std::move(commit));
  const HousekeeperSettings settings{.transcripts = std::chrono::days(30),
                                     .dead_letters = std::chrono::days(30)};
  const auto removed = [&] {
    const auto report = tidy(*store_, settings, timers_->retention_now(), [] { return false; });
    EXPECT_TRUE(report);
    return report->outputs + report->sessions + report->dead_letters;
  };
  jump();
  EXPECT_EQ(removed(), 0);
  pass(23h);
  EXPECT_EQ(removed(), 0);
  set_clock(-GetParam().by);
  EXPECT_EQ(removed(), 0);
  pass(std::chrono::days(31));
  EXPECT_EQ(removed(), 3);
}

TEST_P(ClockJumps, QuotaCountsByTheMonthOfTheWallClock) {
  const auto count = [&] {
    auto commit = turn(key("ann"), {});
    commit.quota.push_back({organisation_, "injects", 1});
    commit_now(std::move(commit));
  };
  const auto used = [&] {
    return *store_->usage().used(organisation_, "injects", store::month_of(clock_.now()));
  };
  count();
  jump();
  const auto before = used();
  count();
  EXPECT_EQ(used(), before + 1);
  set_clock(-GetParam().by);
  EXPECT_EQ(used(), before + 1) << "counted by the month of the wall clock";
}

// Both use the steady clock only.
TEST_P(ClockJumps, LockOutAndRateLimitIgnoreTheWallClock) {
  auto now = std::chrono::steady_clock::time_point() + 1h;
  api::Lockout lockout({.account_failures = 1, .window = 5min});
  api::RateLimiter limiter({.requests_per_second = 1, .burst = 1});
  lockout.failed("ann", "address", api::Visitor::stranger, now);
  EXPECT_FALSE(limiter.take("ann", now));
  jump();
  EXPECT_TRUE(lockout.locked("ann", "address", api::Visitor::stranger, now + 5min - 1ms));
  EXPECT_FALSE(lockout.locked("ann", "address", api::Visitor::stranger, now + 5min));
  EXPECT_TRUE(limiter.take("ann", now + 999ms));
  EXPECT_FALSE(limiter.take("ann", now + 1s));
}

std::vector<Jump> jumps() {
  std::vector<Jump> all;
  const std::vector<milliseconds> lengths{5s, 3h, std::chrono::days(40),
                                          std::chrono::days(3 * 366)};
  for (const auto by : lengths) {
    for (const auto then : {Jump::Then::goes_on, Jump::Then::restarts}) {
      all.push_back({by, then});
      all.push_back({-by, then});
    }
  }
  return all;
}

std::string name_of(const testing::TestParamInfo<Jump>& info) {
  const auto seconds = std::chrono::duration_cast<std::chrono::seconds>(info.param.by).count();
  return (seconds < 0 ? "BackBy" : "AheadBy") + std::to_string(std::abs(seconds)) + "s" +
         (info.param.then == Jump::Then::restarts ? "AndRestart" : "");
}

INSTANTIATE_TEST_SUITE_P(All, ClockJumps, testing::ValuesIn(jumps()), name_of);

}  // namespace
}  // namespace conversed::daemon
