// Tokens that operators send in place of their passwords.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "store/model/ids.h"
#include "store/text/base64.h"
#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::body_of;
using test::World;

constexpr std::string_view maker = "admin@acme.example";

class ManagementTokens : public testing::Test {
 protected:
  json make(const json& scopes, const std::string& expires = "1h", std::string_view email = maker) {
    const auto made =
        world_.manage(Method::post, "/management/tokens",
                      {{"name", "script"}, {"scopes", scopes}, {"expires", expires}}, {}, email);
    EXPECT_EQ(made.status, 201) << made.body;
    return body_of(made);
  }
  Response send(Method method, const std::string& path, const std::string& token,
                const json& body = nullptr, std::string_view email = maker) {
    const auto text = std::string(email) + ":" + token;
    const auto basic = "Basic " + text::encode_base64(text, text::Base64::standard);
    return world_.call(
        {method, path, {{"authorization", basic}}, body.is_null() ? "" : body.dump(), {}});
  }
  int status(Method method, const std::string& path, const std::string& token,
             const json& body = nullptr, std::string_view email = maker) {
    return send(method, path, token, body, email).status;
  }
  json listed(std::string_view email = maker) {
    return body_of(world_.manage(Method::get, "/management/tokens", nullptr, {}, email))
        .at("items");
  }

  World world_;
};

TEST_F(ManagementTokens, StandForThePasswordOfTheirUserAlone) {
  const std::string token = make({"all"}).at("token");
  EXPECT_EQ(status(Method::get, "/management/projects", token), 200);
  EXPECT_EQ(status(Method::get, "/management/projects", token, nullptr, "ADMIN@acme.example"), 200);
  EXPECT_EQ(status(Method::get, "/management/projects", token, nullptr, "ann@acme.example"), 401);
  std::string wrong = token;
  wrong.back() = wrong.back() == '0' ? '1' : '0';
  EXPECT_EQ(status(Method::get, "/management/projects", wrong), 401);
}

TEST_F(ManagementTokens, AreVerifiedApartFromPasswords) {
  const std::string token = make({"all"}).at("token");
  world_.sign_ins.stop();
  EXPECT_EQ(
      world_.manage(Method::get, "/management/projects", nullptr, {}, "ann@acme.example").status,
      503);
  EXPECT_EQ(status(Method::get, "/management/projects", token), 200);
}

TEST_F(ManagementTokens, ExpiredOnesAreRefusedFromTheSecondOn) {
  const std::string token = make({"all"}, "1h").at("token");
  world_.clock.advance(std::chrono::minutes(59));
  EXPECT_EQ(status(Method::get, "/management/projects", token), 200);
  world_.clock.advance(std::chrono::minutes(1));
  world_.steady += std::chrono::minutes(1);
  EXPECT_EQ(status(Method::get, "/management/projects", token), 401);
}

TEST_F(ManagementTokens, RevokedOnesAreRefusedAtOnce) {
  const auto made = make({"all"});
  const std::string token = made.at("token");
  EXPECT_EQ(status(Method::get, "/management/projects", token), 200);
  const auto path = "/management/tokens/" + made.at("_id").get<std::string>();
  EXPECT_EQ(world_.manage(Method::delete_, path).status, 204);
  EXPECT_EQ(status(Method::get, "/management/projects", token), 401);
  EXPECT_EQ(world_.manage(Method::delete_, path).status, 404);
}

TEST_F(ManagementTokens, ANewPasswordEndsThem) {
  const std::string token = make({"all"}).at("token");
  world_.set_password(maker, "another secret secret");
  EXPECT_EQ(status(Method::get, "/management/projects", token), 401);
}

TEST_F(ManagementTokens, OpenOnlyWhatTheirScopesName) {
  const std::string token = make({"userAdmin"}).at("token");
  EXPECT_EQ(status(Method::get, "/management/users", token), 200);
  EXPECT_EQ(status(Method::get, "/management/projects", token), 200) << "names are for all";
  const auto refused = send(Method::get, "/management/status", token);
  EXPECT_EQ(refused.status, 403);
  EXPECT_NE(refused.body.find("lacks the scope platformAdmin"), std::string::npos) << refused.body;
  EXPECT_EQ(status(Method::get, "/management/sessions", token), 403);
  EXPECT_EQ(status(Method::post, "/management/import", token, {{"file", "x"}, {"text", "x"}}), 403);
}

TEST_F(ManagementTokens, ScopesGiveNoRoleThatTheUserLacks) {
  const std::string token =
      make({"conversationAdmin", "userAdmin"}, "1h", "ann@acme.example").at("token");
  EXPECT_EQ(status(Method::get, "/management/users", token, nullptr, "ann@acme.example"), 403);
  EXPECT_EQ(status(Method::get, "/management/sessions", token, nullptr, "ann@acme.example"), 200);
}

TEST_F(ManagementTokens, TheScopeOfProjectAdminsCoversEachRoleOfTheirProjects) {
  const std::string token = make({"projectAdmin"}).at("token");
  const auto listed = send(Method::get, "/management/projects", token);
  const std::string project = body_of(listed).at("items")[0].at("_id");
  const auto sessions = world_.call(
      {Method::get,
       "/management/sessions",
       {{"authorization",
         "Basic " + text::encode_base64(std::string(maker) + ":" + token, text::Base64::standard)}},
       "",
       {{"projectId", project}}});
  EXPECT_EQ(sessions.status, 200) << sessions.body;
  EXPECT_EQ(status(Method::get, "/management/users", token), 403);
}

TEST_F(ManagementTokens, CancelTheJobsThatTheyMayBegin) {
  const auto begin = [&](std::string_view type) {
    const model::Job job{.id = model::new_id(),
                         .project_id = world_.session_key().project_id,
                         .type = std::string(type),
                         .name = "work",
                         .data = {{"filter", {{"userId", "u"}}}},
                         .created_at = world_.clock.now()};
    EXPECT_TRUE(world_.store->jobs().create(job));
    return "/management/tasks/" + job.id + "/cancel";
  };
  const auto set_up = begin(model::proactive_setup);
  const auto replay = begin(model::replay_dead_letters);
  const std::string token = make({"conversationAdmin"}).at("token");
  EXPECT_EQ(status(Method::post, set_up, token), 403);
  EXPECT_EQ(status(Method::post, replay, make({"proactiveAdmin"}).at("token")), 403);
  const auto cancelled = send(Method::post, replay, token);
  EXPECT_EQ(cancelled.status, 200) << cancelled.body;
  EXPECT_EQ(body_of(cancelled).at("data"),
            (json{{"changed", 0}, {"skipped", 0}, {"reasons", json::object()}}))
      << "the filter names a user";
}

TEST_F(ManagementTokens, OfReadingChangeNothing) {
  const std::string token = make({"read"}).at("token");
  EXPECT_EQ(status(Method::get, "/management/status", token), 200);
  EXPECT_EQ(status(Method::post, "/management/key/rotate", token, json::object()), 403);
  EXPECT_EQ(status(Method::delete_, "/management/users/" + world_.id_of("ann@acme.example"), token),
            403);
}

TEST_F(ManagementTokens, MakeNoCredentials) {
  const std::string token = make({"all"}).at("token");
  const json other{{"name", "n"}, {"scopes", {"all"}}};
  EXPECT_EQ(status(Method::post, "/management/tokens", token, other), 403);
  EXPECT_EQ(status(Method::post, "/management/apikeys", token, {{"name", "n"}}), 403);
  EXPECT_EQ(status(Method::post, "/management/users", token, {{"email", "x@acme.example"}}), 403);
  EXPECT_EQ(
      status(Method::post, "/management/users/password", token, {{"password", "a new password"}}),
      403);
  EXPECT_EQ(status(Method::post, "/management/oauth/clients", token,
                   {{"name", "App"}, {"passwordGrant", true}}),
            403);
  EXPECT_EQ(status(Method::post, "/management/organisations", token,
                   {{"name", "O"}, {"admin", "x@x.example"}, {"password", "secret secret"}}),
            403);
}

TEST_F(ManagementTokens, EachRevokesItselfWhateverItsScopes) {
  const auto first = make({"read"});
  const auto second = make({"all"});
  const auto path = [](const json& made) {
    return "/management/tokens/" + made.at("_id").get<std::string>();
  };
  EXPECT_EQ(status(Method::delete_, path(second), first.at("token")), 403);
  EXPECT_EQ(status(Method::delete_, path(first), first.at("token")), 204);
  EXPECT_EQ(status(Method::get, "/management/projects", first.at("token")), 401);
}

TEST_F(ManagementTokens, AreNamedInTheAuditTrail) {
  const auto made = make({"all"});
  const std::string id = made.at("_id");
  EXPECT_EQ(status(Method::delete_, "/management/tokens/" + id, made.at("token")), 204);
  const auto entries = body_of(world_.manage(Method::get, "/management/audit", nullptr,
                                             {{"operation", "revokeManagementToken"}}))
                           .at("items");
  ASSERT_EQ(entries.size(), 1U);
  EXPECT_EQ(entries[0].at("credential"), "token " + id);
  EXPECT_EQ(entries.dump().find(made.at("token").get<std::string>()), std::string::npos);
}

TEST_F(ManagementTokens, AreListedWithoutSecretsToTheirUserAndUserAdmins) {
  const auto made = make({"conversationAdmin"}, "1h", "ann@acme.example");
  make({"all"});
  ASSERT_EQ(listed().size(), 2U);
  const auto own = listed("ann@acme.example");
  ASSERT_EQ(own.size(), 1U);
  EXPECT_EQ(own[0].at("_id"), made.at("_id"));
  EXPECT_EQ(own[0].at("scopes"), json{"conversationAdmin"});
  EXPECT_EQ(own[0].at("expiresAt").get<std::int64_t>() - own[0].at("createdAt").get<std::int64_t>(),
            3600);
  EXPECT_FALSE(own[0].contains("token"));
  const auto foreign = "/management/tokens/" + made.at("_id").get<std::string>();
  EXPECT_EQ(world_.manage(Method::delete_, foreign, nullptr, {}, "tom@acme.example").status, 404);
  EXPECT_EQ(world_.manage(Method::delete_, foreign).status, 204);
}

TEST_F(ManagementTokens, WrongWishesNameTheField) {
  const auto refused = [&](const json& body, const char* field) {
    const auto answer = world_.manage(Method::post, "/management/tokens", body);
    EXPECT_EQ(answer.status, 400) << body;
    EXPECT_NE(answer.body.find(field), std::string::npos) << answer.body;
  };
  refused({{"name", ""}, {"scopes", {"all"}}}, "name");
  refused({{"name", "n"}, {"scopes", json::array()}}, "scopes");
  refused({{"name", "n"}, {"scopes", {"everything"}}}, "everything");
  for (const char* expires : {"0d", "367d", "x", "-1d"}) {
    refused({{"name", "n"}, {"scopes", {"all"}}, {"expires", expires}}, "expires");
  }
}

}  // namespace
}  // namespace conversed::api
