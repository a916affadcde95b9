// Operators' routes for data and secrets: users' data, backups, the master key.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>

#include "store/model/ids.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api::test {
namespace {

using nlohmann::json;

class DataOperations : public testing::Test {
 protected:
  Response exported(const HeaderList& query, std::string_view email = "ann@acme.example") {
    return world.manage(Method::get, "/management/usersdata", nullptr, query, email);
  }
  Response erase(const json& body, const HeaderList& query = {},
                 std::string_view email = "ann@acme.example") {
    return world.manage(Method::post, "/management/usersdata/erase", body, query, email);
  }

  World world;
};

TEST_F(DataOperations, UserIsExportedAndErased) {
  store::SessionCommit commit;
  commit.key = commit.after.key = world.session_key();
  world.commit_now(std::move(commit));
  const auto before = exported({{"userId", "u"}});
  ASSERT_EQ(before.status, 200) << before.body;
  const auto page = json::parse(before.body);
  ASSERT_EQ(page.at("items").size(), 1U);
  EXPECT_EQ(page.at("items")[0].at("kind"), "session");
  EXPECT_TRUE(page.at("next").is_null());
  const auto erased = erase({{"userId", "u"}});
  ASSERT_EQ(erased.status, 200) << erased.body;
  EXPECT_EQ(json::parse(erased.body).at("sessions"), 1);
  EXPECT_EQ(json::parse(erased.body).at("queue"), "cleared");
  EXPECT_TRUE(json::parse(exported({{"userId", "u"}}).body).at("items").empty());
  EXPECT_EQ(world.delivered.size(), 1U) << "the outputs in memory are removed, too";
}

TEST_F(DataOperations, ErasureCancelsJobsThatNameTheUser) {
  const auto begin = [&](std::string_view type, const char* user) {
    const model::Job job{.id = model::new_id(),
                         .project_id = world.session_key().project_id,
                         .type = std::string(type),
                         .name = "work",
                         .data = {{"filter", {{"userId", user}}}},
                         .created_at = world.clock.now()};
    EXPECT_TRUE(world.store->jobs().create(job));
    return job.id;
  };
  const auto of_user = begin(model::replay_dead_letters, "u");
  const auto of_other = begin(model::discard_dead_letters, "other");
  ASSERT_EQ(erase({{"userId", "u"}}).status, 200);
  EXPECT_EQ(world.store->jobs().get(of_user)->state, model::JobState::cancelled);
  EXPECT_FALSE(world.store->jobs().get(of_user)->data.contains("filter"));
  EXPECT_EQ(world.store->jobs().get(of_other)->state, model::JobState::queued);
}

TEST_F(DataOperations, UserWithAnEventInTheLogIsLeftAlone) {
  ASSERT_EQ(world.inject(message()).status, 200);
  const auto refused = erase({{"userId", "u"}});
  EXPECT_EQ(refused.status, 409) << refused.body;
  EXPECT_EQ(erase({{"userId", "somebody else"}}).status, 200);
}

TEST_F(DataOperations, UserWhoseEventTheLogHasNotFinishedIsLeftAlone) {
  world.put_session();  // at a position above the log's committed one
  EXPECT_EQ(erase({{"userId", "u"}}).status, 409);
  EXPECT_EQ(json::parse(exported({{"userId", "u"}}).body).at("items").size(), 1U);
}

TEST_F(DataOperations, BadParametersAndMissingRolesAreRefused) {
  EXPECT_EQ(exported({}).status, 400);
  EXPECT_EQ(exported({{"userId", "a\nb"}}).status, 400);
  EXPECT_EQ(exported({{"userId", "u"}, {"after", "x"}}).status, 400);
  EXPECT_EQ(exported({{"userId", "u"}, {"limit", "0"}}).status, 400);
  EXPECT_EQ(erase(json::object()).status, 400);
  EXPECT_EQ(erase({{"userId", 7}}).status, 400);
  const auto project = world.session_key().project_id;
  EXPECT_EQ(exported({{"userId", "u"}, {"projectId", project}}, "tom@acme.example").status, 403);
}

TEST_F(DataOperations, BackupsAreMadeUnderTheirNames) {
  const auto back_up = [&](const json& body) {
    return world.manage(Method::post, "/management/backups", body);
  };
  EXPECT_EQ(back_up({{"name", "mine"}}).status, 201);
  EXPECT_EQ(back_up(json::object()).status, 201);
  EXPECT_EQ(world.backups, (std::vector<std::string>{"mine", ""}));
  EXPECT_EQ(back_up({{"name", "taken"}}).status, 409);
  EXPECT_EQ(back_up({{"name", 7}}).status, 400);
}

TEST_F(DataOperations, KeyIsRotated) {
  const auto rotated = world.manage(Method::post, "/management/key/rotate", json::object());
  ASSERT_EQ(rotated.status, 200) << rotated.body;
  EXPECT_EQ(json::parse(rotated.body).at("key"), 2);
}

}  // namespace
}  // namespace conversed::api::test
