// Contact-center tokens, from requests to answers.
#include <gtest/gtest.h>

#include "tests/unit/api/api_world.h"
#include "tests/unit/api/hmac_token.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::World;

TEST(ContactCenter, TokenActsAsTheUserOfItsSubject) {
  test::WorldSettings settings;
  settings.contact_center.secret = config::Secret("01234567890123456789012345678901");
  settings.contact_center.organisation = "Acme";
  World world(settings);
  // {"alg":"HS256"}.{"sub":"ANN@acme.example","exp":4102444800}, signed by another implementation.
  const std::string token =
      "eyJhbGciOiJIUzI1NiJ9.eyJzdWIiOiJBTk5AYWNtZS5leGFtcGxlIiwiZXhwIjo0MTAyNDQ0ODAwfQ."
      "q0CWV45A0cSjuVaWIi5sYgZMUDEuEzOA9AGcOOOKT-8";
  const auto ask = [&](const std::string& value) {
    return world
        .call({Method::post,
               "/v2.0/endpoint/inject",
               {{"x-contactcenter-authorization", value}},
               test::message().dump(),
               {}})
        .status;
  };
  EXPECT_EQ(ask("Bearer " + token), 200);
  EXPECT_EQ(ask(token), 401) << "the scheme Bearer is required";
  EXPECT_EQ(ask("Bearer " + token + "A"), 401);
}

// A token is bound to an organisation: systems that share a secret can't act for each other's
// users.
class BoundTokens : public testing::Test {
 protected:
  static constexpr const char* secret = "01234567890123456789012345678901";

  static int ask(World& world, json claims) {
    claims["exp"] = 4102444800;
    const HeaderList headers{
        {"x-contactcenter-authorization", "Bearer " + test::hs256(claims, secret)}};
    const auto path = "/v2.0/endpoint/inject";
    return world.call({Method::post, path, headers, test::message().dump(), {}}).status;
  }
  static World world_with(const std::string& organisation, const std::string& claim) {
    test::WorldSettings settings;
    settings.contact_center.secret = config::Secret(secret);
    settings.contact_center.organisation = organisation;
    settings.contact_center.organisation_claim = claim;
    return World(settings);
  }
};

TEST_F(BoundTokens, ActOnUsersOfTheirOrganisationAlone) {
  auto world = world_with("Other", "");
  EXPECT_EQ(ask(world, {{"sub", "ann@acme.example"}}), 401);
  EXPECT_EQ(ask(world, {{"sub", "ann@acme.example"}, {"organisation", "Acme"}}), 401);
  // A user's address does not make the user a member of the token's organisation.
  const auto acme = world.store->assets().endpoint_by_token(test::token('a')).value();
  ASSERT_TRUE(
      world.store->accounts().create_user(acme->organisation_id, {.email = "new@other.example"}));
  EXPECT_EQ(ask(world, {{"sub", "new@other.example"}}), 401);
}

TEST_F(BoundTokens, NameTheirOrganisationByAClaimWhereAPlatformServesSeveral) {
  auto world = world_with("", "org");
  EXPECT_EQ(ask(world, {{"sub", "ann@acme.example"}, {"org", "Acme"}}), 200);
  EXPECT_EQ(ask(world, {{"sub", "ann@acme.example"}, {"org", "Other"}}), 401);
  EXPECT_EQ(ask(world, {{"sub", "ann@acme.example"}, {"org", ""}}), 401);
  EXPECT_EQ(ask(world, {{"sub", "ann@acme.example"}, {"org", 1}}), 401);
  EXPECT_EQ(ask(world, {{"sub", "ann@acme.example"}}), 401);
}

TEST_F(BoundTokens, AreRefusedWhereSeveralOrganisationsCouldBeMeant) {
  auto world = world_with("", "");
  EXPECT_EQ(ask(world, {{"sub", "ann@acme.example"}}), 401);
}

}  // namespace
}  // namespace conversed::api
