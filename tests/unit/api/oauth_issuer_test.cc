// The issuer that the authorization server names in its metadata (RFC 8414) and in the `iss` of its
// answers (RFC 9207).
#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <string>

#include "store/accounts/oauth.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::header;
using test::World;

class OauthIssuer : public testing::Test {
 protected:
  json metadata(const std::string& path, HeaderList headers = {{"host", "c.example"}}) {
    const auto answer = world_.call({Method::get, path, std::move(headers), "", {}});
    EXPECT_EQ(answer.status, 200) << path << ": " << answer.body;
    EXPECT_EQ(header(answer, "Cache-Control"), "no-store");
    return json::parse(answer.body, nullptr, false);
  }
  std::string issuer(const std::string& path, HeaderList headers = {{"host", "c.example"}}) {
    return metadata(path, std::move(headers)).value("issuer", "");
  }
  // The redirect of a refused request.
  std::string refusal(const std::string& base) {
    const auto acme = world_.store->assets().endpoint_by_token(test::token('a')).value();
    const auto client =
        world_.store->oauth().create_client({.id = "",
                                             .organisation_id = acme->organisation_id,
                                             .name = "Shop",
                                             .redirect_uris = {"https://shop.example/cb"}});
    const auto answer = world_.call({Method::get,
                                     base + "/auth/oauth2/authorize",
                                     {{"host", "c.example"}},
                                     "",
                                     {{"client_id", client->client.id}, {"state", "s"}}});
    EXPECT_EQ(answer.status, 303) << answer.body;
    return header(answer, "Location");
  }

  World world_;
};

TEST_F(OauthIssuer, IsTheAddressThatTheClientHasUsed) {
  const std::string path = "/.well-known/oauth-authorization-server";
  EXPECT_EQ(issuer(path), "http://c.example");
  EXPECT_EQ(issuer(path, {{"host", "c.example:8080"}, {"x-forwarded-proto", "https"}}),
            "https://c.example:8080");
  EXPECT_EQ(issuer("/new" + path), "http://c.example/new");
  EXPECT_EQ(issuer(path + "/new"), "http://c.example/new") << "RFC 8414, section 3.1";
  EXPECT_EQ(world_.call({Method::get, path + "/old", {}, "", {}}).status, 404);
  EXPECT_EQ(world_.call({Method::post, path, {}, "", {}}).status, 405);
}

TEST_F(OauthIssuer, IsTheSettingWhereThereIsOne) {
  world_.options.oauth.issuer = "https://talk.example";
  const auto found = metadata("/.well-known/oauth-authorization-server");
  EXPECT_EQ(found.at("issuer"), "https://talk.example");
  EXPECT_EQ(found.at("token_endpoint"), "https://talk.example/auth/oauth2/token");
  EXPECT_NE(refusal("").find("&iss=https%3A%2F%2Ftalk.example"), std::string::npos);
}

TEST_F(OauthIssuer, NamesRoutesThatAreThere) {
  for (const std::string& base : {std::string(), std::string("/new")}) {
    const auto found = metadata(base + "/.well-known/oauth-authorization-server");
    for (const char* name : {"authorization_endpoint", "token_endpoint", "revocation_endpoint"}) {
      const auto path = found.value(name, "").substr(std::string("http://c.example").size());
      EXPECT_TRUE(path.starts_with(base)) << path;
      EXPECT_EQ(world_.call({Method::put, path, {}, "", {}}).status, 405) << path;
    }
    EXPECT_EQ(found.at("code_challenge_methods_supported"), json{"S256"});
    EXPECT_EQ(found.at("authorization_response_iss_parameter_supported"), true);
  }
}

TEST_F(OauthIssuer, StandsInRefusals) {
  EXPECT_TRUE(refusal("").ends_with("&state=s&iss=http%3A%2F%2Fc.example")) << refusal("");
  EXPECT_TRUE(refusal("/new").ends_with("&state=s&iss=http%3A%2F%2Fc.example%2Fnew"));
}

}  // namespace
}  // namespace conversed::api
