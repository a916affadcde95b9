#include "store/conversation/sessions.h"

#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using SessionsTest = StoreTest;

SessionCommit busy_turn(const model::SessionKey& key, model::Timestamp due_at) {
  auto commit = turn(key, 0, 1);
  commit.after.started_at = due_at;
  commit.after.flow_state = {{"node", "ask"}};
  model::Execution execution;
  execution.input_id = "input1";
  execution.trace_id = "trace";
  execution.pending_call_id = "timer1";
  execution.state = {1, 2};
  commit.after.execution = execution;
  model::PendingCall timer;
  timer.id = "timer1";
  timer.session = key;
  timer.due_at = due_at;
  commit.calls.started.push_back(timer);
  return commit;
}

TEST_F(SessionsTest, SessionIsLoadedAsItWasCommitted) {
  auto commit = busy_turn(key_of("ann"), clock_.now());
  const auto expected = commit.after;
  ASSERT_EQ(commit_now(commit), Outcome::committed);
  const auto loaded = load(key_of("ann"));
  EXPECT_EQ(loaded.key, expected.key);
  EXPECT_EQ(loaded.context, expected.context);
  EXPECT_EQ(loaded.flow_state, expected.flow_state);
  EXPECT_EQ(loaded.execution, expected.execution);
  EXPECT_EQ(loaded.started_at, expected.started_at);
  EXPECT_TRUE(loaded.busy());
  EXPECT_EQ(store_->first().sessions().load_with_profile(key_of("ann"))->profile.version, 0);
}

TEST_F(SessionsTest, SeveralSessionsAreLoadedAtOnceAsEachAlone) {
  ASSERT_EQ(commit_now(busy_turn(key_of("ann"), clock_.now())), Outcome::committed);
  auto with_profile = turn(key_of("bob"), 0, 1);
  with_profile.profile.read_version = 0;
  with_profile.profile.data = nlohmann::json{{"name", "Bob"}};
  ASSERT_EQ(commit_now(std::move(with_profile)), Outcome::committed);
  const std::vector<model::SessionKey> keys{key_of("bob"), key_of("nobody"), key_of("ann")};
  const auto all = store_->first().sessions().load_with_profiles(keys);
  ASSERT_TRUE(all) << all.error().message;
  ASSERT_EQ(all->size(), keys.size());
  for (std::size_t i = 0; i < keys.size(); ++i) {
    const auto alone = store_->first().sessions().load_with_profile(keys[i]);
    ASSERT_TRUE(alone);
    const auto& loaded = (*all)[i];
    ASSERT_EQ(loaded.session.has_value(), alone->session.has_value());
    EXPECT_EQ(loaded.profile.user_id, keys[i].user_id);
    EXPECT_EQ(loaded.profile.version, alone->profile.version);
    EXPECT_EQ(loaded.profile.data, alone->profile.data);
    if (!loaded.session) continue;
    EXPECT_EQ(loaded.session->key, keys[i]);
    EXPECT_EQ(loaded.session->context, alone->session->context);
    EXPECT_EQ(loaded.session->execution, alone->session->execution);
  }
  EXPECT_EQ(all->front().profile.data["name"], "Bob");
  EXPECT_FALSE((*all)[1].session);
  EXPECT_TRUE(all->back().session->busy());
}

TEST_F(SessionsTest, ResetTakesTheClaimsAwayAndKeepsTheNumbers) {
  ASSERT_EQ(commit_now(busy_turn(key_of("ann"), clock_.now())), Outcome::committed);
  ASSERT_TRUE(store_->first().sessions().reset(key_of("ann")));
  const auto session = load(key_of("ann"));
  EXPECT_EQ(session.version, 2);
  EXPECT_FALSE(session.busy());
  EXPECT_TRUE(session.context.empty());
  EXPECT_EQ(session.last_output_seq, 1);
  EXPECT_FALSE(store_->first().calls().find("timer1")->has_value());
  EXPECT_EQ(store_->first().sessions().reset(key_of("bob")).error().code, model::Errc::not_found);
}

TEST_F(SessionsTest, ResetEndsTheExecutionsInputAsFailed) {
  auto commit = busy_turn(key_of("ann"), clock_.now());
  commit.after.execution->source = model::EventType::user_message;
  commit.after.execution->answer_until = clock_.now() + std::chrono::seconds(9);
  ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  std::string ended;
  const auto note = [&](const std::string& input) { ended = input; };
  ASSERT_TRUE(store_->first().sessions().reset(key_of("ann"), note));
  EXPECT_EQ(ended, "input1");
  EXPECT_EQ(store_->first().answers().look({key_of("ann"), "input1"}, clock_.now())->stage,
            InputState::Stage::failed);
  // A second reset has nothing to do.
  ASSERT_TRUE(store_->first().sessions().reset(key_of("ann"), note));
  EXPECT_TRUE(ended.empty());
}

TEST_F(SessionsTest, TimersFallDueInOrder) {
  ASSERT_EQ(commit_now(busy_turn(key_of("ann"), clock_.now() + std::chrono::seconds(5))),
            Outcome::committed);
  EXPECT_TRUE(store_->first().timers().due(clock_.now(), {}, 10)->timers.empty());
  EXPECT_EQ(store_->first().timers().due(clock_.now(), {}, 10)->next,
            clock_.now() + std::chrono::seconds(5));
  clock_.advance(std::chrono::seconds(5));
  const auto page = store_->first().timers().due(clock_.now(), {}, 10);
  const auto* due = &page->timers;
  ASSERT_EQ(due->size(), 1U);
  EXPECT_EQ(due->front().at, clock_.now());
  EXPECT_EQ(due->front().claim.kind, model::Claim::Kind::timer);
  const auto timer = store_->first().calls().find(due->front().claim.id);
  ASSERT_TRUE(timer && *timer);
  EXPECT_EQ((*timer)->call.session, key_of("ann"));
  EXPECT_TRUE(store_->first().timers().due(clock_.now(), {}, 10, &due->front())->timers.empty());
  EXPECT_FALSE(*store_->first().calls().lane_behind("", "")) << "the row is a timer, not a call";
}

TEST_F(SessionsTest, ListShowsOneProjectNewestFirstByPages) {
  for (const char* user : {"a", "b", "c"}) {
    ASSERT_EQ(commit_now(turn(key_of(user), 0, 1)), Outcome::committed);
  }
  ASSERT_EQ(commit_now(turn(key_of("x", "other"), 0, 1)), Outcome::committed);
  const auto first = store_->first().sessions().list("project", {}, 0, 2);
  ASSERT_EQ(first->rows.size(), 2U);
  EXPECT_EQ(first->rows.front().key, key_of("c"));
  const auto rest = store_->first().sessions().list("project", {}, first->next.value(), 2);
  ASSERT_EQ(rest->rows.size(), 1U);
  EXPECT_EQ(rest->rows.front().key, key_of("a"));
  EXPECT_FALSE(rest->next);
}

TEST_F(SessionsTest, ListFindsWordsThatWereSaidWhateverTheirCase) {
  for (const char* user : {"a", "b", "c"}) {
    auto said = turn(key_of(user), 0, 1);
    ASSERT_FALSE(said.outputs.empty());
    said.outputs.front().text = user == std::string_view("b") ? "It is 100% PACKED" : "Hello";
    ASSERT_EQ(commit_now(std::move(said)), Outcome::committed);
  }
  const auto found = [&](const std::string& text) {
    std::vector<std::string> users;
    const auto page = store_->first().sessions().list("project", {.text = text}, 0, 10);
    for (const auto& each : page.value().rows) {
      users.push_back(each.key.user_id);
    }
    return users;
  };
  EXPECT_EQ(found("packed"), (std::vector<std::string>{"b"}));
  EXPECT_EQ(found("hello"), (std::vector<std::string>{"c", "a"}));
  EXPECT_EQ(found("100%"), (std::vector<std::string>{"b"}));
  EXPECT_EQ(found("1_0"), std::vector<std::string>()) << "no character stands for others";
}

TEST_F(SessionsTest, ListOfAUserGoesOnBehindTheSessionsThatAPageExamines) {
  const auto insert = [&](const std::string& name, bool busy) {
    return store_->committer().write_and_wait([&](Writer& writer) {
      const model::SessionKey key{"project", "endpoint", "ann", name};
      writer.connection().run(
          "INSERT INTO sessions (key, project_id, version, position_epoch, position_partition,"
          " position_offset, started_at, last_activity_at, context, flow_state, execution,"
          " last_output_seq, inbox_size) VALUES (:k, 'project', 1, 1, 0, 0, 0, 0, '{}', 'null',"
          " :e, 0, 0)",
          key, busy ? std::optional<std::string>("{}") : std::nullopt);
    });
  };
  ASSERT_TRUE(insert("oldest", true));
  for (std::size_t i = 0; i < Sessions::examined_for_text; ++i) {
    ASSERT_TRUE(insert(std::to_string(i), false));
  }
  const SessionFilter wanted{.user_id = "ann", .busy = true};
  const auto first = store_->first().sessions().list("project", wanted, 0, 10);
  ASSERT_TRUE(first) << first.error().message;
  EXPECT_TRUE(first->rows.empty());
  ASSERT_TRUE(first->next);
  const auto second = store_->first().sessions().list("project", wanted, *first->next, 10);
  ASSERT_EQ(second->rows.size(), 1U);
  EXPECT_EQ(second->rows.front().key.session_id, "oldest");
  EXPECT_FALSE(second->next);
}

TEST_F(SessionsTest, ListHasOnlyBusyOrOnlyIdleSessions) {
  auto busy = turn(key_of("busy"), 0, 1);
  busy.after.execution = model::Execution{};
  busy.after.execution->input_id = "input";
  ASSERT_EQ(commit_now(std::move(busy)), Outcome::committed);
  ASSERT_EQ(commit_now(turn(key_of("idle"), 0, 1)), Outcome::committed);
  const auto of = [&](bool wanted) {
    return store_->first().sessions().list("project", {.busy = wanted}, 0, 10)->rows;
  };
  ASSERT_EQ(of(true).size(), 1U);
  EXPECT_EQ(of(true).front().key, key_of("busy"));
  ASSERT_EQ(of(false).size(), 1U);
  EXPECT_EQ(of(false).front().key, key_of("idle"));
}

}  // namespace
}  // namespace conversed::store
