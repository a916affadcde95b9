#include "store/conversation/deliveries.h"

#include <algorithm>

#include "store/conversation/due_sql.h"
#include "store/shards/backlog.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using std::chrono::seconds;
using State = DeliveryState;

class DeliveriesTest : public StoreTest {
 protected:
  // Each user says `outputs` things on the Endpoint.
  void say(const std::string& user, int outputs) {
    for (int i = 0; i < outputs; ++i) {
      auto commit = turn(key_of(user), i, i);
      commit.outputs.front().created_at = clock_.now();
      commit.outputs.front().id = user + "-" + std::to_string(i + 1);
      ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
    }
  }
  void settle() {
    ASSERT_TRUE(store_->committer().write_and_wait([](Writer&) {}));
  }
  void put_off(const std::string& user, seconds by) {
    const auto first = store_->first().outbox().outputs(key_of(user), 0, 1)->front();
    store_->first().outbox().reschedule(key_of(user), first, clock_.now() + by, 2);
    settle();
  }
  // The filter of the Endpoint.
  static Deliveries::Filter of_endpoint(std::optional<State> state = {}) {
    return {.project_id = "project", .endpoint_id = "endpoint", .state = state};
  }
  // The ids on all pages of this size.
  std::vector<std::string> ids(const Deliveries::Filter& filter, std::size_t limit = 100) {
    std::vector<std::string> found;
    for (std::optional<Deliveries::Place> after = Deliveries::Place(); after;) {
      auto page = store_->first().deliveries().list(filter, *after, limit, clock_.now());
      if (!page) ADD_FAILURE() << page.error().message;
      EXPECT_LE(page->rows.size(), limit);
      for (const auto& row : page->rows) found.push_back(row.output_id);
      after = page->next;
    }
    return found;
  }
  PendingDelivery get(const std::string& id) {
    auto found = store_->first().deliveries().get(id, clock_.now());
    if (!found) ADD_FAILURE() << found.error().message;
    return found.value_or(PendingDelivery());
  }
  using Ids = std::vector<std::string>;
};

TEST_F(DeliveriesTest, AreListedInOrderOnPagesOfAnySize) {
  say("ann", 3);
  say("bob", 1);
  say("cem", 2);
  put_off("ann", seconds(30));
  const Ids all{"bob-1", "cem-1", "cem-2", "ann-1", "ann-2", "ann-3"};
  for (std::size_t limit = 1; limit <= 7; ++limit) EXPECT_EQ(ids(of_endpoint(), limit), all);
}

TEST_F(DeliveriesTest, AreListedForTheNamedEndpoints) {
  say("ann", 2);
  auto other = turn(key_of("bob"), 0, 1);
  other.key.endpoint_id = other.after.key.endpoint_id = "another";
  other.outputs.front().id = "bob-1";
  ASSERT_EQ(commit_now(std::move(other)), Outcome::committed);
  Deliveries::Filter filter{.project_id = "project", .endpoints = {"endpoint", "none", "another"}};
  for (std::size_t limit = 1; limit <= 4; ++limit) {
    EXPECT_EQ(ids(filter, limit), (Ids{"bob-1", "ann-1", "ann-2"}));
  }
  filter.endpoints = {"endpoint"};
  EXPECT_EQ(ids(filter), (Ids{"ann-1", "ann-2"}));
}

TEST_F(DeliveriesTest, FilterChoosesByStateSessionAndAge) {
  say("ann", 2);
  clock_.advance(seconds(60));
  say("bob", 2);
  put_off("ann", seconds(30));
  for (std::size_t limit = 1; limit <= 3; ++limit) {
    EXPECT_EQ(ids(of_endpoint(State::due), limit), Ids{"bob-1"});
    EXPECT_EQ(ids(of_endpoint(State::waiting), limit), Ids{"ann-1"});
    EXPECT_EQ(ids(of_endpoint(State::behind), limit), (Ids{"bob-2", "ann-2"}));
    EXPECT_EQ(ids(of_endpoint(State::paused), limit), Ids{});
    EXPECT_EQ(ids({.project_id = "project", .session = key_of("ann")}, limit),
              (Ids{"ann-1", "ann-2"}));
    auto old = of_endpoint();
    old.created_before = clock_.now();
    EXPECT_EQ(ids(old, limit), (Ids{"ann-1", "ann-2"}));
  }
}

TEST_F(DeliveriesTest, OneShowsItsStateAndTheOutputThatGoesFirst) {
  say("ann", 2);
  put_off("ann", seconds(30));
  EXPECT_EQ(get("ann-1").state, State::waiting);
  EXPECT_EQ(get("ann-1").due_at, clock_.now() + seconds(30));
  EXPECT_EQ(get("ann-2").state, State::behind);
  EXPECT_EQ(get("ann-2").first_output_id, "ann-1");
  EXPECT_EQ(get("ann-2").attempts, 2);
  EXPECT_EQ(store_->first().deliveries().get("ann-3", clock_.now()).error().code,
            model::Errc::not_found);
}

TEST_F(DeliveriesTest, OfAPausedEndpointArePaused) {
  say("ann", 2);
  store_->first().endpoint_health().failed({.endpoint_id = "endpoint",
                                            .failing_since = clock_.now(),
                                            .last_at = clock_.now(),
                                            .paused_since = clock_.now()});
  settle();
  EXPECT_EQ(ids(of_endpoint(State::paused)), Ids{"ann-1"});
  EXPECT_EQ(ids(of_endpoint(State::behind)), Ids{"ann-2"});
  ASSERT_TRUE(store_->first().endpoint_health().resume("endpoint"));
  EXPECT_EQ(ids(of_endpoint(State::paused)), Ids{});
}

TEST_F(DeliveriesTest, RetryOfALaterOutputMakesTheFirstOneDue) {
  say("ann", 2);
  put_off("ann", seconds(30));
  ASSERT_TRUE(store_->first().deliveries().retry(get("ann-2")));
  EXPECT_EQ(get("ann-1").state, State::due);
  EXPECT_EQ(get("ann-2").state, State::behind);
  const PendingDelivery unknown{.output_id = "ann-3", .key = key_of("ann"), .seq = 3};
  EXPECT_EQ(store_->first().deliveries().retry(unknown).error().code, model::Errc::not_found);
}

TEST_F(DeliveriesTest, DroppedOutputIsKeptWithADiscardedDeadLetterAndTheNextIsDue) {
  say("ann", 2);
  put_off("ann", seconds(30));
  const auto first = get("ann-1");
  ASSERT_TRUE(store_->first().deliveries().drop(first));
  EXPECT_EQ(store_->first().deliveries().drop(first).error().code, model::Errc::not_found);
  EXPECT_EQ(get("ann-2").state, State::due);
  EXPECT_EQ(get("ann-2").attempts, 0);
  EXPECT_EQ(store_->first().outbox().outputs(key_of("ann"), 0, 10)->size(), 2U);
  const auto letters = store_->first().dead_letters().list({.project_id = "project"}, 0, 10)->rows;
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters.front().state, DeadLetterState::discarded);
  EXPECT_EQ(letters.front().output_seq, 1);
}

TEST_F(DeliveriesTest, DropOfALaterOutputLeavesTheWaitOfTheFirstOne) {
  say("ann", 3);
  put_off("ann", seconds(30));
  ASSERT_TRUE(store_->first().deliveries().drop(get("ann-2")));
  EXPECT_EQ(ids(of_endpoint()), (Ids{"ann-1", "ann-3"}));
  EXPECT_EQ(get("ann-1").state, State::waiting);
  EXPECT_EQ(get("ann-1").attempts, 2);
}

TEST_F(DeliveriesTest, DropOfAnOutputWithoutFailedTriesWritesNoOtherRow) {
  say("ann", 3);
  // A mark that a write of the row would remove.
  ASSERT_TRUE(store_->committer().write_and_wait([](Writer& writer) {
    writer.connection().run("UPDATE deliveries SET due_at = 7 WHERE output_id = 'ann-3'");
  }));
  ASSERT_TRUE(store_->first().deliveries().drop(get("ann-1")));
  EXPECT_TRUE(get("ann-3").due_at);
}

TEST_F(DeliveriesTest, WalkVisitsTheOutputsOfItsProjectOnceInStepsOfAnySize) {
  say("ann", 3);
  ASSERT_EQ(commit_now(turn(key_of("eve", "other"), 0, 0)), Outcome::committed);
  say("bob", 1);
  ASSERT_EQ(commit_now(turn(key_of("dan"), 0, 0, model::Delivery::none)), Outcome::committed);
  say("cem", 2);
  const Deliveries::Filter filter{.project_id = "project"};
  const auto sessions = store_->first().deliveries().sessions(filter);
  ASSERT_TRUE(sessions);
  for (std::size_t examined = 1; examined <= 7; ++examined) {
    Ids found;
    for (std::optional<Deliveries::Step> after = Deliveries::Step{sessions->first, 0}; after;) {
      const auto walked =
          store_->first().deliveries().walk(filter, *after, sessions->last, examined, clock_.now());
      ASSERT_TRUE(walked) << walked.error().message;
      for (const auto& row : walked->rows) found.push_back(row.output_id);
      after = walked->next;
    }
    EXPECT_EQ(found, (Ids{"ann-1", "ann-2", "ann-3", "bob-1", "cem-1", "cem-2"})) << examined;
  }
}

TEST_F(DeliveriesTest, ListIsStepsThroughTheIndex) {
  const auto expect_searches = [&](std::string_view sql, const std::vector<SqlValue>& values) {
    const auto plan = plan_of(*store_, sql, values);
    for (const char* const wrong : {"SCAN", "Seq Scan", "Sort", "B-TREE"}) {
      EXPECT_EQ(plan.find(wrong), std::string::npos) << plan;
    }
  };
  expect_searches(sql_of_session_deliveries, {std::int64_t{1}, std::int64_t{0}, std::int64_t{10}});
  expect_searches(sql_of_delivery, {std::int64_t{1}, "ann-1"});
  const auto newest = plan_of(*store_, sql_of_pending_session, {"ann-1", "ann-1!"});
  for (const char* const wrong : {"Sort", "B-TREE"}) {
    EXPECT_EQ(newest.find(wrong), std::string::npos) << newest;
  }
  for (const auto& plan :
       {plan_of(*store_, sql_of_endpoints_with_deliveries, {"[\"a\",\"b\"]", "a"}),
        plan_of(*store_, sql_of_sessions_with_deliveries,
                {"project", std::int64_t{1}, std::int64_t{9}, std::int64_t{10}})}) {
    for (const char* const wrong : {"SCAN d", "SCAN s", "Seq Scan"}) {
      EXPECT_EQ(plan.find(wrong), std::string::npos) << plan;
    }
  }
}

class EndpointHealthTest : public DeliveriesTest {
 protected:
  EndpointFailure failure(std::optional<model::Timestamp> paused_since = {}) {
    return {.endpoint_id = "endpoint",
            .failing_since = clock_.now(),
            .last_status = 500,
            .last_error = "the webhook answered 500",
            .last_at = clock_.now(),
            .paused_since = paused_since};
  }
  std::optional<EndpointFailure> found() {
    settle();
    return *store_->first().endpoint_health().find("endpoint");
  }
};

TEST_F(EndpointHealthTest, RowKeepsTheBeginAndCountsUntilASuccess) {
  const auto begin = clock_.now();
  for (int i = 0; i < 3; ++i) {
    store_->first().endpoint_health().failed(failure());
    clock_.advance(seconds(1));
  }
  ASSERT_TRUE(found());
  EXPECT_EQ(found()->failing_since, begin);
  EXPECT_EQ(found()->failures, 3);
  EXPECT_EQ(found()->last_at, begin + seconds(2));
  EXPECT_EQ(read_backlog(store_->shards()).value().failing_endpoint, begin);
  EXPECT_EQ(store_->first().endpoint_health().resume("endpoint").error().code,
            model::Errc::conflict);
  store_->first().endpoint_health().works("endpoint", clock_.now());
  EXPECT_FALSE(found());
}

TEST_F(EndpointHealthTest, RowOfAPauseStaysUntilItIsForgotten) {
  say("ann", 1);
  store_->first().endpoint_health().failed(failure(clock_.now()));
  put_off("ann", seconds(60));
  EXPECT_TRUE(found()->paused());
  EXPECT_EQ(read_backlog(store_->shards()).value().paused_endpoint, clock_.now());
  clock_.advance(seconds(10));
  ASSERT_TRUE(store_->first().endpoint_health().resume("endpoint"));
  EXPECT_EQ(get("ann-1").state, State::due) << "the resumed Endpoint gets its outputs now";
  EXPECT_FALSE(found()->paused());
  EXPECT_EQ(found()->resumed_at, clock_.now());
  EXPECT_FALSE(read_backlog(store_->shards()).value().paused_endpoint);
  EXPECT_EQ(store_->first().endpoint_health().forget(clock_.now()).value(), Ids{});
  EXPECT_TRUE(found());
  EXPECT_EQ(store_->first().endpoint_health().forget(clock_.now() + seconds(1)).value(),
            Ids{"endpoint"});
  EXPECT_FALSE(found());
}

TEST_F(EndpointHealthTest, RowGoesWithTheLastOutput) {
  say("ann", 2);
  store_->first().endpoint_health().failed(failure(clock_.now()));
  ASSERT_TRUE(store_->first().deliveries().drop(get("ann-1")));
  EXPECT_EQ(store_->first().endpoint_health().forget(clock_.now()).value(), Ids{});
  ASSERT_TRUE(store_->first().deliveries().drop(get("ann-2")));
  EXPECT_EQ(store_->first().endpoint_health().forget(clock_.now()).value(), Ids{"endpoint"});
  EXPECT_FALSE(found());
}

TEST_F(EndpointHealthTest, FailureFromBeforeTheResumePausesNothing) {
  auto view = failure(clock_.now());
  store_->first().endpoint_health().failed(view);
  clock_.advance(seconds(10));
  ASSERT_TRUE(store_->first().endpoint_health().resume("endpoint"));
  const auto resumed = clock_.now();
  clock_.advance(seconds(1));
  view.last_at = clock_.now();
  store_->first().endpoint_health().failed(view);
  ASSERT_TRUE(found());
  EXPECT_FALSE(found()->paused());
  EXPECT_EQ(found()->resumed_at, resumed);
  EXPECT_EQ(found()->failing_since, clock_.now()) << "the failures before the resume are over";
  // A later failure of a daemon that knows of the resume.
  view.failing_since = clock_.now();
  clock_.advance(seconds(60));
  view.paused_since = view.last_at = clock_.now();
  store_->first().endpoint_health().failed(view);
  EXPECT_TRUE(found()->paused());
  EXPECT_EQ(found()->paused_since, clock_.now());
}

TEST_F(EndpointHealthTest, FailureOfADaemonThatDoesNotKnowThePauseKeepsIt) {
  store_->first().endpoint_health().failed(failure(clock_.now()));
  store_->first().endpoint_health().failed(failure());
  EXPECT_TRUE(found()->paused());
}

}  // namespace
}  // namespace conversed::store
