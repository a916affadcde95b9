#include "store/commit/committer.h"

#include <latch>
#include <thread>

#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using CommitterTest = StoreTest;

model::PendingCall call_of(const model::SessionKey& key, const std::string& id) {
  model::PendingCall call;
  call.id = id;
  call.session = key;
  call.trace_id = "trace";
  call.http.emplace().method = "GET";
  call.http->url = "http://x/";
  return call;
}

TEST_F(CommitterTest, SessionCommitSurvivesReopening) {
  ASSERT_EQ(commit_now(turn(key_of("ann"), 0, 7)), Outcome::committed);
  open();
  const auto session = load(key_of("ann"));
  EXPECT_EQ(session.version, 1);
  EXPECT_EQ(session.context["count"], 1);
  EXPECT_EQ(session.position, (model::Position{.epoch = 1, .partition = 3, .offset = 7}));
  EXPECT_EQ(store_->first().outbox().outputs(key_of("ann"), 0, 10)->size(), 1U);
}

// Marks wait for longer than a test takes.
class CommitterMarks : public StoreTest {
 protected:
  void SetUp() override {
    auto settings = place_.store();
    settings.committer.mark_wait = std::chrono::hours(1);
    auto opened = Store::open(settings, clock_);
    ASSERT_TRUE(opened) << opened.error().message;
    store_ = *std::move(opened);
  }
  std::future<void> mark() {
    auto marked = std::make_shared<std::promise<void>>();
    store_->committer().mark([](Connection&) {}, [marked] { marked->set_value(); });
    return marked->get_future();
  }
};

TEST_F(CommitterMarks, AreWrittenWithTheNextCommit) {
  auto& committer = store_->committer();
  const auto before = committer.transactions();
  auto first = mark();
  auto second = mark();
  ASSERT_EQ(commit_now(turn(key_of("ann"), 0, 1)), Outcome::committed);
  first.wait();
  second.wait();
  // A transaction is counted after its callbacks. So a second one sees the count of the first.
  std::promise<std::uint64_t> counted;
  committer.submit(turn(key_of("ann"), 1, 2),
                   [&](Outcome, const auto&) { counted.set_value(committer.transactions()); });
  EXPECT_EQ(counted.get_future().get(), before + 1);
}

TEST_F(CommitterMarks, AreWrittenAtOnceForOneWhoHurries) {
  auto marked = mark();
  store_->committer().hurry();
  marked.wait();
}

TEST_F(CommitterMarks, AreWrittenAtTheStop) {
  auto marked = mark();
  store_->committer().stop();
  EXPECT_EQ(marked.wait_for(std::chrono::seconds(0)), std::future_status::ready);
}

TEST_F(CommitterMarks, AreWrittenOnceABatchIsFull) {
  std::future<void> marked;
  for (std::size_t i = 0; i < CommitterSettings{}.max_batch; ++i) marked = mark();
  marked.wait();
}

TEST_F(CommitterTest, MarkWaitsForAShortTimeOnly) {
  std::promise<void> marked;
  store_->committer().mark([](Connection&) {}, [&] { marked.set_value(); });
  marked.get_future().wait();
}

TEST_F(CommitterTest, CommitAgainstAnotherVersionIsConflictAndChangesNothing) {
  ASSERT_EQ(commit_now(turn(key_of("ann"), 0, 1)), Outcome::committed);
  EXPECT_EQ(commit_now(turn(key_of("ann"), 0, 2)), Outcome::conflict);
  EXPECT_EQ(commit_now(turn(key_of("ann"), 5, 2)), Outcome::conflict);
  EXPECT_EQ(commit_now(turn(key_of("bob"), 1, 2)), Outcome::conflict);
  EXPECT_EQ(load(key_of("ann")).version, 1);
  EXPECT_FALSE(store_->first().sessions().load(key_of("bob"))->has_value());
  EXPECT_EQ(store_->first().outbox().outputs(key_of("ann"), 0, 10)->size(), 1U);
}

TEST_F(CommitterTest, SuccessorOfALosingCommitLosesToo) {
  std::vector<Outcome> outcomes;
  std::promise<void> done;
  auto& committer = store_->committer();
  ASSERT_EQ(commit_now(turn(key_of("ann"), 0, 1)), Outcome::committed);
  committer.submit(turn(key_of("ann"), 1, 2),
                   [&](Outcome o, const auto&) { outcomes.push_back(o); });
  committer.submit(turn(key_of("ann"), 2, 3),
                   [&](Outcome o, const auto&) { outcomes.push_back(o); });
  committer.submit(turn(key_of("ann"), 9, 4),
                   [&](Outcome o, const auto&) { outcomes.push_back(o); });
  committer.submit(turn(key_of("ann"), 10, 5), [&](Outcome o, const auto&) {
    outcomes.push_back(o);
    done.set_value();
  });
  done.get_future().wait();
  EXPECT_EQ(outcomes, (std::vector{Outcome::committed, Outcome::committed, Outcome::conflict,
                                   Outcome::conflict}));
  EXPECT_EQ(load(key_of("ann")).version, 3);
}

TEST_F(CommitterTest, ProfileThatChangedSinceItWasReadIsConflict) {
  auto first = turn(key_of("ann"), 0, 1);
  first.profile.read_version = 0;
  first.profile.data = nlohmann::json{{"name", "Ann"}};
  ASSERT_EQ(commit_now(first), Outcome::committed);

  auto reader = turn(key_of("ann"), 1, 2);
  reader.profile.read_version = 0;
  EXPECT_EQ(commit_now(reader), Outcome::conflict);
  reader.profile.read_version = 1;
  EXPECT_EQ(commit_now(reader), Outcome::committed);
  const auto profile = store_->first().sessions().load_with_profile(key_of("ann"))->profile;
  EXPECT_EQ(profile.version, 1);
  EXPECT_EQ(profile.data["name"], "Ann");
}

TEST_F(CommitterTest, ClaimOfACallIsConsumedOnce) {
  auto begin = turn(key_of("ann"), 0, 1);
  begin.calls.started.push_back(call_of(key_of("ann"), "call1"));
  ASSERT_EQ(commit_now(begin), Outcome::committed);
  ASSERT_TRUE(store_->first().calls().find("call1")->has_value());

  auto result = turn(key_of("ann"), 1, 2);
  result.claims.push_back({model::Claim::Kind::pending_call, "call1"});
  EXPECT_EQ(commit_now(result), Outcome::committed);
  auto again = turn(key_of("ann"), 2, 3);
  again.claims = result.claims;
  EXPECT_EQ(commit_now(again), Outcome::conflict);
  EXPECT_FALSE(store_->first().calls().find("call1")->has_value());
}

TEST_F(CommitterTest, ClaimOfAnotherSessionsCallIsConflict) {
  auto begin = turn(key_of("ann"), 0, 1);
  begin.calls.started.push_back(call_of(key_of("ann"), "call1"));
  ASSERT_EQ(commit_now(begin), Outcome::committed);
  auto thief = turn(key_of("bob"), 0, 2);
  thief.claims.push_back({model::Claim::Kind::pending_call, "call1"});
  EXPECT_EQ(commit_now(thief), Outcome::conflict);
  EXPECT_TRUE(store_->first().calls().find("call1")->has_value());
}

TEST_F(CommitterTest, KeyedEventHasItsEffectsOnce) {
  auto first = turn(key_of("ann"), 0, 1);
  first.claims.push_back({model::Claim::Kind::keyed_event, "event1"});
  EXPECT_EQ(commit_now(first), Outcome::committed);
  auto again = turn(key_of("ann"), 1, 2);
  again.claims = first.claims;
  EXPECT_EQ(commit_now(again), Outcome::conflict);

  auto twice_in_one = turn(key_of("bob"), 0, 3);
  twice_in_one.claims = {{model::Claim::Kind::keyed_event, "event2"},
                         {model::Claim::Kind::keyed_event, "event2"}};
  EXPECT_EQ(commit_now(twice_in_one), Outcome::conflict);
}

TEST_F(CommitterTest, DeadLetterIsReplayedOnce) {
  auto failing = turn(key_of("ann"), 0, 1);
  failing.dead_letters.push_back({.id = "letter1",
                                  .event = {"event1", "inject", "trace", "{}"},
                                  .reason = "the Flow is broken"});
  ASSERT_EQ(commit_now(failing), Outcome::committed);
  ASSERT_EQ(store_->first().dead_letters().get("project", "letter1")->state,
            DeadLetterState::fresh);
  EXPECT_FALSE(store_->first().dead_letters().get("other", "letter1").has_value());

  auto replay = turn(key_of("ann"), 1, 2);
  replay.claims.push_back({model::Claim::Kind::dead_letter, "letter1"});
  EXPECT_EQ(commit_now(replay), Outcome::committed);
  replay.expected_version = 2;
  EXPECT_EQ(commit_now(replay), Outcome::conflict);
  EXPECT_EQ(store_->first().dead_letters().get("project", "letter1")->state,
            DeadLetterState::replayed);
  EXPECT_EQ(store_->first().dead_letters().discard("project", "letter1").error().code,
            model::Errc::conflict);
}

TEST_F(CommitterTest, InboxKeepsOrderAndCountsItself) {
  auto commit = turn(key_of("ann"), 0, 1);
  for (const char* id : {"a", "b", "c"}) {
    commit.inbox.added.push_back({id, "inject", "trace", "{}"});
  }
  ASSERT_EQ(commit_now(commit), Outcome::committed);
  auto next = turn(key_of("ann"), 1, 2);
  next.inbox.removed = 2;
  next.inbox.added.push_back({"d", "inject", "trace", "{}"});
  ASSERT_EQ(commit_now(next), Outcome::committed);
  const auto inbox = store_->first().sessions().inbox(key_of("ann"), 10);
  ASSERT_EQ(inbox->size(), 2U);
  EXPECT_EQ(inbox->at(0).event_id, "c");
  EXPECT_EQ(inbox->at(1).event_id, "d");
  EXPECT_EQ(load(key_of("ann")).inbox_size, 2);
  EXPECT_EQ(store_->first().sessions().inboxes(Sessions::Which::to_drain, 0, 10)->size(), 1U);

  auto too_many = turn(key_of("ann"), 2, 3);
  too_many.inbox.removed = 3;
  EXPECT_EQ(commit_now(too_many), Outcome::conflict);
}

TEST_F(CommitterTest, HighestPositionNeverFalls) {
  ASSERT_EQ(commit_now(turn(key_of("ann"), 0, 9)), Outcome::committed);
  auto elsewhere = turn(key_of("cat"), 0, 4);
  elsewhere.after.position.partition = 5;
  ASSERT_EQ(commit_now(elsewhere), Outcome::committed);
  ASSERT_EQ(commit_now(turn(key_of("bob"), 0, 8)), Outcome::committed);
  const std::vector<model::Position> expected{{.epoch = 1, .partition = 3, .offset = 9},
                                              {.epoch = 1, .partition = 5, .offset = 4}};
  EXPECT_EQ(*store_->first().sessions().highest_positions(), expected);
}

TEST_F(CommitterTest, QuotaAndAnswersAreCountedWithTheCommitOnly) {
  auto commit = turn(key_of("ann"), 0, 1);
  commit.quota.push_back({"org", "injects", 2});
  commit.answers.kept.push_back({"input1", "body", clock_.now() + std::chrono::hours(1)});
  ASSERT_EQ(commit_now(commit), Outcome::committed);
  EXPECT_EQ(commit_now(commit), Outcome::conflict);
  EXPECT_EQ(*store_->usage().used("org", "injects", month_of(clock_.now())), 2);
  const auto kept = [&] {
    return store_->first().answers().look({key_of("ann"), "input1"}, clock_.now())->kept;
  };
  EXPECT_EQ(kept(), "body");
  clock_.advance(std::chrono::hours(2));
  EXPECT_FALSE(kept());
}

TEST_F(CommitterTest, WriteThatFailsUndoesItselfAlone) {
  auto& committer = store_->committer();
  const auto failed = committer.write_and_wait([](Writer& writer) -> model::Result<void> {
    Usage::add(writer, {"org", "jobs", 5});
    return model::fail(model::Errc::too_many, "no");
  });
  EXPECT_EQ(failed.error().code, model::Errc::too_many);
  const auto thrown = committer.write_and_wait(
      [](Writer&) -> model::Result<void> { throw std::runtime_error("defect"); });
  EXPECT_EQ(thrown.error().code, model::Errc::internal);
  EXPECT_EQ(*store_->usage().used("org", "jobs", month_of(clock_.now())), 0);
  EXPECT_EQ(commit_now(turn(key_of("ann"), 0, 1)), Outcome::committed);
}

TEST_F(CommitterTest, OnCommitRunsOnceAndBeforeTheCallerGoesOn) {
  auto& committer = store_->committer();
  std::atomic<int> told{0};
  ASSERT_TRUE(committer.write_and_wait([&](Writer& writer) -> model::Result<void> {
    writer.on_commit([&] { ++told; });
    return {};
  }));
  EXPECT_EQ(told, 1);
  EXPECT_FALSE(committer.write_and_wait([&](Writer& writer) -> model::Result<void> {
    writer.on_commit([&] { ++told; });
    return model::fail(model::Errc::too_many, "no");
  }));
  EXPECT_FALSE(committer.write_and_wait([&](Writer& writer) -> model::Result<void> {
    writer.on_commit([&] { ++told; });
    throw std::runtime_error("defect");
  }));
  EXPECT_EQ(told, 1);
}

TEST_F(CommitterTest, ManySubmittersCommitEverythingInFewTransactions) {
  constexpr int threads = 8;
  constexpr int each = 100;
  std::latch all(threads * each);
  std::atomic<int> committed{0};
  {
    std::vector<std::jthread> submitters;
    for (int t = 0; t < threads; ++t) {
      submitters.emplace_back([&, t] {
        for (int i = 0; i < each; ++i) {
          store_->committer().submit(turn(key_of("user" + std::to_string(t)), i, i),
                                     [&](Outcome outcome, const auto&) {
                                       committed += outcome == Outcome::committed ? 1 : 0;
                                       all.count_down();
                                     });
        }
      });
    }
    all.wait();
  }
  EXPECT_EQ(committed, threads * each);
  EXPECT_EQ(load(key_of("user3")).version, each);
  EXPECT_LT(store_->committer().transactions(), static_cast<std::uint64_t>(threads * each));
}

TEST_F(CommitterTest, StopCommitsWaitingWritesAndToleratesASecondStop) {
  std::atomic<int> committed{0};
  for (int i = 0; i < 50; ++i) {
    store_->committer().submit(turn(key_of("ann"), i, i),
                               [&](Outcome, const auto&) { ++committed; });
  }
  store_->committer().stop();
  store_->committer().stop();
  EXPECT_EQ(committed, 50);
  const auto refused =
      store_->committer().write_and_wait([](Writer&) -> model::Result<void> { return {}; });
  EXPECT_EQ(refused.error().code, model::Errc::unavailable);
}

}  // namespace
}  // namespace conversed::store
