// OAuth 2.0 over a whole api: a confidential client, a public client, and their requests.
#pragma once

#include <gtest/gtest.h>

#include <cstdio>
#include <nlohmann/json.hpp>
#include <string>

#include "api/auth/oauth_parameters.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api::test {

using nlohmann::json;

inline constexpr const char* ann = "ann@acme.example";
inline constexpr const char* redirect_uri = "https://shop.example/cb";
inline const std::string verifier(64, 'v');

inline std::string form(const HeaderList& parameters) {
  std::string text;
  for (const auto& [name, value] : parameters) {
    text += (text.empty() ? "" : "&") + name + "=";
    for (const char c : value) {
      char escaped[4];
      std::snprintf(escaped, sizeof escaped, "%%%02X", static_cast<unsigned char>(c));
      text += escaped;
    }
  }
  return text;
}

class OauthTest : public testing::Test {
 protected:
  OauthTest() {
    // Gives the users passwords.
    (void)world_.sign_in("admin@acme.example");
    (void)world_.sign_in(ann);
    (void)world_.sign_in("out@other.example");
    const auto confidential =
        add_client({{"name", "Shop"}, {"redirectUris", {redirect_uri}}, {"passwordGrant", true}});
    client_ = confidential.at("clientId");
    secret_ = confidential.at("clientSecret");
    const auto open =
        add_client({{"name", "App"}, {"public", true}, {"redirectUris", {redirect_uri}}});
    public_ = open.at("clientId");
    EXPECT_TRUE(open.at("clientSecret").is_null());
  }

  json add_client(const json& body) {
    const auto made = world_.manage(Method::post, "/management/oauth/clients", body);
    EXPECT_EQ(made.status, 201) << made.body;
    return json::parse(made.body);
  }
  Response post(const std::string& route, const std::string& body, HeaderList headers = {}) {
    headers.emplace_back("content-type", "application/x-www-form-urlencoded");
    return world_.call(
        {Method::post, "/auth/oauth2/" + route, std::move(headers), body, {}, address_});
  }
  HeaderList with_client(HeaderList parameters) {
    parameters.emplace_back("client_id", client_);
    parameters.emplace_back("client_secret", secret_);
    return parameters;
  }
  Response sign_in(const std::string& given = "secret secret", const std::string& user = ann) {
    return post(
        "token",
        form(with_client({{"grant_type", "password"}, {"username", user}, {"password", given}})));
  }
  Response refresh(const std::string& token) {
    return post("token",
                form(with_client({{"grant_type", "refresh_token"}, {"refresh_token", token}})));
  }
  // The status of an inject with this access token.
  int inject(const std::string& token) {
    return world_
        .call({Method::post,
               "/v2.0/endpoint/inject",
               {{"authorization", "Bearer " + token}},
               test::message().dump(),
               {}})
        .status;
  }
  static std::string error_of(const Response& response) {
    const auto body = json::parse(response.body);
    for (const char* member : {"error_description", "type", "title", "detail", "traceId", "code"}) {
      EXPECT_TRUE(body.contains(member)) << member;
    }
    EXPECT_EQ(body.value("status", 0), response.status);
    EXPECT_EQ(header(response, "Cache-Control"), "no-store");
    return body.value("error", "");
  }

  HeaderList asked(const std::string& client) {
    return {{"response_type", "code"},
            {"client_id", client},
            {"redirect_uri", redirect_uri},
            {"state", "a state"},
            {"code_challenge", *pkce_challenge(verifier)},
            {"code_challenge_method", "S256"}};
  }
  Response show_page(HeaderList query) {
    return world_.call({Method::get, "/auth/oauth2/authorize", {}, "", std::move(query)});
  }
  static std::string hidden(const Response& page) {
    static constexpr std::string_view before = "name=\"request\" value=\"";
    const auto begin = page.body.find(before);
    if (begin == std::string::npos) return {};
    const auto from = begin + before.size();
    return page.body.substr(from, page.body.find('"', from) - from);
  }
  Response send_form(const std::string& request, const std::string& given = "secret secret",
                     const std::string& user = ann, HeaderList headers = {}) {
    return post("authorize", form({{"request", request}, {"username", user}, {"password", given}}),
                std::move(headers));
  }
  // The code that a sign-in on the page returns.
  std::string new_code(const std::string& client) {
    const auto sent = send_form(hidden(show_page(asked(client))));
    EXPECT_EQ(sent.status, 303) << sent.body;
    const auto location = header(sent, "Location");
    EXPECT_TRUE(location.starts_with(std::string(redirect_uri) + "?code=")) << location;
    EXPECT_TRUE(location.ends_with("&state=a%20state&iss=http%3A%2F%2Flocalhost")) << location;
    const auto begin = location.find("code=") + 5;
    return location.substr(begin, location.find('&') - begin);
  }
  Response exchange(const std::string& code, const std::string& used_verifier = verifier) {
    return post("token", form({{"grant_type", "authorization_code"},
                               {"client_id", public_},
                               {"code", code},
                               {"redirect_uri", redirect_uri},
                               {"code_verifier", used_verifier}}));
  }

  World world_{{.lockout = {.account_failures = 10}}};
  std::string address_ = "192.0.2.1";  // the address that sends the forms
  std::string client_;
  std::string secret_;
  std::string public_;
};

}  // namespace conversed::api::test
