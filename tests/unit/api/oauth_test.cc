// OAuth 2.0 and the other kinds of credentials, from requests to answers.
#include "tests/unit/api/oauth_fixture.h"

namespace conversed::api::test {
namespace {

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
      << "credentials in Basic are form-encoded";
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
      << "an empty parameter counts as missing";
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
  EXPECT_EQ(inject(second.at("access_token")), 401) << "the token was in the cache";
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
  EXPECT_EQ(inject(tokens.at("access_token")), 200) << "the token belongs to another client";
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
  EXPECT_EQ(inject(tokens.at("access_token")), 401)
      << "the second use revokes the tokens of the first";
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
    EXPECT_NE(page.body.find(std::string(32, '7')), std::string::npos)
        << "the page shows its trace id";
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
    EXPECT_TRUE(location.ends_with("&state=a%20state&iss=http%3A%2F%2Flocalhost")) << location;
  }
}

TEST_F(OauthTest, FormIsAcceptedForItsRequestFromItsPageUntilItExpires) {
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
  EXPECT_EQ(late.status, 200) << "the page is shown again";
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
  // Holds both threads that write, so that the sign-ins stop between their check and their write.
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
  ASSERT_TRUE(
      world_.sign_ins.post("192.0.2.1", BlockingPool::Line::others, [&] { checked.set_value(); }));
  checked.get_future().wait();
  world_.set_password(ann, "another password");
  go_on.set_value();

  EXPECT_EQ(error_of(tokens.get()), "invalid_grant");
  const auto sent = code.get();
  EXPECT_EQ(sent.status, 200) << "the page is shown again";
  EXPECT_NE(sent.body.find("password is wrong"), std::string::npos) << sent.body;
  EXPECT_EQ(sign_in("another password").status, 200);
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
}  // namespace conversed::api::test
