// Finds waiting rows by an id.
#include "store/conversation/due_sql.h"
#include "store/model/reason.h"
#include "store/shards/backlog.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

class WaitingTest : public StoreTest {
 protected:
  static InboxEvent event(const std::string& id) {
    model::Event event{.id = id, .session = key_of("ann"), .accepted_at = model::from_unix_ms(7)};
    return {id, "inject", std::string(32, '7'), model::encode_value(event)};
  }
  void expect_searches(std::string_view sql, const std::vector<SqlValue>& values) {
    const auto plan = plan_of(*store_, sql, values);
    for (const char* const wrong : {"SCAN", "Seq Scan", "Sort", "B-TREE"}) {
      EXPECT_EQ(plan.find(wrong), std::string::npos) << plan;
    }
  }
};

TEST_F(WaitingTest, EventOfAnInboxIsFoundWithTheEventsBeforeIt) {
  auto commit = turn(key_of("ann"), 0, 1);
  commit.inbox.added = {event("e1"), event("e2"), event("e3")};
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  const auto first = store_->first().sessions().in_inbox("e1").value();
  ASSERT_TRUE(first);
  EXPECT_EQ(first->ahead, 0);
  EXPECT_EQ(first->first_ahead, "");
  const auto last = store_->first().sessions().in_inbox("e3").value();
  ASSERT_TRUE(last);
  EXPECT_EQ(last->key, key_of("ann"));
  EXPECT_EQ(last->ahead, 2);
  EXPECT_EQ(last->first_ahead, "e1");
  EXPECT_EQ(last->since, model::from_unix_ms(7));
  EXPECT_FALSE(store_->first().sessions().in_inbox("e4").value());
  expect_searches(sql_of_inbox_event, {"e1"});
}

TEST_F(WaitingTest, OldestEventOfTheInboxesIsFoundByItsId) {
  EXPECT_FALSE(read_backlog(store_->shards()).value().inbox_event);
  auto commit = turn(key_of("ann"), 0, 1);
  commit.inbox.added = {event("e2"), event("e3")};
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  EXPECT_EQ(read_backlog(store_->shards()).value().inbox_event, model::from_unix_ms(7));
  expect_searches(sql_of_oldest_inbox_event, {});
}

TEST_F(WaitingTest, CallOfAnExecutionIsFoundByItsInput) {
  const std::string input = model::new_id();
  auto commit = turn(key_of("ann"), 0, 1);
  commit.calls.started.push_back(
      {.id = input + "-c2", .session = key_of("ann"), .due_at = clock_.now()});
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  EXPECT_EQ(store_->first().calls().of_execution(input).value(), input + "-c2");
  EXPECT_FALSE(store_->first().calls().of_execution(input + "-c2").value());
  expect_searches(sql_of_execution_call, {input, input});
}

TEST_F(WaitingTest, PendingOutputIsFoundByItsInput) {
  auto commit = turn(key_of("ann"), 0, 1);
  commit.outputs.front().id = "in-1";
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  EXPECT_EQ(store_->first().deliveries().of_input("in").value(), "in-1");
  EXPECT_FALSE(store_->first().deliveries().of_input("i").value());
  expect_searches(sql_of_input_delivery, {std::int64_t{1}, "in-", "in."});
}

TEST_F(WaitingTest, DeadLetterIsFoundByItsIdItsEventAndItsOutput) {
  auto commit = turn(key_of("ann"), 0, 1);
  commit.outputs.front().id = "in-1";
  commit.outputs.front().input_id = "in";
  const auto id = model::new_id();
  commit.dead_letters = {{id, event("e1"), "too many steps"},
                         {model::new_id(), event("e2-c1-r"), "the upstream answered 401"}};
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  EXPECT_EQ(read_backlog(store_->shards()).value().dead_letter, clock_.now());
  EXPECT_NE(store_->first().dead_letters().newest_new().value(), id) << "it is the older one";
  EXPECT_EQ(store_->first().dead_letters().newest_new().value().size(), model::id_length);
  ASSERT_TRUE(
      store_->first().deliveries().drop({.output_id = "in-1", .key = key_of("ann"), .seq = 1}));
  EXPECT_EQ(store_->first().dead_letters().of(id).value()->id, id);
  EXPECT_EQ(store_->first().dead_letters().of("e1").value()->id, id);
  EXPECT_EQ(store_->first().dead_letters().of("e2").value()->event.event_id, "e2-c1-r");
  EXPECT_EQ(store_->first().dead_letters().of("in-1").value()->output_seq, 1);
  EXPECT_FALSE(store_->first().dead_letters().of("in-2").value());
  expect_searches(sql_of_dead_letters_of_event, {"e1", "e1", std::int64_t{10}});
}

TEST_F(WaitingTest, BacklogCountsWhatWaits) {
  const auto nothing = read_backlog(store_->shards());
  ASSERT_TRUE(nothing);
  EXPECT_EQ(nothing->deliveries + nothing->dead_letters + nothing->running_calls, 0);
  EXPECT_EQ(nothing->inbox_events, 0);
  EXPECT_FALSE(nothing->dead_letter || nothing->inbox_event || nothing->queued_job);
  EXPECT_FALSE(nothing->failing_endpoint || nothing->paused_endpoint);
  auto commit = turn(key_of("ann"), 0, 1);
  commit.inbox.added = {event("e1"), event("e2")};
  commit.calls.started.push_back({.id = "c1", .session = key_of("ann"), .due_at = clock_.now()});
  commit.dead_letters = {{model::new_id(), event("e3"), "too many steps"}};
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  const auto backlog = read_backlog(store_->shards());
  ASSERT_TRUE(backlog);
  EXPECT_EQ(backlog->deliveries, 1);
  EXPECT_EQ(backlog->dead_letters, 1);
  EXPECT_EQ(backlog->running_calls, 1);
  EXPECT_EQ(backlog->inbox_events, 2);
}

TEST(BacklogTest, ShardsAreAddedUp) {
  constexpr auto at = [](int ms) { return model::from_unix_ms(ms); };
  Backlog all{.deliveries = most_counted, .dead_letters = 1, .dead_letter = at(5)};
  all += {.deliveries = 1,
          .dead_letters = 2,
          .running_calls = 3,
          .inbox_events = 4,
          .dead_letter = at(6),
          .inbox_event = at(3),
          .queued_job = at(7),
          .failing_endpoint = at(8),
          .paused_endpoint = at(9)};
  all += {};
  EXPECT_EQ(all.deliveries, most_counted);
  EXPECT_EQ(all.dead_letters, 3);
  EXPECT_EQ(all.running_calls, 3);
  EXPECT_EQ(all.inbox_events, 4);
  EXPECT_EQ(all.dead_letter, at(5)) << "the older one";
  EXPECT_EQ(all.inbox_event, at(3));
  EXPECT_EQ(all.queued_job, at(7));
  EXPECT_EQ(all.failing_endpoint, at(8));
  EXPECT_EQ(all.paused_endpoint, at(9));
}

TEST_F(WaitingTest, CountsReadIndexesAlone) {
  for (const auto sql :
       {sql_of_new_letters, sql_of_pending_deliveries, sql_of_inbox_events, sql_of_running_calls}) {
    const auto plan = plan_of(*store_, sql, {});
    const bool is_alone = plan.find("COVERING INDEX") != std::string::npos ||
                          plan.find("Index Only Scan") != std::string::npos;
    EXPECT_TRUE(is_alone) << sql << ": " << plan;
  }
}

TEST(ReasonTest, ReasonsHaveTheirCodesInOrder) {
  int code = 10;
  for (const auto& each : model::all_reasons()) {
    EXPECT_EQ(static_cast<int>(each.reason), code++);
    EXPECT_EQ(model::info_of(each.reason).name, each.name);
    EXPECT_FALSE(each.remedy.empty());
  }
}

}  // namespace
}  // namespace conversed::store
