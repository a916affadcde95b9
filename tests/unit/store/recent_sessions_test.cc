#include "store/conversation/recent_sessions.h"

#include <nlohmann/json.hpp>

#include "store/commit/session_commit_writes.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using nlohmann::json;

class RecentSessionsTest : public StoreTest {
 protected:
  // Keeps a session with a context of so many bytes.
  void keep(const std::string& user, std::size_t bytes) {
    auto commit = turn(key_of(user), 0, 1);
    commit.after.context = {{"text", std::string(bytes, 'x')}};
    recent_.keep(encode(std::move(commit)), {}, false);
  }

  RecentSessions recent_{std::size_t{64} << 10};
};

// Compares a session from memory with the same session from the store.
void expect_same(const Sessions::Loaded& kept, const Sessions::Loaded& stored) {
  ASSERT_EQ(kept.session.has_value(), stored.session.has_value());
  EXPECT_EQ(kept.session->key, stored.session->key);
  EXPECT_EQ(kept.session->version, stored.session->version);
  EXPECT_EQ(kept.session->position, stored.session->position);
  EXPECT_EQ(kept.session->started_at, stored.session->started_at);
  EXPECT_EQ(kept.session->last_activity_at, stored.session->last_activity_at);
  EXPECT_EQ(kept.session->context, stored.session->context);
  EXPECT_EQ(kept.session->flow_state, stored.session->flow_state);
  EXPECT_EQ(kept.session->execution, stored.session->execution);
  EXPECT_EQ(kept.session->last_output_seq, stored.session->last_output_seq);
  EXPECT_EQ(kept.session->inbox_size, stored.session->inbox_size);
  EXPECT_EQ(kept.session->last_receipt, stored.session->last_receipt);
  EXPECT_EQ(kept.profile.project_id, stored.profile.project_id);
  EXPECT_EQ(kept.profile.user_id, stored.profile.user_id);
  EXPECT_EQ(kept.profile.version, stored.profile.version);
  EXPECT_EQ(kept.profile.data, stored.profile.data);
  EXPECT_EQ(kept.damage, stored.damage);
  EXPECT_EQ(kept.execution_lost, stored.execution_lost);
}

TEST_F(RecentSessionsTest, HasWhatTheStoreHasAfterTheCommit) {
  model::Profile profile;
  for (int n = 0; n < 4; ++n) {
    auto commit = turn(key_of("ann"), n, n + 1);
    // JSON has no such numbers and bytes. The commit writes others.
    commit.after.context = {{"none", std::numeric_limits<double>::quiet_NaN()}, {"bytes", "\xff"}};
    commit.after.flow_state = {{"executions", n}};
    commit.after.last_receipt = model::new_id();
    commit.after.inbox_size = 1;
    if (n == 0) commit.inbox.added.push_back({model::new_id(), "inject", "", "{}"});
    if (n % 2 == 1) {
      commit.after.execution = model::Execution{
          .input_id = model::new_id(), .pending_call_id = "call", .state = {{"at", n}}};
    }
    commit.profile.read_version = profile.version;
    if (n == 1 || n == 2) commit.profile.data = json{{"visits", n}};
    recent_.keep(encode(commit), profile, n % 2 == 0);
    ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
    const auto kept = recent_.take(key_of("ann"));
    const auto stored = store_->first().sessions().load_with_profile(key_of("ann"));
    ASSERT_TRUE(kept && stored);
    EXPECT_EQ(kept->outputs_are_known, n % 2 == 0);
    EXPECT_FALSE(stored->outputs_are_known) << "another daemon may have written them";
    expect_same(*kept, *stored);
    profile = stored->profile;
  }
  EXPECT_EQ(profile.version, 2);
}

TEST_F(RecentSessionsTest, HandsASessionOutOnce) {
  keep("ann", 10);
  keep("bob", 10);
  EXPECT_TRUE(recent_.has(key_of("ann")));
  EXPECT_TRUE(recent_.take(key_of("ann")));
  EXPECT_FALSE(recent_.take(key_of("ann")));
  recent_.forget(key_of("bob"));
  EXPECT_FALSE(recent_.has(key_of("bob")));
}

TEST_F(RecentSessionsTest, AWriteOfTheProfileDropsTheUsersOtherSessions) {
  const auto keep_of = [&](const std::string& session, bool writes) {
    auto commit = turn({"project", "endpoint", "ann", session}, 0, 1);
    if (writes) commit.profile.data = json{{"visits", 1}};
    recent_.keep(encode(std::move(commit)), {}, false);
  };
  const auto has = [&](const std::string& session) {
    return recent_.has({"project", "endpoint", "ann", session});
  };
  keep("bob", 10);
  keep_of("one", false);
  keep_of("two", true);
  EXPECT_FALSE(has("one"));
  EXPECT_TRUE(has("two"));
  EXPECT_TRUE(recent_.has(key_of("bob")));
  for (int n = 0; n < 20; ++n) keep_of(std::to_string(n), false);
  EXPECT_TRUE(has("19"));
  EXPECT_TRUE(has("4"));
  EXPECT_FALSE(has("3")) << "one user has a bounded share";
  EXPECT_TRUE(recent_.has(key_of("bob")));
  recent_.clear();
  EXPECT_FALSE(has("19"));
}

TEST_F(RecentSessionsTest, DropsTheOldestBeyondItsBytes) {
  constexpr int many = 100;
  for (int n = 0; n < many; ++n) {
    keep("user " + std::to_string(n), 2'000);
    EXPECT_TRUE(recent_.has(key_of("user " + std::to_string(n))));
    if (n == 10) keep("user 0", 2'000);
  }
  int left = 0;
  for (int n = 0; n < many; ++n) left += recent_.has(key_of("user " + std::to_string(n))) ? 1 : 0;
  EXPECT_GT(left, 20);
  EXPECT_LT(left, 32);
  EXPECT_FALSE(recent_.has(key_of("user 0")));
  EXPECT_TRUE(recent_.has(key_of("user 99")));
  keep("user 99", 5'000);
  EXPECT_FALSE(recent_.has(key_of("user 99"))) << "a large session would drop many others";
}

}  // namespace
}  // namespace conversed::store
