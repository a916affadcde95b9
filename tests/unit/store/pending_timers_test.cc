#include "store/conversation/timers.h"

#include <condition_variable>
#include <mutex>
#include <set>

#include "store/conversation/due_sql.h"
#include "store/sql/postgres_watch.h"
#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using namespace std::chrono_literals;
using model::Errc;
using Kind = Timers::Kind;

class PendingTimersTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    store_->committer().start();
    start_ = clock_.now();
  }

  model::PendingCall call(const std::string& id, const std::string& user, model::Timestamp due,
                          bool is_time_out = false, const std::string& project = "project") {
    model::PendingCall call;
    call.id = id;
    call.session = key_of(user, project);
    call.trace_id = model::new_trace_id();
    call.due_at = due;
    call.is_time_out = is_time_out;
    return call;
  }
  model::FollowUp follow_up(const std::string& id, const std::string& user, model::Timestamp due,
                            bool of_journey) {
    model::FollowUp waits;
    waits.id = id;
    waits.session = key_of(user);
    waits.trace_id = model::new_trace_id();
    waits.due_at = due;
    waits.plan.of_journey = of_journey;
    waits.plan.expires_at = due + 1h;
    return waits;
  }
  void put(const model::PendingCall& call) {
    auto commit = turn(call.session, 0, ++offset_);
    commit.calls.started.push_back(call);
    ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  }
  void put(const model::FollowUp& waits) {
    auto commit = turn(waits.session, 0, ++offset_);
    commit.follow_ups.added.push_back(waits);
    ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  }
  void put_schedule(const std::string& id, const std::string& user, model::Timestamp due,
                    const std::string& project) {
    // A schedule needs a project. This makes its rows.
    ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
      writer.connection().run(
          "INSERT INTO organisations (id, name) VALUES (:i, :n)"
          " ON CONFLICT DO NOTHING",
          "o", "o");
      writer.connection().run(
          "INSERT INTO projects (id, organisation_id, name, proactive) VALUES (:i, 'o', :n, 'null')"
          " ON CONFLICT DO NOTHING",
          project, project);
      return {};
    }));
    model::Schedule schedule;
    schedule.id = id;
    schedule.session = key_of(user, project);
    schedule.text = "later";
    schedule.timezone = "UTC";
    schedule.due_at = due;
    ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  }
  Timers& timers() { return store_->first().timers(); }
  std::vector<std::string> ids(const Timers::Filter& filter, std::size_t limit = 100) {
    std::vector<std::string> list;
    std::optional<Timers::Place> after = Timers::Place{};
    while (after) {
      const auto page = timers().list(filter, *after, limit);
      EXPECT_TRUE(page) << page.error().message;
      EXPECT_LE(page->rows.size(), limit);
      for (const auto& row : page->rows) list.push_back(row.id);
      after = page->next;
    }
    return list;
  }

  model::Timestamp start_;
  std::int64_t offset_ = 0;
};

using Ids = std::vector<std::string>;

TEST_F(PendingTimersTest, OneWhoseEventIsInTheLogIsNotListedUntilItIsPutOff) {
  put(call("sleep", "a", start_ + 1min));
  put(follow_up("journey", "b", start_ + 2min, true));
  const auto mark = [&](model::Timestamp due) {
    store_->first().timers().appended({{due, {model::Claim::Kind::timer, "sleep"}}}, [] {});
    ASSERT_TRUE(
        store_->committer().write_and_wait([](Writer&) -> model::Result<void> { return {}; }));
  };
  mark(start_ + 1min);
  EXPECT_EQ(ids({.project_id = "project"}), Ids{"journey"});
  ASSERT_TRUE(timers().reschedule("sleep", start_ + 3min));
  mark(start_ + 1min);
  EXPECT_EQ(ids({.project_id = "project"}), (Ids{"journey", "sleep"}))
      << "the timer was put off while it was in hand";
}

TEST_F(PendingTimersTest, DueTimersAreARangeOfAnIndexForEachKind) {
  const std::vector<SqlValue> values{std::int64_t{0}, "id", std::int64_t{10}};
  expect_index_range(*store_, sql_of_due_timers, values, "pending_calls_by_due");
  expect_index_range(*store_, sql_of_due_follow_ups, values, "follow_ups_by_due");
  expect_index_range(*store_, sql_of_due_schedules, values, "schedules_by_due");
}

TEST_F(PendingTimersTest, AreListedInTheOrderOfTheirTimesWhateverTheirKind) {
  put(call("sleep", "a", start_ + 3min));
  put(call("question", "b", start_ + 1min, true));
  put(follow_up("journey", "c", start_ + 4min, true));
  put(follow_up("node", "d", start_ + 2min, false));
  put_schedule("schedule", "e", start_ + 5min, "project");
  put(call("foreign", "f", start_ + 2min, false, "other"));
  const Ids all{"question", "node", "sleep", "journey", "schedule"};
  for (const std::size_t limit : {1U, 2U, 4U, 5U, 100U}) {
    EXPECT_EQ(ids({.project_id = "project"}, limit), all) << limit;
  }
  EXPECT_EQ(ids({.project_id = "project", .kind = Kind::journey}), (Ids{"journey"}));
  EXPECT_EQ(ids({.project_id = "project", .kind = Kind::sleep}, 1), (Ids{"sleep"}));
  EXPECT_EQ(ids({.project_id = "project", .session = key_of("e")}), (Ids{"schedule"}));
  EXPECT_EQ(ids({.project_id = "project", .session = key_of("b")}), (Ids{"question"}));
  EXPECT_EQ(ids({.project_id = "other"}), (Ids{"foreign"}));
  const auto row = timers().get("node");
  ASSERT_TRUE(row);
  EXPECT_EQ(row->kind, Kind::follow_up);
  EXPECT_EQ(row->session, key_of("d"));
  EXPECT_EQ(row->due_at, start_ + 2min);
}

// More rows than a step reads. Most belong to another project, and many are due at the same time.
TEST_F(PendingTimersTest, PagesNeitherSkipNorRepeat) {
  ASSERT_TRUE(store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
    auto& connection = writer.connection();
    const auto due = model::to_unix_ms(start_ + 1h);
    for (int n = 0; n < 3'000; ++n) {
      const auto key = key_of("u" + std::to_string(n), n % 50 == 0 ? "project" : "other");
      connection.run(
          "INSERT INTO sessions (id, key, project_id, version, position_epoch, position_partition,"
          " position_offset, started_at, last_activity_at, context, flow_state, last_output_seq,"
          " inbox_size) VALUES (:i, :k, :p, 1, 0, 0, -1, 0, 0, '{}', 'null', 0, 0)",
          n + 1, key.encode(), key.project_id);
      connection.run(
          "INSERT INTO follow_ups (id, session, trace_id, due_at, value, of_journey)"
          " VALUES (:i, :s, '', :d, '{}', 0)",
          "f" + std::to_string(n), n + 1, due + n / 700);
      connection.run(
          "INSERT INTO pending_calls (id, session, trace_id, due_at, time_out)"
          " VALUES (:i, :s, '', :d, 0)",
          "c" + std::to_string(n), n + 1, due + n / 900);
    }
    return {};
  }));
  auto all = ids({.project_id = "project"}, 7);
  EXPECT_EQ(all.size(), 120U);
  std::ranges::sort(all);
  EXPECT_EQ(std::ranges::adjacent_find(all), all.end());
}

TEST_F(PendingTimersTest, AreCancelledWithTheirClaims) {
  put(call("question", "b", start_ + 1min, true));
  put(follow_up("journey", "c", start_ + 4min, true));
  put_schedule("schedule", "e", start_ + 5min, "project");
  for (const char* id : {"question", "journey", "schedule"}) {
    EXPECT_TRUE(timers().cancel(id)) << id;
    EXPECT_EQ(timers().cancel(id).error().code, Errc::not_found) << id;
  }
  EXPECT_TRUE(ids({.project_id = "project"}).empty());
  EXPECT_FALSE(*store_->first().timers().follow_up_waits("journey"));
  EXPECT_FALSE(*store_->first().calls().waits("question"));
}

TEST_F(PendingTimersTest, SleepIsRescheduledAndNotCancelled) {
  put(call("sleep", "a", start_ + 3h));
  const auto refused = timers().cancel("sleep");
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_NE(refused.error().message.find("reset the session"), std::string::npos);
  const auto moved = timers().reschedule("sleep", start_ + 1s);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->due_at, start_ + 1s);
  EXPECT_EQ((*store_->first().calls().find("sleep"))->call.due_at, start_ + 1s);
}

// Silences and time-outs are due by the clock of timers, not by the wall clock.
TEST_F(PendingTimersTest, TimesAreTheWallClocks) {
  ASSERT_TRUE(store_->first().timers().keep_offset(24h));
  put(call("sleep", "a", start_ + 24h + 3min));
  put_schedule("schedule", "e", start_ + 2min, "project");
  EXPECT_EQ(ids({.project_id = "project"}, 1), (Ids{"schedule", "sleep"}));
  EXPECT_EQ(timers().get("sleep")->due_at, start_ + 3min);
  EXPECT_EQ(timers().get("schedule")->due_at, start_ + 2min);
  const auto moved = timers().reschedule("sleep", start_ + 1min);
  ASSERT_TRUE(moved);
  EXPECT_EQ(moved->place.due, start_ + 24h + 1min);
  EXPECT_EQ(ids({.project_id = "project"}), (Ids{"sleep", "schedule"}));
}

TEST_F(PendingTimersTest, FollowUpIsNotPutOffPastItsExpiry) {
  put(follow_up("journey", "c", start_ + 4min, true));
  EXPECT_EQ(timers().reschedule("journey", start_ + 2h).error().code, Errc::conflict);
  EXPECT_TRUE(timers().reschedule("journey", start_ + 30min));
  EXPECT_EQ((*store_->first().timers().follow_up("journey"))->due_at, start_ + 30min);
  put_schedule("schedule", "e", start_ + 5min, "project");
  EXPECT_EQ(timers().reschedule("schedule", start_).error().code, Errc::conflict);
  EXPECT_EQ(timers().reschedule("nothing", start_).error().code, Errc::not_found);
}

// Schedulers of other daemons learn of a timer by its notification.
TEST_F(PendingTimersTest, EachThatIsNewOrMovedIsAnnounced) {
  if (!place_.in_postgres()) GTEST_SKIP() << "a file has one daemon at most";
  // Other tests on the server may announce timers at whole hours.
  constexpr auto odd = 137ms;
  std::mutex mutex;
  std::condition_variable changed;
  std::set<std::string> heard;
  PostgresPulse pulse;
  PostgresWatch watch(
      *place_.postgres(),
      [&](std::string_view notification) {
        const std::lock_guard lock(mutex);
        heard.emplace(notification);
        changed.notify_all();
      },
      pulse);
  const auto hears = [&](const std::string& notification) {
    std::unique_lock lock(mutex);
    return changed.wait_for(lock, 30s, [&] { return heard.contains(notification); });
  };
  const auto hears_time = [&](model::Timestamp due) {
    return hears("timers " + std::to_string(model::to_unix_ms(due)));
  };
  ASSERT_TRUE(watch.start());
  ASSERT_TRUE(hears("")) << "it listens from now on";

  put(call("call", "ann", start_ + 1h + odd));
  EXPECT_TRUE(hears_time(start_ + 1h + odd));
  put(follow_up("waits", "bob", start_ + 2h + odd, false));
  EXPECT_TRUE(hears_time(start_ + 2h + odd));
  put_schedule("later", "cy", start_ + 3h + odd, "project");
  EXPECT_TRUE(hears_time(start_ + 3h + odd));

  ASSERT_TRUE(timers().reschedule("call", start_ + 4h + odd));
  EXPECT_TRUE(hears_time(start_ + 4h + odd));
  auto& schedules = store_->first().schedules();
  const auto moved =
      schedules.reschedule("project", "later", {.timezone = "UTC", .due_at = start_ + 5h + odd});
  ASSERT_TRUE(moved) << moved.error().message;
  EXPECT_TRUE(hears_time(start_ + 5h + odd));
  ASSERT_TRUE(schedules.bring_forward({{*moved, start_ + 4h + odd + 1s}}));
  EXPECT_TRUE(hears_time(start_ + 4h + odd + 1s));
  auto fires = turn(key_of("cy"), 0, ++offset_);
  fires.claims.push_back({model::Claim::Kind::schedule, moved->claim()});
  fires.schedules_fired.push_back({.claim = moved->claim(), .next = start_ + 6h + odd});
  ASSERT_EQ(commit_now(std::move(fires)), Outcome::committed);
  EXPECT_TRUE(hears_time(start_ + 6h + odd));

  ASSERT_TRUE(timers().log_lost());
  EXPECT_TRUE(hears("timers")) << "any of them may be due";
}

}  // namespace
}  // namespace conversed::store
