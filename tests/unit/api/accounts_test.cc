// Rights to create, change and remove accounts.
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "tests/unit/api/api_world.h"
#include "tests/unit/api/expect.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::body_of;
using test::message;
using test::token;
using test::World;

// A userAdmin without the role platformAdmin, in an organisation that has a platformAdmin.
class UserAdminTest : public testing::Test {
 protected:
  static constexpr const char* uma = "uma@acme.example";
  static constexpr const char* admin = "admin@acme.example";  // a platformAdmin

  UserAdminTest() {
    const auto made = world_.manage(Method::post, "/management/users",
                                    {{"email", uma}, {"roles", {"userAdmin"}}});
    EXPECT_EQ(made.status, 201) << made.body;
    admin_id_ = world_.id_of(admin);
  }
  int as_uma(Method method, const std::string& path, const json& body = nullptr) {
    return world_.manage(method, path, body, {}, uma).status;
  }
  std::string add_user(const std::string& email, const json& roles = json::array()) {
    return body_of(world_.manage(Method::post, "/management/users",
                                 {{"email", email}, {"roles", roles}}))
        .value("_id", "");
  }

  World world_;
  std::string admin_id_;
};

TEST_F(UserAdminTest, CanNotBecomeAPlatformAdmin) {
  EXPECT_EQ(as_uma(Method::post, "/management/apikeys", {{"name", "k"}, {"user", admin}}), 403);
  EXPECT_EQ(as_uma(Method::post, "/management/users/password",
                   {{"user", admin}, {"password", "a new password"}}),
            403);
  const json platform{"platformAdmin"};
  EXPECT_EQ(
      as_uma(Method::post, "/management/users", {{"email", "x@acme.example"}, {"roles", platform}}),
      403);
  const auto own = "/management/users/" + world_.id_of(uma) + "/roles";
  EXPECT_EQ(as_uma(Method::put, own, {{"roles", platform}}), 403);
  EXPECT_EQ(as_uma(Method::post, "/management/organisations",
                   {{"name", "Mine"}, {"admin", "x@x.example"}, {"password", "a new password"}}),
            403);
}

TEST_F(UserAdminTest, LeavesPlatformAdminsAsTheyAre) {
  const auto key = body_of(world_.manage(Method::post, "/management/apikeys", {{"name", "a"}}));
  EXPECT_EQ(as_uma(Method::delete_, "/management/apikeys/" + key.value("_id", "")), 403);
  EXPECT_EQ(as_uma(Method::delete_, "/management/users/" + admin_id_), 403);
  EXPECT_EQ(
      as_uma(Method::put, "/management/users/" + admin_id_ + "/roles", {{"roles", json::array()}}),
      403);
  const auto deprecated = world_.call({Method::post,
                                       "/v2.0/users/deprecatepassword",
                                       {{"x-api-key", world_.key_of(uma)}},
                                       json{{"userId", admin_id_}}.dump(),
                                       {}});
  EXPECT_EQ(deprecated.status, 403) << deprecated.body;
  EXPECT_EQ(world_.manage(Method::get, "/management/status").status, 200);
}

TEST_F(UserAdminTest, ManagesEverybodyElseOfTheOrganisation) {
  const auto bob = add_user("bob@acme.example", {"projectAdmin"});
  EXPECT_EQ(
      as_uma(Method::post, "/management/apikeys", {{"name", "k"}, {"user", "bob@acme.example"}}),
      201);
  const auto changed = world_.manage(Method::put, "/management/users/" + bob + "/roles",
                                     {{"roles", {"tokenAdmin", "userAdmin"}}}, {}, uma);
  EXPECT_EQ(changed.status, 200) << changed.body;
  EXPECT_EQ(body_of(changed).at("roles"), (json{"tokenAdmin", "userAdmin"}));
  for (const json& wrong : {json::object(), json{{"roles", {"nothing"}}}, json{{"roles", 1}}}) {
    EXPECT_EQ(as_uma(Method::put, "/management/users/" + bob + "/roles", wrong), 400);
  }
  EXPECT_EQ(as_uma(Method::delete_, "/management/users/" + bob), 204);
  EXPECT_EQ(as_uma(Method::delete_, "/management/users/" + bob), 404);
  const auto stranger = world_.id_of("out@other.example");
  EXPECT_EQ(as_uma(Method::delete_, "/management/users/" + stranger), 404);
  EXPECT_EQ(as_uma(Method::delete_, "/management/users/x"), 400);
}

TEST_F(UserAdminTest, RemovesUsersWithTheirKeysAndRememberedSignIns) {
  const auto key = world_.key_of("ann@acme.example");
  const auto inject = [&] {
    return world_
        .call({Method::post, "/v2.0/endpoint/inject", {{"x-api-key", key}}, message().dump(), {}})
        .status;
  };
  const auto list = [&] {
    return world_.manage(Method::get, "/management/apikeys", nullptr, {}, "ann@acme.example")
        .status;
  };
  EXPECT_EQ(inject(), 200);
  EXPECT_EQ(list(), 200);
  const auto ann = world_.id_of("ann@acme.example");
  EXPECT_EQ(as_uma(Method::delete_, "/management/users/" + ann), 204);
  EXPECT_EQ(inject(), 401) << "the key was in the cache";
  EXPECT_EQ(list(), 401) << "the sign-in was in the cache";
}

TEST_F(UserAdminTest, ChangedRolesHoldForRememberedSignIns) {
  const auto users = [&] { return as_uma(Method::get, "/management/users"); };
  EXPECT_EQ(users(), 200);
  EXPECT_EQ(world_
                .manage(Method::put, "/management/users/" + world_.id_of(uma) + "/roles",
                        {{"roles", json::array()}})
                .status,
            200);
  EXPECT_EQ(users(), 403);
}

TEST_F(UserAdminTest, InstallationKeepsItsLastPlatformAdmin) {
  // The world's other platformAdmin, out@other.example, has no password yet.
  EXPECT_EQ(world_.manage(Method::delete_, "/management/users/" + admin_id_).status, 409);
  EXPECT_EQ(world_
                .manage(Method::put, "/management/users/" + admin_id_ + "/roles",
                        {{"roles", {"userAdmin"}}})
                .status,
            409);
  const auto deprecate = [&] {
    return world_
        .call({Method::post,
               "/v2.0/users/deprecatepassword",
               {{"x-api-key", world_.key_of(admin)}},
               json{{"userId", admin_id_}}.dump(),
               {}})
        .status;
  };
  EXPECT_EQ(deprecate(), 400) << "the API documents only this error here";
  (void)world_.sign_in("out@other.example");
  EXPECT_EQ(deprecate(), 200);
}

TEST(Organisations, DomainsAreSetByPlatformAdminsAndCloseThemToOthers) {
  World world;
  const auto acme = world.store->assets().endpoint_by_token(token('a')).value()->organisation_id;
  const auto path = "/management/organisations/" + acme + "/domains";
  const json domains{{"domains", {"Acme.example"}}};
  const auto set = world.manage(Method::put, path, domains);
  ASSERT_EQ(set.status, 200) << set.body;
  EXPECT_EQ(body_of(set).at("domains"), json{"acme.example"});
  const auto add = [&](const char* as) {
    return world.manage(Method::post, "/management/users", {{"email", "new@acme.example"}}, {}, as)
        .status;
  };
  EXPECT_EQ(add("out@other.example"), 409);
  EXPECT_EQ(add("admin@acme.example"), 201);
  const auto listed = body_of(world.manage(Method::get, "/management/organisations"));
  EXPECT_EQ(listed.at("items").at(0).at("domains"), json{"acme.example"});
  EXPECT_EQ(world.manage(Method::put, path, json::object()).status, 400);
  EXPECT_EQ(world.manage(Method::put, path, domains, {}, "ann@acme.example").status, 403);
}

}  // namespace
}  // namespace conversed::api
