#include "store/conversation/outbox.h"

#include "store/conversation/due_sql.h"
#include "store/shards/backlog.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using std::chrono::seconds;

class OutboxTest : public StoreTest {
 protected:
  model::Result<void> give_up(const model::Output& output, bool failed_now = true) {
    std::promise<model::Result<void>> promise;
    store_->first().outbox().give_up(
        key_of("ann"), output, "no answer for 24 h", failed_now,
        [&](model::Result<void> done) { promise.set_value(std::move(done)); });
    return promise.get_future().get();
  }
  model::Result<void> begin_delivery(const model::Output& output) {
    std::promise<model::Result<void>> promise;
    store_->first().outbox().begin_delivery(
        key_of("ann"), output, [&](const model::Result<void>& done) { promise.set_value(done); });
    return promise.get_future().get();
  }
  // A try of the session's oldest pending output has failed.
  void put_off(const model::SessionKey& key, std::chrono::milliseconds by, int attempts) {
    const auto first = [&](Connection& connection) {
      return connection.value<std::int64_t>(
          "SELECT MIN(seq) FROM deliveries WHERE session = (SELECT id FROM sessions WHERE key = "
          ":k)",
          key);
    };
    const auto seq = store_->committer().write_and_wait(
        [&](Writer& writer) { return first(writer.connection()).value_or(0); });
    const auto output = store_->first().outbox().outputs(key, seq.value() - 1, 1)->front();
    store_->first().outbox().reschedule(key, output, clock_.now() + by, attempts);
  }
};

TEST_F(OutboxTest, APageHasTheOldestOutputsOfEachSession) {
  constexpr int sessions = 40;  // more than one statement reads
  for (int n = 0; n < sessions; ++n) {
    const auto key = key_of("user" + std::to_string(n));
    for (int turns = 0; turns < 3; ++turns) {
      ASSERT_EQ(commit_now(turn(key, turns, turns + 1)), Outcome::committed);
    }
  }
  const auto due = store_->first().outbox().due("endpoint", clock_.now(), sessions, 2);
  ASSERT_EQ(due->sessions.size(), std::size_t{sessions});
  for (const auto& each : due->sessions) {
    const auto said = store_->first().outbox().outputs(each.key, 0, 2);
    ASSERT_EQ(each.outputs.size(), 2U);
    for (std::size_t i = 0; i < 2; ++i) EXPECT_EQ(each.outputs[i].id, said->at(i).id);
  }
}

TEST_F(OutboxTest, SessionsOldestOutputComesFirstAndLeavesWhenDelivered) {
  ASSERT_EQ(commit_now(turn(key_of("ann"), 0, 1)), Outcome::committed);
  ASSERT_EQ(commit_now(turn(key_of("ann"), 1, 2)), Outcome::committed);
  auto due = store_->first().outbox().due("endpoint", clock_.now(), 10, 10);
  ASSERT_EQ(due->sessions.size(), 1U);
  ASSERT_EQ(due->sessions.front().outputs.size(), 2U);
  EXPECT_EQ(due->sessions.front().outputs.front().seq, 1);

  auto& committer = store_->committer();
  const auto said = due->sessions.front().outputs;
  store_->first().outbox().delivered(key_of("ann"), said[0], 0);
  store_->first().outbox().delivered(key_of("ann"), said[0], 0);  // a repeat is no error
  ASSERT_TRUE(committer.write_and_wait([](Writer&) -> model::Result<void> { return {}; }));
  due = store_->first().outbox().due("endpoint", clock_.now(), 10, 10);
  ASSERT_EQ(due->sessions.front().outputs.size(), 1U);
  EXPECT_EQ(due->sessions.front().outputs.front().seq, 2);
  auto erased = said[1];
  erased.id = "of another session, which had this key";
  store_->first().outbox().delivered(key_of("ann"), erased, 0);
  EXPECT_FALSE(give_up(erased));
  EXPECT_EQ(begin_delivery(erased).error().code, model::Errc::not_found);
  EXPECT_TRUE(begin_delivery(said[1]));
  EXPECT_EQ(read_backlog(store_->shards()).value().deliveries, 1)
      << "the mark of an erased session had an effect";
  store_->first().outbox().delivered(key_of("ann"), said[1], 0);
  ASSERT_TRUE(committer.write_and_wait([](Writer&) -> model::Result<void> { return {}; }));
  EXPECT_TRUE(store_->first().outbox().due("endpoint", clock_.now(), 10, 10)->sessions.empty());
  EXPECT_TRUE(store_->first().outbox().endpoints("", 10)->empty());
}

TEST_F(OutboxTest, RescheduledSessionWaitsWithAllThatFollows) {
  ASSERT_EQ(commit_now(turn(key_of("ann"), 0, 1)), Outcome::committed);
  put_off(key_of("ann"), seconds(30), 2);
  ASSERT_EQ(commit_now(turn(key_of("ann"), 1, 2)), Outcome::committed);
  const auto waits = store_->first().outbox().due("endpoint", clock_.now(), 10, 10);
  EXPECT_TRUE(waits->sessions.empty());
  EXPECT_EQ(waits->next, clock_.now() + seconds(30));
  clock_.advance(seconds(30));
  const auto due = store_->first().outbox().due("endpoint", clock_.now(), 10, 1);
  ASSERT_EQ(due->sessions.size(), 1U);
  EXPECT_EQ(due->sessions.front().attempts, 2);
  EXPECT_EQ(due->sessions.front().outputs.size(), 1U);
}

TEST_F(OutboxTest, FailedTryOfADroppedOutputPutsNothingOff) {
  for (int i = 0; i < 2; ++i) ASSERT_EQ(commit_now(turn(key_of("ann"), i, i)), Outcome::committed);
  const auto first = store_->first().outbox().outputs(key_of("ann"), 0, 1)->front();
  ASSERT_TRUE(store_->first().deliveries().drop(
      {.output_id = first.id, .key = key_of("ann"), .seq = first.seq}));
  store_->first().outbox().reschedule(key_of("ann"), first, clock_.now() + seconds(30), 1);
  ASSERT_TRUE(store_->committer().write_and_wait([](Writer&) {}));
  const auto due = store_->first().outbox().due("endpoint", clock_.now(), 10, 10);
  ASSERT_EQ(due->sessions.size(), 1U);
  EXPECT_EQ(due->sessions.front().attempts, 0);
  EXPECT_EQ(due->sessions.front().outputs.front().seq, 2);
}

TEST_F(OutboxTest, OutputsBehindARetryAreDueOnceItIsDelivered) {
  for (int i = 0; i < 2; ++i) ASSERT_EQ(commit_now(turn(key_of("ann"), i, i)), Outcome::committed);
  put_off(key_of("ann"), seconds(30), 2);
  ASSERT_EQ(commit_now(turn(key_of("ann"), 2, 2)), Outcome::committed);
  const auto waits =
      store_->first().outbox().due("endpoint", clock_.now() + seconds(30), 10, 10)->sessions;
  ASSERT_EQ(waits.size(), 1U);
  ASSERT_EQ(waits.front().outputs.size(), 3U);
  const auto mark_first = [&] {
    store_->first().outbox().delivered(key_of("ann"), waits.front().outputs.front(), 2);
  };
  EXPECT_TRUE(store_->first().outbox().due("endpoint", clock_.now(), 10, 10)->sessions.empty());
  mark_first();
  ASSERT_EQ(commit_now(turn(key_of("ann"), 3, 3)), Outcome::committed);
  const auto due = store_->first().outbox().due("endpoint", clock_.now(), 10, 10);
  ASSERT_EQ(due->sessions.size(), 1U);
  EXPECT_EQ(due->sessions.front().attempts, 0);
  EXPECT_EQ(due->sessions.front().outputs.size(), 3U);

  put_off(key_of("ann"), seconds(30), 1);
  mark_first();
  ASSERT_EQ(commit_now(turn(key_of("ann"), 4, 4)), Outcome::committed);
  EXPECT_TRUE(store_->first().outbox().due("endpoint", clock_.now(), 10, 10)->sessions.empty())
      << "the repeated mark of an earlier output ended the wait of a later one";
}

TEST_F(OutboxTest, WaitsOfAClockThatWasAheadAreBroughtForward) {
  for (const auto* user : {"ann", "bob"}) {
    ASSERT_EQ(commit_now(turn(key_of(user), 0, 1)), Outcome::committed);
  }
  put_off(key_of("ann"), std::chrono::hours(48), 2);
  put_off(key_of("bob"), seconds(30), 2);
  const auto latest = clock_.now() + std::chrono::hours(1);
  ASSERT_TRUE(store_->first().outbox().bring_forward(latest, clock_.now()));
  const auto due = store_->first().outbox().due("endpoint", clock_.now(), 10, 1);
  ASSERT_EQ(due->sessions.size(), 1U);
  EXPECT_EQ(due->sessions.front().key, key_of("ann"));
  EXPECT_EQ(due->next, clock_.now() + seconds(30));
}

TEST_F(OutboxTest, EndpointsAreFoundOnceEachWithTheirFirstDueSession) {
  for (const std::string endpoint : {"b", "a", "c"}) {
    for (const std::string user : {"ann", "bob"}) {
      const model::SessionKey key{"project of " + endpoint, endpoint, user, "s"};
      ASSERT_EQ(commit_now(turn(key, 0, 1)), Outcome::committed);
      put_off(key, seconds(user == "ann" ? 1 : 2), 1);
    }
  }
  ASSERT_TRUE(
      store_->committer().write_and_wait([](Writer&) -> model::Result<void> { return {}; }));
  auto page = store_->first().outbox().endpoints("", 2);
  ASSERT_EQ(page->size(), 2U);
  EXPECT_EQ(page->at(0).endpoint_id, "a");
  EXPECT_EQ(page->at(0).project_id, "project of a");
  EXPECT_EQ(page->at(0).due_at, clock_.now() + seconds(1));
  EXPECT_EQ(page->at(1).endpoint_id, "b");
  page = store_->first().outbox().endpoints("b", 2);
  ASSERT_EQ(page->size(), 1U);
  EXPECT_EQ(page->at(0).endpoint_id, "c");
}

TEST_F(OutboxTest, AgeIsByTheClockOfTimers) {
  auto commit = turn(key_of("ann"), 0, 1);
  commit.outputs.front().created_at = clock_.now();
  commit.timers_ahead = std::chrono::hours(2);
  ASSERT_EQ(commit_now(commit), Outcome::committed);
  const auto due = store_->first().outbox().due("endpoint", clock_.now(), 1, 1);
  EXPECT_EQ(due->sessions.at(0).outputs.at(0).created_at, clock_.now() + std::chrono::hours(2));
  EXPECT_EQ(store_->first().outbox().outputs(key_of("ann"), 0, 1)->at(0).created_at, clock_.now());
}

TEST_F(OutboxTest, PagesOfDueSessionsNeitherRepeatNorSkip) {
  for (int i = 0; i < 7; ++i) {
    ASSERT_EQ(commit_now(turn(key_of("user" + std::to_string(i)), 0, i)), Outcome::committed);
    if (i % 3 == 0) clock_.advance(seconds(1));
  }
  std::vector<model::SessionKey> seen;
  auto page = store_->first().outbox().due("endpoint", clock_.now(), 2, 1);
  while (!page->sessions.empty()) {
    for (const auto& delivery : page->sessions) seen.push_back(delivery.key);
    page = store_->first().outbox().due("endpoint", clock_.now(), 2, 1, &page->sessions.back());
  }
  ASSERT_EQ(seen.size(), 7U);
  for (int i = 0; i < 7; ++i) {
    EXPECT_EQ(seen[static_cast<std::size_t>(i)], key_of("user" + std::to_string(i)));
  }
}

TEST_F(OutboxTest, DueSessionsAreStepsThroughTheIndex) {
  const auto plan = plan_of(*store_, sql_of_due_sessions,
                            {"endpoint", std::int64_t{0}, std::int64_t{1}, std::int64_t{10}});
  if (!place_.in_postgres()) {  // which shows the plan of a recursive step only when it runs
    const char* const step = "deliveries_by_endpoint (endpoint_id=? AND (due_at,session)>";
    EXPECT_NE(plan.find(step), std::string::npos) << plan;
  }
  for (const char* const wrong : {"SCAN d ", "SCAN d\n", "SCAN s", "Seq Scan"}) {
    EXPECT_EQ(plan.find(wrong), std::string::npos) << plan;
  }
}

TEST_F(OutboxTest, OutputThatIsGivenUpIsAReplayableDeadLetterAndTheNextProceeds) {
  ASSERT_EQ(commit_now(turn(key_of("ann"), 0, 1)), Outcome::committed);
  ASSERT_EQ(commit_now(turn(key_of("ann"), 1, 2)), Outcome::committed);
  const auto output = store_->first().outbox().outputs(key_of("ann"), 0, 1)->front();
  ASSERT_TRUE(give_up(output));
  EXPECT_EQ(give_up(output).error().code, model::Errc::not_found);
  EXPECT_EQ(store_->first()
                .outbox()
                .due("endpoint", clock_.now(), 1, 1)
                ->sessions.front()
                .outputs.front()
                .seq,
            2);
  const auto letters = store_->first()
                           .dead_letters()
                           .list({.project_id = "project", .state = DeadLetterState::fresh}, 0, 10)
                           ->rows;
  ASSERT_EQ(letters.size(), 1U);
  EXPECT_EQ(letters.front().output_seq, 1);
  EXPECT_EQ(letters.front().attempts, 1);
  ASSERT_TRUE(store_->first().dead_letters().replay_output("project", letters.front().id));
  EXPECT_EQ(
      store_->first().dead_letters().replay_output("project", letters.front().id).error().code,
      model::Errc::conflict);
  EXPECT_EQ(store_->first()
                .outbox()
                .due("endpoint", clock_.now(), 1, 1)
                ->sessions.front()
                .outputs.front()
                .seq,
            1);
}

TEST_F(OutboxTest, PageOfDeadLettersExaminesABoundedNumber) {
  const auto& letters = store_->first().dead_letters();
  const auto rows = DeadLetters::most_examined + 1;
  const auto filled = store_->committer().write_and_wait([&](Writer& writer) {
    for (std::int64_t n = 1; n <= rows; ++n) {
      writer.connection().run(
          "INSERT INTO dead_letters (id, n, project_id, key, event_id, type, trace_id, value,"
          " attempts, reason, flow, flow_version, node, state, created_at) VALUES (:i, :n,"
          " 'project', :k, 'e', 'inject', '', '{}', 0, :r, '', 0, '', 'new', :c)",
          model::new_id(), n, key_of("ann"), n == rows ? "rare" : "usual", clock_.now());
    }
    return model::Result<void>();
  });
  ASSERT_TRUE(filled) << filled.error().message;
  const DeadLetters::Filter rare{.project_id = "project", .reason = "rare"};
  const auto first = letters.list(rare, 0, 10);
  EXPECT_TRUE(first->rows.empty());
  ASSERT_EQ(first->next, DeadLetters::most_examined);
  const auto second = letters.list(rare, *first->next, 10);
  EXPECT_EQ(second->rows.size(), 1U);
  EXPECT_EQ(second->next, std::nullopt);
  EXPECT_EQ(letters.list(rare, rows, 10)->next, std::nullopt) << "behind the last one";
}

TEST_F(OutboxTest, PruningSparesUndeliveredOutputs) {
  ASSERT_EQ(commit_now(turn(key_of("ann"), 0, 1)), Outcome::committed);
  ASSERT_EQ(commit_now(turn(key_of("ann"), 1, 2, model::Delivery::none)), Outcome::committed);
  const auto pruned = store_->first().outbox().prune(clock_.now(), 0, 100);
  ASSERT_TRUE(pruned) << pruned.error().message;
  EXPECT_EQ(pruned->removed, 1);
  EXPECT_FALSE(store_->first().outbox().prune(clock_.now(), *pruned->last_row, 100)->last_row);
  EXPECT_EQ(store_->first().outbox().outputs(key_of("ann"), 0, 10)->front().seq, 1);
}

TEST_F(OutboxTest, TextsComeOutAsTheyWentIn) {
  auto commit = turn(key_of("ann"), 0, 1);
  commit.outputs.front().text = std::string("a\0b\xE2\x82\xAC\n", 7);
  commit.outputs.front().data = {{"x", std::string("\0", 1)}, {"n", 1.5}};
  const auto text = commit.outputs.front().text;
  const auto data = commit.outputs.front().data;
  ASSERT_EQ(commit_now(commit), Outcome::committed);
  const auto outputs = store_->first().outbox().outputs(key_of("ann"), 0, 1);
  EXPECT_EQ(outputs->front().text, text);
  EXPECT_EQ(outputs->front().data, data);
}

// A client that keeps a number from before an erasure would wait for ever: numbers begin anew.
TEST_F(OutboxTest, TheLastNumberShowsThatTheSessionBeganAnew) {
  const auto key = key_of("ann");
  const auto numbers = [&](std::int64_t after) {
    const auto outputs = store_->first().outbox().outputs(key, after, 10);
    std::vector<std::int64_t> list;
    for (const auto& output : *outputs) list.push_back(output.seq);
    return list;
  };
  EXPECT_EQ(store_->first().outbox().last_seq(key), 0);
  ASSERT_EQ(commit_now(turn(key, 0, 1)), Outcome::committed);
  ASSERT_EQ(commit_now(turn(key, 1, 2)), Outcome::committed);
  EXPECT_TRUE(numbers(17).empty());
  EXPECT_EQ(store_->first().outbox().last_seq(key), 2);
  EXPECT_EQ(numbers(1), (std::vector<std::int64_t>{2}));
  EXPECT_TRUE(numbers(2).empty()) << "the client has all outputs";
}

}  // namespace
}  // namespace conversed::store
