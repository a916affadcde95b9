// Compares the state diagrams of docs/architecture.md with the store.
#include <deque>
#include <fstream>
#include <functional>
#include <nlohmann/json.hpp>
#include <set>
#include <sstream>
#include <utility>

#include "store/model/job.h"
#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using namespace std::chrono_literals;
using model::Claim;
using model::Delivery;
using model::JobState;
using model::Result;

using Edges = std::set<std::pair<std::string, std::string>>;
const std::string nothing = "[*]";  // the row is missing

// The arrows of the diagram below this heading.
Edges diagram(const std::string& heading) {
  std::ifstream file(CONVERSED_SOURCE_DIR "/docs/architecture.md");
  Edges edges;
  bool inside = false;
  for (std::string line; std::getline(file, line);) {
    if (line.starts_with("##")) inside = line == "### " + heading;
    std::istringstream words(line);
    std::string from;
    std::string arrow;
    std::string to;
    if (!inside || !(words >> from >> arrow >> to) || arrow != "-->") continue;
    if (to.back() == ':') to.pop_back();
    edges.emplace(from, to);
  }
  return edges;
}

class LifeCycleTest : public StoreTest {
 protected:
  // A step of one thing. No other thing has its session, id or partition.
  using Step = std::function<void()>;
  using Steps = std::vector<Step>;

  void SetUp() override {
    StoreTest::SetUp();
    write([](Connection& connection) {
      connection.run("INSERT INTO organisations (id, name) VALUES ('o', 'o')");
      connection.run(
          "INSERT INTO projects (id, organisation_id, name, proactive)"
          " VALUES ('project', 'o', 'p', 'null')");
      connection.run(
          "INSERT INTO flows (id, project_id, name, version) VALUES ('flow', 'project', 'f', 1)");
      connection.run(
          "INSERT INTO endpoints (id, project_id, name, flow_id, url_token, session_expiry_ms,"
          " active_only, error_text, webhook_url, webhook_url_source, webhook_secret,"
          " webhook_secret_source, webhook_secret_changed_at, previous_webhook_secret)"
          " VALUES ('endpoint', 'project', 'e', 'flow', 't', 0, 0, '', '', '', '', '', 0, '')");
      connection.run(
          "INSERT INTO journeys (id, project_id, definition, active, created_at)"
          " VALUES ('j', 'project', '{}', 1, 0)");
      connection.run(
          "INSERT INTO jobs (id, n, project_id, type, name, state, progress, current_step,"
          " total_steps, fail_reason, data, created_at, changed_at, fencing_token, lease_until)"
          " VALUES ('set up', 1, 'project', :t, '', 'done', 100, 0, 0, '', 'null', 0, 0, 0, 0)",
          model::proactive_setup);
    });
  }

  // Makes a thing by each of `makers`, takes each step once in each state that is reached, and
  // returns the changes of state.
  Edges explore(const Steps& makers, const Steps& steps,
                const std::function<std::string()>& state) {
    Edges seen;
    std::set<std::string> known{nothing};
    std::deque<Steps> ways;  // each leads from no row to a state
    for (const auto& maker : makers) {
      begin_thing();
      maker();
      ways.push_back({maker});
      seen.emplace(nothing, *known.insert(state()).first);
    }
    for (; !ways.empty(); ways.pop_front()) {
      for (const auto& step : steps) {
        begin_thing();
        for (const auto& earlier : ways.front()) earlier();
        const auto before = state();
        step();
        const auto after = state();
        if (after != before) seen.emplace(before, after);
        if (!known.insert(after).second) continue;
        ways.push_back(ways.front());
        ways.back().push_back(step);
      }
    }
    return seen;
  }

  void begin_thing() {
    ++thing_;
    id_ = "thing" + std::to_string(thing_);
    key_ = key_of(id_);
    due_at_ = clock_.now() + 1h;
  }

  template <typename Work>
  void write(const Work& work) {
    const auto written = store_->committer().write_and_wait([&](Writer& writer) -> Result<void> {
      work(writer.connection());
      return {};
    });
    ASSERT_TRUE(written) << written.error().message;
  }
  template <typename... In>
  std::optional<std::int64_t> number(const std::string& sql, const In&... in) {
    std::optional<std::int64_t> found;
    write([&](Connection& connection) { found = connection.value<std::int64_t>(sql, in...); });
    return found;
  }
  template <typename... In>
  std::string text(const std::string& sql, const In&... in) {
    std::optional<std::string> found;
    write([&](Connection& connection) { found = connection.value<std::string>(sql, in...); });
    return found.value_or(nothing);
  }

  // Commits a session commit without outputs after `change` has changed it. It may be a conflict.
  void commit(const std::function<void(SessionCommit&)>& change) {
    const auto version = number("SELECT version FROM sessions WHERE key = :k", key_.encode());
    auto next = turn(key_, version.value_or(0), thing_);
    next.outputs.clear();
    change(next);
    (void)commit_now(std::move(next));
  }
  Step claim(Claim::Kind kind) {
    return [this, kind] { commit([&](SessionCommit& next) { next.claims = {{kind, id_}}; }); };
  }
  // The steps that end every kind of row.
  Steps ends() {
    return {[this] { (void)store_->first().sessions().reset(key_, {}); },
            [this] {
              EXPECT_TRUE(store_->first().user_data().erase(
                  {"project", id_},
                  {.finished = [](const model::Position&) { return true; }, .ended = {}}));
            },
            [this] { commit([](SessionCommit& next) { next.calls.all_abandoned = true; }); },
            [this] { commit([](SessionCommit& next) { next.follow_ups.cancelled = true; }); }};
  }
  static Steps joined(Steps steps, const Steps& more) {
    steps.insert(steps.end(), more.begin(), more.end());
    return steps;
  }

  // Timers. `start` makes the row. `kind` is the kind of claim that its event has.
  Edges explore_timer(const Step& start, Claim::Kind kind, const Steps& more) {
    const Steps steps{
        [this, kind] {
          const Claim claimed{kind, kind == Claim::Kind::schedule ? schedule_claim() : id_};
          store_->first().timers().appended({{due_at_, claimed}}, [] {});
        },
        [this] { EXPECT_TRUE(store_->first().timers().log_lost()); },
        [this] {
          due_at_ += 1h;
          (void)store_->first().timers().reschedule(id_, due_at_);
        },
        [this] { (void)store_->first().timers().cancel(id_); },
    };
    const auto state = [this] {
      for (const std::string table : {"pending_calls", "follow_ups", "schedules"}) {
        const auto appended = number("SELECT appended FROM " + table + " WHERE id = :i", id_);
        if (appended) return std::string(*appended != 0 ? "appended" : "waiting");
      }
      return nothing;
    };
    return explore({start}, joined(joined(steps, more), ends()), state);
  }
  std::string schedule_claim() { return text("SELECT claim FROM schedules WHERE id = :i", id_); }

  model::PendingCall timer(bool is_time_out) const {
    model::PendingCall timer;
    timer.id = id_;
    timer.session = key_;
    timer.due_at = due_at_;
    timer.is_time_out = is_time_out;
    return timer;
  }

  int thing_ = 0;
  std::string id_;
  model::SessionKey key_;
  model::Timestamp due_at_{};
};

TEST_F(LifeCycleTest, OutputsFollowTheDiagram) {
  std::string output_id;
  const auto say = [&](Delivery delivery, bool withdrawable) {
    return [this, &output_id, delivery, withdrawable] {
      auto next = turn(key_, 0, thing_, delivery);
      next.outputs.front().withdrawable = withdrawable;
      output_id = next.outputs.front().id;
      ASSERT_EQ(commit_now(std::move(next)), Outcome::committed);
    };
  };
  const auto output = [&] {
    model::Output sent;
    sent.id = output_id;
    sent.seq = 1;
    return sent;
  };
  const auto give_up = [&] {
    store_->first().outbox().give_up(key_, output(), "reason", true, [](const Result<void>&) {});
  };
  const Steps steps = joined(
      {
          [&] {
            store_->first().outbox().begin_delivery(key_, output(), [](const Result<void>&) {});
          },
          [&] { store_->first().outbox().delivered(key_, output(), 0); },
          [&] { store_->first().outbox().reschedule(key_, output(), clock_.now() + 1h, 1); },
          give_up,
          [&] {
            const auto letter =
                text("SELECT id FROM dead_letters WHERE key = :k AND state = 'new'", key_.encode());
            (void)store_->first().dead_letters().replay_output("project", letter, {});
          },
          [&] { EXPECT_TRUE(store_->first().outbox().prune(clock_.now() + 1h, 0, 10'000)); },
      },
      ends());
  const auto state = [&] {
    return text(
        "SELECT CASE WHEN d.seq IS NULL THEN 'kept' WHEN d.withdrawable = 1 THEN 'withdrawable'"
        " ELSE 'pending' END FROM outputs o LEFT JOIN deliveries d ON d.session = o.session"
        " AND d.seq = o.seq WHERE o.output_id = :i",
        output_id);
  };
  const auto say_and_give_up = [&] {
    say(Delivery::pending, false)();
    give_up();
  };
  EXPECT_EQ(explore({say(Delivery::none, false), say(Delivery::pending, false),
                     say(Delivery::pending, true), say_and_give_up},
                    steps, state),
            diagram("Output"));
}

TEST_F(LifeCycleTest, CallsFollowTheDiagram) {
  const auto start = [&] {
    commit([&](SessionCommit& next) {
      model::PendingCall call;
      call.id = id_;
      call.session = key_;
      call.http.emplace();
      call.http->url = "https://one.example/";
      next.calls.started.push_back(std::move(call));
    });
  };
  const Steps steps = joined(
      {
          [&] { store_->first().calls().appended(id_, [] {}); },
          [&] { store_->first().calls().put_off(id_, clock_.now() + 1h, 1, [] {}); },
          [&] { EXPECT_TRUE(store_->first().calls().bring_forward(clock_.now(), clock_.now())); },
          [&] { EXPECT_TRUE(store_->first().timers().log_lost()); },
          claim(Claim::Kind::pending_call),
      },
      ends());
  const auto state = [&] {
    const auto appended = number("SELECT appended FROM pending_calls WHERE id = :i", id_);
    return appended ? std::string(*appended != 0 ? "appended" : "waiting") : nothing;
  };
  EXPECT_EQ(explore({start}, steps, state), diagram("Call"));
}

TEST_F(LifeCycleTest, TimersOfAllKindsFollowTheDiagram) {
  Edges seen;
  for (const bool is_time_out : {false, true}) {
    seen.merge(explore_timer(
        [&] { commit([&](SessionCommit& next) { next.calls.started = {timer(is_time_out)}; }); },
        Claim::Kind::timer, {claim(Claim::Kind::timer), [&] {
                               commit([&](SessionCommit& next) { next.calls.cancelled = {id_}; });
                             }}));
  }
  seen.merge(explore_timer(
      [&] {
        model::FollowUp waits;
        waits.id = id_;
        waits.session = key_;
        waits.due_at = due_at_;
        waits.plan.of_journey = true;
        commit([&](SessionCommit& next) { next.follow_ups.added.push_back(waits); });
      },
      Claim::Kind::follow_up,
      {claim(Claim::Kind::follow_up), [&] {
         EXPECT_TRUE(store_->committer().write_and_wait([&](Writer& writer) -> Result<void> {
           const auto off = store_->proactive().switch_off(writer, "project");
           return off ? Result<void>() : model::fail(off.error());
         }));
       }}));
  const auto fire = [&](std::optional<model::Timestamp> next_time) {
    commit([&](SessionCommit& next) {
      const auto fired = schedule_claim();
      next.claims = {{Claim::Kind::schedule, fired}};
      next.schedules_fired = {{fired, next_time}};
    });
  };
  seen.merge(explore_timer(
      [&] {
        model::Schedule schedule;
        schedule.id = id_;
        schedule.session = key_;
        schedule.text = "later";
        schedule.timezone = "UTC";
        schedule.due_at = due_at_;
        EXPECT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
      },
      Claim::Kind::schedule,
      {[&] { fire(std::nullopt); }, [&] { fire(due_at_ + 1h); },
       [&] {
         (void)store_->first().schedules().reschedule(
             "project", id_, {.cron = "", .timezone = "UTC", .due_at = due_at_ + 1h});
       },
       [&] { (void)store_->first().schedules().cancel("project", id_); }}));
  EXPECT_EQ(seen, diagram("Timer"));
}

TEST_F(LifeCycleTest, JobsFollowTheDiagramAndTheirTable) {
  const auto create = [&] {
    model::Job job;
    job.id = id_;
    job.project_id = id_;
    job.type = "long work";
    job.created_at = clock_.now();
    EXPECT_TRUE(store_->jobs().create(job));
  };
  const auto token = [&] {
    return number("SELECT fencing_token FROM jobs WHERE id = :i", id_).value_or(0);
  };
  const auto finish = [&](JobState state) {
    return [&, state] { (void)store_->jobs().finish(id_, token(), state, ""); };
  };
  const Steps steps{[&] { (void)store_->jobs().lease(id_, clock_.now()); },
                    [&] { (void)store_->jobs().renew(id_, token(), clock_.now()); },
                    [&] { (void)store_->jobs().step(id_, token(), {.progress = 10}); },
                    [&] { (void)store_->jobs().cancel(id_); },
                    [&] { EXPECT_TRUE(store_->jobs().end_leases()); },
                    [&] { EXPECT_TRUE(store_->jobs().prune(clock_.now() + 1h, 1'000)); },
                    finish(JobState::done),
                    finish(JobState::cancelled),
                    finish(JobState::error)};
  const auto state = [&] { return text("SELECT state FROM jobs WHERE id = :i", id_); };
  const Edges drawn = diagram("Job");
  EXPECT_EQ(explore({create}, steps, state), drawn);
  Edges allowed;
  for (const auto& [from, to] : model::job_transitions) {
    allowed.emplace(model::to_string(from), model::to_string(to));
  }
  Edges changes;
  for (const auto& edge : drawn) {
    if (edge.first != nothing && edge.second != nothing) changes.insert(edge);
  }
  EXPECT_EQ(changes, allowed);
}

TEST_F(LifeCycleTest, PartitionsFollowTheDiagram) {
  const auto take_up = [&](const std::string& run, std::int64_t committed) {
    return [&, run, committed] {
      const std::vector<Attempts::Taking> taking{
          {.partition = thing_, .committed = committed, .taken_below = 13}};
      EXPECT_TRUE(store_->first().attempts().take_up(run, taking));
    };
  };
  const auto give_up = [&](const std::string& run) {
    return [&, run] {
      const std::vector<std::int32_t> given{thing_};
      EXPECT_TRUE(store_->first().attempts().give_up(run, given));
    };
  };
  const Steps steps{
      take_up("a", 5),  take_up("b", 5),
      take_up("b", 13), give_up("a"),
      give_up("b"),     [&] { EXPECT_TRUE(store_->first().attempts().give_up_all("a")); }};
  const auto state = [&] {
    return text(
        "SELECT CASE WHEN run = '' THEN CASE WHEN left_below = 0 THEN 'free' ELSE 'left' END"
        " WHEN left_below = 0 THEN 'owned' ELSE 'recovering' END"
        " FROM partition_runs WHERE log_partition = :p",
        thing_);
  };
  EXPECT_EQ(explore({take_up("a", 5)}, steps, state), diagram("Partition"));
}

}  // namespace
}  // namespace conversed::store
