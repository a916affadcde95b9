// The small parts of authentication: credentials of requests, lock-out, PKCE and redirect URIs.
#include <gtest/gtest.h>

#include <regex>
#include <string>

#include "api/auth/credentials.h"
#include "api/auth/lockout.h"
#include "api/auth/oauth_parameters.h"
#include "api/auth/sign_in_page.h"
#include "store/text/base64.h"

namespace conversed::api {
namespace {

using std::chrono::seconds;

model::Result<std::optional<PresentedCredential>> credential_of(const Request& request) {
  return presented_credential(request);
}

TEST(Credentials, EachOfTheFourIsFound) {
  Request request;
  request.headers = {{"x-api-key", "k"}};
  EXPECT_EQ(*credential_of(request), (PresentedCredential{CredentialKind::api_key, "k"}));
  request.headers = {{"x-contactcenter-authorization", "Bearer t"}};
  EXPECT_EQ(*credential_of(request), (PresentedCredential{CredentialKind::contact_center, "t"}));
  request.headers = {{"authorization", "bearer  t"}};
  EXPECT_EQ(*credential_of(request), (PresentedCredential{CredentialKind::access_token, "t"}));
  request.headers = {};
  request.query = {{"api_key", "q"}};
  EXPECT_EQ(*credential_of(request), (PresentedCredential{CredentialKind::api_key, "q"}));
}

TEST(Credentials, EmptyOnesCountAsMissing) {
  Request request;
  EXPECT_EQ(*credential_of(request), std::nullopt);
  request.headers = {
      {"x-api-key", ""}, {"x-contactcenter-authorization", ""}, {"authorization", "Basic YTpi"}};
  request.query = {{"api_key", ""}};
  EXPECT_EQ(*credential_of(request), std::nullopt);
}

TEST(Credentials, DifferentOnesAreRefusedAndRepeatsCountOnce) {
  Request request;
  request.headers = {{"x-api-key", "k"}, {"x-api-key", "k"}, {"authorization", "Basic YTpi"}};
  request.query = {{"api_key", "k"}};
  EXPECT_TRUE(credential_of(request));
  for (const auto& other : HeaderList{{"x-api-key", "l"},
                                      {"authorization", "Bearer k"},
                                      {"x-contactcenter-authorization", "Bearer k"}}) {
    Request twice = request;
    twice.headers.push_back(other);
    EXPECT_EQ(credential_of(twice).error().code, model::Errc::invalid_argument) << other.first;
  }
}

TEST(Base64, RoundTripsEveryLength) {
  for (const auto alphabet : {text::Base64::standard, text::Base64::url}) {
    std::string bytes;
    for (int i = 0; i < 260; ++i) {
      EXPECT_EQ(text::decode_base64(text::encode_base64(bytes, alphabet), alphabet), bytes);
      bytes += static_cast<char>(i * 37);
    }
  }
  EXPECT_FALSE(text::decode_base64("YQ==", text::Base64::url)) << "base64url has no padding";
  EXPECT_FALSE(text::decode_base64("YR", text::Base64::url)) << "surplus bits";
  EXPECT_FALSE(text::decode_base64("-_-_", text::Base64::standard));
}

TEST(Lockout, CountsTheGuessesOfAllStrangersAtAnAccountWithinAnHour) {
  Lockout lockout({.account_failures = 3, .address_failures = 0, .window = seconds(60)});
  Lockout::TimePoint now{};
  for (int i = 0; i < 3; ++i) {
    EXPECT_FALSE(lockout.locked("ann@a.example", "1", Visitor::stranger, now));
    lockout.failed("Ann@A.example", std::to_string(i), Visitor::stranger, now);
    now += seconds(10);
  }
  EXPECT_TRUE(lockout.locked("ann@a.example", "9", Visitor::stranger, now));
  EXPECT_FALSE(lockout.locked("tom@a.example", "1", Visitor::stranger, now));
  now = Lockout::TimePoint(seconds(60));
  EXPECT_FALSE(lockout.locked("ann@a.example", "9", Visitor::stranger, now))
      << "the window began at the first failure";
  lockout.failed("ann@a.example", "9", Visitor::stranger, now);
  EXPECT_FALSE(lockout.locked("ann@a.example", "9", Visitor::stranger, now))
      << "older failures are forgotten";
}

TEST(Lockout, CountsAnAddressThatHasSignedInByItself) {
  Lockout lockout({.account_failures = 2, .address_failures = 2, .window = seconds(60)});
  const Lockout::TimePoint now{};
  for (int i = 0; i < 2; ++i) lockout.failed("ann", "here", Visitor::stranger, now);
  EXPECT_TRUE(lockout.locked("ann", "there", Visitor::stranger, now));
  EXPECT_TRUE(lockout.locked("tom", "here", Visitor::stranger, now)) << "the address";
  EXPECT_FALSE(lockout.locked("ann", "here", Visitor::known, now));
  for (int i = 0; i < 2; ++i) lockout.failed("ann", "here", Visitor::known, now);
  EXPECT_TRUE(lockout.locked("ann", "here", Visitor::known, now));
  EXPECT_FALSE(lockout.locked("ann", "home", Visitor::known, now));
  EXPECT_FALSE(lockout.locked("tom", "here", Visitor::known, now));
}

TEST(Lockout, ForgetsTheOldestFailuresWhenFull) {
  Lockout lockout({.account_failures = 1, .address_failures = 0, .max_names = 2});
  const Lockout::TimePoint now{};
  for (const char* name : {"a", "b", "a", "c"}) lockout.failed(name, "", Visitor::stranger, now);
  EXPECT_TRUE(lockout.locked("a", "", Visitor::stranger, now));
  EXPECT_FALSE(lockout.locked("b", "", Visitor::stranger, now));
  EXPECT_TRUE(lockout.locked("c", "", Visitor::stranger, now));
}

TEST(Lockout, StrangersNeverMakeItForgetAKnownVisitor) {
  Lockout lockout({.account_failures = 1, .address_failures = 1, .max_names = 2});
  const Lockout::TimePoint now{};
  lockout.failed("ann", "here", Visitor::known, now);
  for (const char* name : {"a", "b", "c"}) lockout.failed(name, name, Visitor::stranger, now);
  EXPECT_TRUE(lockout.locked("ann", "here", Visitor::known, now));
}

TEST(Pkce, MakesTheChallengeOfTheStandardsExample) {
  // RFC 7636, appendix B.
  EXPECT_EQ(pkce_challenge("dBjftJeZ4CVP-mB92K27uhbUJU1p1r_wW1gFWFOEjXk"),
            "E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM");
  EXPECT_FALSE(pkce_challenge(std::string(42, 'a')));
  EXPECT_TRUE(pkce_challenge(std::string(43, 'a')));
  EXPECT_TRUE(pkce_challenge(std::string(128, 'a')));
  EXPECT_FALSE(pkce_challenge(std::string(129, 'a')));
  EXPECT_FALSE(pkce_challenge(std::string(42, 'a') + "+"));
  EXPECT_TRUE(is_pkce_challenge("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-cM"));
  EXPECT_FALSE(is_pkce_challenge("E9Melhoa2OwvFrEMTJguCHaoeK1t8URWbuGJSstw-c"));
}

TEST(RedirectUri, AllowsHttpsLoopbackAndPrivateSchemesOnly) {
  const std::regex documented{std::string(redirect_uri_expression)};
  for (const char* uri :
       {"https://client.example/cb", "https://client.example", "https://client.example/cb?a=b",
        "http://localhost:8080/cb", "http://localhost", "http://127.0.0.1:4711/cb?a=b",
        "http://127.0.0.1", "http://[::1]/cb", "com.example.app:/cb", "com.example.app:cb"}) {
    EXPECT_TRUE(is_redirect_uri(uri)) << uri;
    EXPECT_TRUE(std::regex_match(uri, documented)) << uri;
  }
  for (const char* uri :
       {"", "/cb", "client.example/cb", "https://", "https:///cb", "https:client.example",
        "https://client.example/cb#x", "https://u:p@client.example/cb", "javascript:alert(1)",
        "data:text/html,x", "https://client.example/ cb", "https://client.example/\"cb",
        "https://client.example/cb\n", "https://:80/cb", "com.example.app:",
        // Plain HTTP to another machine than the user's.
        "http://client.example/cb", "http://127.0.0.1.client.example/cb", "http://127.0.0.2/cb",
        "http://localhost.client.example/cb", "http://localhost@client.example/cb",
        "http://127.0.0.1:80@client.example/", "http://[::1].client.example/cb", "http://"}) {
    EXPECT_FALSE(is_redirect_uri(uri)) << uri;
    EXPECT_FALSE(std::regex_match(uri, documented)) << uri;
  }
}

TEST(RedirectUri, IsComparedByteForByteButForALoopbackPort) {
  const char* const registered = "https://client.example/cb";
  EXPECT_TRUE(same_redirect_uri(registered, registered));
  for (const char* uri : {"https://client.example/cb/", "https://client.example/cb?x=1",
                          "https://CLIENT.example/cb", "https://client.example:443/cb",
                          "https://client.example.evil.example/cb", "http://client.example/cb"}) {
    EXPECT_FALSE(same_redirect_uri(registered, uri)) << uri;
  }
  EXPECT_TRUE(same_redirect_uri("http://127.0.0.1/cb", "http://127.0.0.1:4711/cb"));
  EXPECT_TRUE(same_redirect_uri("http://[::1]:1/cb", "http://[::1]:2/cb"));
  for (const char* uri : {"http://127.0.0.1:4711/other", "http://127.0.0.1.evil.example/cb",
                          "http://127.0.0.1:1@evil.example/cb", "https://127.0.0.1:4711/cb",
                          "http://localhost:4711/cb", "http://[::1]:4711/cb"}) {
    EXPECT_FALSE(same_redirect_uri("http://127.0.0.1/cb", uri)) << uri;
  }
  EXPECT_FALSE(same_redirect_uri("http://localhost/cb", "http://localhost:4711/cb"));
}

TEST(RedirectUri, CarriesFurtherParametersEncoded) {
  EXPECT_EQ(with_query("https://c.example/cb", {{"code", "x"}, {"state", "a&b =\xC3\xA4"}}),
            "https://c.example/cb?code=x&state=a%26b%20%3D%C3%A4");
  EXPECT_EQ(with_query("https://c.example/cb?a=b", {{"code", "x"}, {"state", ""}}),
            "https://c.example/cb?a=b&code=x");
}

TEST(SignInPage, EscapesWhatItShows) {
  const auto page = sign_in_page({.client_name = "<b>&\"",
                                  .request = "\"><script>",
                                  .redirect_scheme = "https",
                                  .username = "\" autofocus onfocus=\"x",
                                  .message = "<i>"});
  EXPECT_EQ(page.body.find("<b>"), std::string::npos);
  EXPECT_EQ(page.body.find("<script"), std::string::npos);
  EXPECT_EQ(page.body.find("<i>"), std::string::npos);
  EXPECT_EQ(page.body.find("\" autofocus"), std::string::npos);
  EXPECT_NE(page.body.find("&lt;b&gt;&amp;&quot;"), std::string::npos);
}

TEST(SignInPage, FormsOfOtherSitesAreNotOwn) {
  const auto is_own = [](HeaderList headers) {
    Request request;
    request.headers = std::move(headers);
    return is_from_own_site(request);
  };
  EXPECT_TRUE(is_own({{"host", "a.example"}})) << "no browser";
  EXPECT_TRUE(is_own({{"host", "a.example"}, {"origin", "https://A.example"}}));
  EXPECT_FALSE(is_own({{"host", "a.example"}, {"origin", "https://b.example"}}));
  EXPECT_FALSE(is_own({{"host", "a.example"}, {"origin", "null"}}));
  EXPECT_FALSE(is_own({{"host", "a.example:8080"}, {"origin", "https://a.example"}}));
  // Behind a proxy the host may differ, but the browser sends Sec-Fetch-Site.
  EXPECT_TRUE(is_own(
      {{"host", "inner"}, {"origin", "https://a.example"}, {"sec-fetch-site", "same-origin"}}));
  for (const char* site : {"cross-site", "same-site", "none"}) {
    EXPECT_FALSE(is_own({{"host", "a.example"}, {"sec-fetch-site", site}})) << site;
  }
}

}  // namespace
}  // namespace conversed::api
