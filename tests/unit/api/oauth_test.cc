// OAuth 2.0 and the other ways to say who one is, from requests to answers.
#include <gtest/gtest.h>

#include "api/auth/pkce.h"
#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::header;
using test::World;

constexpr const char* ann = "ann@acme.example";
constexpr const char* redirect_uri = "https://shop.example/cb";
const std::string verifier(64, 'v');

std::string form(const HeaderList& parameters) {
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
    return world_.call({Method::post, "/auth/oauth2/" + route, std::move(headers), body, {}});
  }
  HeaderList with_client(HeaderList parameters) {
    parameters.emplace_back("client_id", client_);
    parameters.emplace_back("client_secret", secret_);
    return parameters;
  }
  Response sign_in(const std::string& password = "secret secret", const std::string& user = ann) {
    return post("token",
                form(with_client(
                    {{"grant_type", "password"}, {"username", user}, {"password", password}})));
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
  Response send_form(const std::string& request, const std::string& password = "secret secret",
                     const std::string& user = ann, HeaderList headers = {}) {
    return post("authorize",
                form({{"request", request}, {"username", user}, {"password", password}}),
                std::move(headers));
  }
  // The code that a sign-in at the page leads to.
  std::string new_code(const std::string& client) {
    const auto sent = send_form(hidden(show_page(asked(client))));
    EXPECT_EQ(sent.status, 303) << sent.body;
    const auto location = header(sent, "Location");
    EXPECT_TRUE(location.starts_with(std::string(redirect_uri) + "?code=")) << location;
    EXPECT_TRUE(location.ends_with("&state=a%20state")) << location;
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

  World world_;
  std::string client_;
  std::string secret_;
  std::string public_;
};

TEST_F(OauthTest, PasswordGrantGivesTokensThatOpenTheApi) {
  const auto response = sign_in();
  ASSERT_EQ(response.status, 200) << response.body;
  EXPECT_EQ(header(response, "Cache-Control"), "no-store");
  const auto tokens = json::parse(response.body);
  EXPECT_EQ(tokens.at("token_type"), "Bearer");
  EXPECT_EQ(tokens.at("expires_in"), 3600);
  EXPECT_EQ(inject(tokens.at("access_token")), 200);
  EXPECT_EQ(inject(tokens.at("refresh_token")), 401);
  world_.clock.advance(std::chrono::hours(1));
  world_.steady += std::chrono::hours(1);
  EXPECT_EQ(inject(tokens.at("access_token")), 401);
}

TEST_F(OauthTest, AccessTokenIsNotRememberedBeyondItsEnd) {
  const std::string token = json::parse(sign_in().body).at("access_token");
  world_.clock.advance(std::chrono::minutes(60) - std::chrono::seconds(1));
  EXPECT_EQ(inject(token), 200);
  world_.clock.advance(std::chrono::seconds(1));
  world_.steady += std::chrono::seconds(1);
  EXPECT_EQ(inject(token), 401);
}

TEST_F(OauthTest, WrongPasswordUnknownUserAndForeignUserCanNotBeToldApart) {
  const auto wrong = sign_in("wrong");
  EXPECT_EQ(wrong.status, 400);
  EXPECT_EQ(error_of(wrong), "invalid_grant");
  EXPECT_EQ(sign_in("secret secret", "nobody@acme.example").body, wrong.body);
  EXPECT_EQ(sign_in("secret secret", "out@other.example").body, wrong.body);
}

TEST_F(OauthTest, PasswordGrantIsForClientsThatMay) {
  const auto refused = post("token", form({{"grant_type", "password"},
                                           {"client_id", public_},
                                           {"username", ann},
                                           {"password", "secret secret"}}));
  EXPECT_EQ(refused.status, 400);
  EXPECT_EQ(error_of(refused), "unauthorized_client");
}

TEST_F(OauthTest, ClientsAuthenticateThemselvesInOneWay) {
  const std::string grant = form({{"grant_type", "refresh_token"}, {"refresh_token", "x"}});
  const auto by_basic = [&](const std::string& id, const std::string& secret) {
    return post("token", grant, {{"authorization", test::basic(id, secret)}});
  };
  EXPECT_EQ(error_of(by_basic(client_, secret_)), "invalid_grant");
  const std::string encoded = form({{"", client_}}).substr(1);
  EXPECT_EQ(error_of(by_basic(encoded, secret_)), "invalid_grant")
      << "what stands in Basic is form-encoded";
  for (const auto& refused : {by_basic(client_, "wrong"), by_basic("unknown", secret_),
                              by_basic(client_, ""), by_basic(public_, secret_),
                              post("token", grant), post("token", grant + "&client_id=" + client_),
                              post("token", grant + "&client_id=" + public_ + "&client_secret=x"),
                              post("token", grant, {{"authorization", "Bearer x"}})}) {
    EXPECT_EQ(refused.status, 401) << refused.body;
    EXPECT_EQ(error_of(refused), "invalid_client");
    EXPECT_TRUE(header(refused, "WWW-Authenticate").starts_with("Basic "));
  }
  const HeaderList basic{{"authorization", test::basic(client_, secret_)}};
  EXPECT_EQ(error_of(post("token", grant + "&client_secret=" + secret_, basic)), "invalid_request");
  EXPECT_EQ(error_of(post("token", grant + "&client_id=" + public_, basic)), "invalid_request");
  EXPECT_EQ(error_of(post("token", grant + "&client_id=" + client_, basic)), "invalid_grant");
  EXPECT_EQ(error_of(post("token", grant + "&client_id=" + public_ + "&client_secret=")),
            "invalid_grant")
      << "a parameter without a value is none";
}

TEST_F(OauthTest, FormsAreReadAsTheStandardSays) {
  const auto good = form(
      with_client({{"grant_type", "password"}, {"username", ann}, {"password", "secret secret"}}));
  EXPECT_EQ(post("token", good + "&unknown=1&empty=&empty=&scope=").status, 200);
  EXPECT_EQ(error_of(post("token", good + "&username=x")), "invalid_request");
  EXPECT_EQ(error_of(post("token", good + "&%zz")), "invalid_request");
  EXPECT_EQ(error_of(post("token", "")), "invalid_request");
  EXPECT_EQ(error_of(post("token", form(with_client({{"grant_type", "password"}})))),
            "invalid_request");
  EXPECT_EQ(error_of(post("token", form(with_client({{"grant_type", "implicit"}})))),
            "unsupported_grant_type");
  const auto as_json = world_.call(
      {Method::post, "/auth/oauth2/token", {{"content-type", "application/json"}}, good, {}});
  EXPECT_EQ(error_of(as_json), "invalid_request");
  const auto in_query = world_.call({Method::post,
                                     "/auth/oauth2/token",
                                     {},
                                     "",
                                     {{"grant_type", "password"}, {"client_id", client_}}});
  EXPECT_EQ(error_of(in_query), "invalid_request");
}

TEST_F(OauthTest, ReusedRefreshTokenEndsTheFamilyAtOnce) {
  const auto first = json::parse(sign_in().body);
  const auto renewed = refresh(first.at("refresh_token"));
  ASSERT_EQ(renewed.status, 200) << renewed.body;
  const auto second = json::parse(renewed.body);
  EXPECT_NE(second.at("refresh_token"), first.at("refresh_token"));
  EXPECT_EQ(inject(second.at("access_token")), 200);
  EXPECT_EQ(error_of(refresh(first.at("refresh_token"))), "invalid_grant");
  EXPECT_EQ(inject(second.at("access_token")), 401) << "although it was remembered";
  EXPECT_EQ(error_of(refresh(second.at("refresh_token"))), "invalid_grant");
}

TEST_F(OauthTest, RevokedTokensOpenNothing) {
  const auto tokens = json::parse(sign_in().body);
  EXPECT_EQ(inject(tokens.at("access_token")), 200);
  const auto revoke = [&](const std::string& token) {
    return post("revoke", form(with_client({{"token", token}, {"token_type_hint", "x"}}))).status;
  };
  EXPECT_EQ(post("revoke", form({{"token", tokens.at("refresh_token")}})).status, 401);
  EXPECT_EQ(
      post("revoke", form({{"token", tokens.at("refresh_token")}, {"client_id", public_}})).status,
      200);
  EXPECT_EQ(inject(tokens.at("access_token")), 200) << "it is another client's";
  EXPECT_EQ(revoke(tokens.at("refresh_token")), 200);
  EXPECT_EQ(inject(tokens.at("access_token")), 401);
  EXPECT_EQ(revoke(tokens.at("refresh_token")), 200);
  EXPECT_EQ(revoke("unknown"), 200);
  EXPECT_EQ(error_of(post("revoke", form(with_client({})))), "invalid_request");
}

TEST_F(OauthTest, CodeGrantWithPkceSignsInOnce) {
  const auto code = new_code(public_);
  EXPECT_EQ(error_of(exchange(code, std::string(64, 'w'))), "invalid_grant");
  EXPECT_EQ(error_of(exchange(code, "short")), "invalid_grant");
  const auto answer = exchange(code);
  ASSERT_EQ(answer.status, 200) << answer.body;
  const auto tokens = json::parse(answer.body);
  EXPECT_EQ(inject(tokens.at("access_token")), 200);
  EXPECT_EQ(error_of(exchange(code)), "invalid_grant");
  EXPECT_EQ(inject(tokens.at("access_token")), 401) << "the second use ends what the first gave";
}

TEST_F(OauthTest, PageIsGuarded) {
  const auto page = show_page(asked(public_));
  ASSERT_EQ(page.status, 200) << page.body;
  EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
  EXPECT_EQ(header(page, "X-Frame-Options"), "DENY");
  EXPECT_EQ(header(page, "Cache-Control"), "no-store");
  const auto policy = header(page, "Content-Security-Policy");
  for (const char* part :
       {"default-src 'none'", "frame-ancestors 'none'", "form-action 'self' https:"}) {
    EXPECT_NE(policy.find(part), std::string::npos) << policy;
  }
  EXPECT_EQ(page.body.find("<script"), std::string::npos);
  for (const char* name : {"name=\"username\"", "name=\"password\"", "method=\"post\""}) {
    EXPECT_NE(page.body.find(name), std::string::npos) << name;
  }
}

TEST_F(OauthTest, AnAddressThatIsNotRegisteredIsNotRedirectedTo) {
  const auto with = [&](const char* name, const std::string& value) {
    auto query = asked(public_);
    for (auto& [each, old] : query) {
      if (each == name) old = value;
    }
    return show_page(query);
  };
  for (const auto& refused : {with("redirect_uri", "https://shop.example/cb/"),
                              with("redirect_uri", "https://evil.example/"),
                              with("client_id", std::string(24, '0')), with("client_id", "")}) {
    EXPECT_EQ(refused.status, 400);
    EXPECT_EQ(error_of(refused), "invalid_request");
    EXPECT_EQ(header(refused, "Location"), "");
  }
}

TEST_F(OauthTest, ABrowserIsShownAPageWhereNoRedirectIsSafe) {
  const std::string browser = "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8";
  const auto ask = [&](const std::string& accept, HeaderList query) {
    return world_.call(
        {Method::get, "/auth/oauth2/authorize", {{"accept", accept}}, "", std::move(query)});
  };
  auto wrong_address = asked(public_);
  wrong_address[2].second = "https://evil.example/";
  auto unknown_client = asked(std::string(24, '0'));
  for (const auto& query : {wrong_address, unknown_client, HeaderList{}}) {
    const auto page = ask(browser, query);
    EXPECT_EQ(page.status, 400);
    EXPECT_EQ(page.content_type, "text/html; charset=utf-8");
    EXPECT_EQ(header(page, "Location"), "");
    EXPECT_EQ(header(page, "X-Frame-Options"), "DENY");
    EXPECT_EQ(header(page, "Cache-Control"), "no-store");
    EXPECT_NE(header(page, "Content-Security-Policy").find("form-action 'none'"),
              std::string::npos);
    EXPECT_NE(page.body.find("<h1>Sign in</h1>"), std::string::npos);
    EXPECT_NE(page.body.find(std::string(32, '7')), std::string::npos) << "its trace id";
    EXPECT_EQ(page.body.find("<form"), std::string::npos);
    EXPECT_EQ(page.body.find("evil.example"), std::string::npos);
  }
  EXPECT_NE(ask(browser, wrong_address).body.find("redirect_uri is not registered"),
            std::string::npos);
  for (const char* accept : {"", "*/*", "application/json", "application/json, text/html",
                             "text/html;q=0.5, application/json", "text/html;q=0"}) {
    EXPECT_EQ(error_of(ask(accept, wrong_address)), "invalid_request") << accept;
  }
  const auto bad_form =
      send_form("not ours", "secret secret", ann, {{"accept", browser}, {"host", "a.example"}});
  EXPECT_EQ(bad_form.status, 400);
  EXPECT_EQ(bad_form.content_type, "text/html; charset=utf-8");
}

TEST_F(OauthTest, FaultsOfTheRequestAreToldToTheClient) {
  const auto location_with = [&](const char* name, const char* value) {
    auto query = asked(public_);
    for (auto& [each, old] : query) {
      if (each == name) old = value;
    }
    const auto response = show_page(query);
    EXPECT_EQ(response.status, 303);
    return header(response, "Location");
  };
  EXPECT_NE(location_with("response_type", "token").find("error=unsupported_response_type"),
            std::string::npos);
  for (const auto& location :
       {location_with("response_type", ""), location_with("code_challenge", ""),
        location_with("code_challenge", "short"), location_with("code_challenge_method", ""),
        location_with("code_challenge_method", "plain")}) {
    EXPECT_NE(location.find("?error=invalid_request&"), std::string::npos) << location;
    EXPECT_TRUE(location.ends_with("&state=a%20state")) << location;
  }
}

TEST_F(OauthTest, FormIsGoodForItsOwnRequestFromItsOwnPageForItsTime) {
  const auto request = hidden(show_page(asked(public_)));
  ASSERT_FALSE(request.empty());
  EXPECT_EQ(send_form(request, "secret secret", ann, {{"sec-fetch-site", "cross-site"}}).status,
            403);
  EXPECT_EQ(send_form(request, "secret secret", ann,
                      {{"host", "a.example"}, {"origin", "https://evil.example"}})
                .status,
            403);
  EXPECT_EQ(error_of(send_form("")), "invalid_request");
  auto changed = request;
  changed[changed.size() - 8] = changed[changed.size() - 8] == 'A' ? 'B' : 'A';
  EXPECT_EQ(error_of(send_form(changed)), "invalid_request");
  world_.clock.advance(std::chrono::minutes(11));
  const auto late = send_form(request);
  EXPECT_EQ(late.status, 200) << "shown again";
  EXPECT_EQ(send_form(hidden(late)).status, 303);
}

TEST_F(OauthTest, WrongPasswordShowsThePageAgain) {
  const auto request = hidden(show_page(asked(public_)));
  const auto wrong = send_form(request, "wrong");
  EXPECT_EQ(wrong.status, 200);
  EXPECT_NE(wrong.body.find("role=\"alert\""), std::string::npos);
  EXPECT_EQ(wrong.body.find("secret secret"), std::string::npos);
  EXPECT_EQ(send_form(request, "secret secret", "out@other.example").status, 200);
  EXPECT_EQ(send_form(hidden(wrong)).status, 303);
}

TEST_F(OauthTest, GuessingLocksTheAccountOutForBasicAndOauthAlike) {
  for (int i = 0; i < 10; ++i) EXPECT_EQ(sign_in("guess").status, 400);
  const auto locked = sign_in();
  EXPECT_EQ(locked.status, 429) << locked.body;
  EXPECT_FALSE(header(locked, "Retry-After").empty());
  EXPECT_EQ(world_.manage(Method::get, "/management/apikeys", nullptr, {}, ann).status, 429);
  const auto page = send_form(hidden(show_page(asked(public_))));
  EXPECT_EQ(page.status, 200);
  EXPECT_NE(page.body.find("Too many"), std::string::npos);
  EXPECT_EQ(sign_in("secret secret", "admin@acme.example").status, 200);
  world_.steady += std::chrono::minutes(5);
  EXPECT_EQ(sign_in().status, 200);
}

TEST_F(OauthTest, UnknownAccountsAreLockedOutLikeKnownOnes) {
  for (int i = 0; i < 10; ++i) (void)sign_in("guess", "nobody@acme.example");
  EXPECT_EQ(sign_in("guess", "nobody@acme.example").status, 429);
}

TEST_F(OauthTest, RemovedClientsTokensEnd) {
  const std::string token = json::parse(sign_in().body).at("access_token");
  EXPECT_EQ(inject(token), 200);
  const auto path = "/management/oauth/clients/" + client_;
  EXPECT_EQ(world_.manage(Method::delete_, path, nullptr, {}, ann).status, 403);
  EXPECT_EQ(world_.manage(Method::delete_, path, nullptr, {}, "out@other.example").status, 404);
  EXPECT_EQ(world_.manage(Method::delete_, path).status, 204);
  EXPECT_EQ(inject(token), 401);
  EXPECT_EQ(sign_in().status, 401);
}

TEST_F(OauthTest, DeprecatedPasswordOpensNothing) {
  const auto tokens = json::parse(sign_in().body);
  const auto deprecate = [&](const std::string& key_owner, const json& body) {
    return world_.call({Method::post,
                        "/v2.0/users/deprecatepassword",
                        {{"x-api-key", world_.key_of(key_owner)}},
                        body.dump(),
                        {}});
  };
  const json body{{"userId", world_.id_of(ann)}};
  EXPECT_EQ(deprecate(ann, body).status, 403);
  const auto foreign =
      deprecate("admin@acme.example", {{"userId", world_.id_of("out@other.example")}});
  EXPECT_EQ(foreign.status, 400);
  EXPECT_EQ(deprecate("admin@acme.example", {{"userId", std::string(24, '0')}}).body, foreign.body);
  EXPECT_EQ(deprecate(ann, {{"userId", world_.id_of("out@other.example")}}).status, 400);
  for (const json& wrong : {json::object(), json{{"userId", 1}}, json{{"userId", "short"}}}) {
    EXPECT_EQ(deprecate("admin@acme.example", wrong).status, 400) << wrong;
  }
  EXPECT_EQ(inject(tokens.at("access_token")), 200);
  const auto done = deprecate("admin@acme.example", body);
  EXPECT_EQ(done.status, 200);
  EXPECT_EQ(json::parse(done.body), (json{{"deprecated", true}}));
  EXPECT_EQ(inject(tokens.at("access_token")), 401);
  EXPECT_EQ(error_of(refresh(tokens.at("refresh_token"))), "invalid_grant");
  EXPECT_EQ(error_of(sign_in()), "invalid_grant");
  EXPECT_EQ(world_.manage(Method::get, "/management/apikeys", nullptr, {}, ann).status, 401);
}

TEST_F(OauthTest, ANewPasswordEndsTheSignInsThatAreInFlight) {
  const auto page = hidden(show_page(asked(public_)));
  // Both threads that write are held, so the sign-ins stop between the check and the write.
  std::promise<void> go_on;
  const auto gone_on = go_on.get_future().share();
  for (int i = 0; i < 2; ++i) ASSERT_TRUE(world_.pool.post([gone_on] { gone_on.wait(); }));
  const HeaderList type{{"content-type", "application/x-www-form-urlencoded"}};
  auto tokens = world_.send(
      {Method::post,
       "/auth/oauth2/token",
       type,
       form(with_client(
           {{"grant_type", "password"}, {"username", ann}, {"password", "secret secret"}})),
       {}});
  auto code =
      world_.send({Method::post,
                   "/auth/oauth2/authorize",
                   type,
                   form({{"request", page}, {"username", ann}, {"password", "secret secret"}}),
                   {}});
  std::promise<void> checked;
  ASSERT_TRUE(world_.sign_ins.post([&] { checked.set_value(); }));
  checked.get_future().wait();
  world_.set_password(ann, "another one");
  go_on.set_value();

  EXPECT_EQ(error_of(tokens.get()), "invalid_grant");
  const auto sent = code.get();
  EXPECT_EQ(sent.status, 200) << "the page again";
  EXPECT_NE(sent.body.find("password is wrong"), std::string::npos) << sent.body;
  EXPECT_EQ(sign_in("another one").status, 200);
}

TEST_F(OauthTest, RefusedTokenIsNamedInTheChallenge) {
  const auto ask = [&](HeaderList headers) {
    return world_.call(
        {Method::post, "/v2.0/endpoint/inject", std::move(headers), test::message().dump(), {}});
  };
  EXPECT_EQ(header(ask({}), "WWW-Authenticate"), R"(Bearer realm="conversed")");
  const auto refused = ask({{"authorization", "Bearer x"}});
  EXPECT_EQ(refused.status, 401);
  EXPECT_EQ(header(refused, "WWW-Authenticate"),
            R"(Bearer realm="conversed", error="invalid_token")");
  EXPECT_EQ(ask({{"authorization", world_.sign_in(ann)}}).status, 401) << "Basic is for management";
  EXPECT_EQ(ask({{"authorization", world_.sign_in(ann)}, {"x-api-key", world_.key_of(ann)}}).status,
            200);
  EXPECT_EQ(ask({{"authorization", "Bearer x"}, {"x-api-key", world_.key_of(ann)}}).status, 400);
  EXPECT_EQ(ask({{"x-contactcenter-authorization", "Bearer x"}}).status, 401);
}

}  // namespace
}  // namespace conversed::api
