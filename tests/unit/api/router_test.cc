// The way from a path and a method to an operation, and the table of operations.
#include "api/router.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "tests/unit/api/api_world.h"

namespace conversed::api {
namespace {

using test::World;

TEST(Operations, IdsAndRoutesAreUnique) {
  std::set<std::string_view> ids;
  std::set<std::pair<Method, std::string_view>> routes;
  for (const Operation* operation : all_operations()) {
    EXPECT_TRUE(ids.insert(operation->id).second) << operation->id;
    EXPECT_TRUE(routes.insert({operation->method, operation->path}).second) << operation->id;
    EXPECT_TRUE(std::visit([](auto run) { return run != nullptr; }, operation->run))
        << operation->id;
    EXPECT_TRUE(operation->path.starts_with('/')) << operation->id;
  }
}

TEST(Operations, OnlyOpenOperationsNeedNoRole) {
  for (const Operation* operation : all_operations()) {
    EXPECT_EQ(operation->role == Role::none, operation->credential == Credential::open)
        << operation->id;
  }
}

TEST(Operations, BasicIsForManagementAndNothingElse) {
  for (const Operation* operation : all_operations()) {
    EXPECT_EQ(operation->credential == Credential::basic,
              operation->path.starts_with("/management/") && operation->path != "/management/")
        << operation->id;
  }
}

TEST(Router, ServesEveryPathWithAndWithoutItsBase) {
  World world;
  for (const char* path : {"/v2.0/endpoint/inject", "/new/v2.0/endpoint/inject"}) {
    EXPECT_EQ(world.call({Method::post, path, {}, "{}", {}}).status, 401) << path;
  }
  EXPECT_EQ(world
                .call({Method::post,
                       "/new" + std::string("/") + test::token('9'),
                       {},
                       test::message().dump(),
                       {}})
                .status,
            404);
}

TEST(Router, UnknownPathsAreNotFound) {
  World world;
  for (const char* path :
       {"/", "", "/new", "/new/", "/nothing", "/v2.0/endpoint/inject/", "/v2.0//endpoint/inject",
        "/newv2.0/endpoint/inject", "/new/new/v2.0/endpoint/inject", "/v2.0/endpoint/Inject",
        "/inject/", "/a/outputs", "/../v2.0/endpoint/inject"}) {
    const auto response = world.call({Method::post, path, {}, "{}", {}});
    EXPECT_EQ(response.status, 404) << path;
    EXPECT_EQ(response.content_type, "application/problem+json");
  }
}

TEST(Router, AnotherMethodIsAnsweredWithTheAllowedOnes) {
  World world;
  auto response = world.call({Method::get, "/v2.0/endpoint/inject", {}, "", {}});
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(test::header(response, "Allow"), "POST, OPTIONS");
  response = world.call({Method::put, "/management/apikeys", {}, "", {}});
  EXPECT_EQ(response.status, 405);
  EXPECT_EQ(test::header(response, "Allow"), "GET, HEAD, POST, OPTIONS");
  response = world.call({Method::patch, "/" + test::token('a'), {}, "", {}});
  EXPECT_EQ(test::header(response, "Allow"), "POST, OPTIONS");
}

TEST(Router, ALiteralPathIsNoParameter) {
  World world;
  const auto answer = world.call({Method::delete_, "/management/users/password", {}, "", {}});
  EXPECT_EQ(answer.status, 405) << "the path is not a user's id";
  EXPECT_EQ(test::header(answer, "Allow"), "POST, OPTIONS");
}

TEST(Router, ErrorsOfTheOauthRoutesAreThoseOfTheirStandard) {
  test::WorldSettings settings;
  settings.limits.public_requests_per_second = 1;
  settings.limits.burst = 1;
  World world(settings);
  const auto error_of = [](const Response& response) {
    EXPECT_EQ(response.content_type, "application/json; charset=utf-8");
    EXPECT_EQ(test::header(response, "Cache-Control"), "no-store");
    const auto body = nlohmann::json::parse(response.body);
    EXPECT_TRUE(body.contains("error_description") && body.contains("traceId")) << body;
    return std::pair(response.status, body.value("error", ""));
  };
  const auto wrong_method = world.call({Method::delete_, "/new/auth/oauth2/token", {}, "", {}});
  EXPECT_EQ(error_of(wrong_method), std::pair(405, std::string("invalid_request")));
  EXPECT_EQ(test::header(wrong_method, "Allow"), "POST, OPTIONS");
  EXPECT_EQ(error_of(world.call(
                {Method::post, "/auth/oauth2/authorize", {}, std::string(1 << 20, 'x'), {}})),
            std::pair(413, std::string("invalid_request")));
  (void)world.call({Method::post, "/auth/oauth2/token", {}, "", {}});
  EXPECT_EQ(error_of(world.call({Method::post, "/auth/oauth2/revoke", {}, "", {}})),
            std::pair(429, std::string("temporarily_unavailable")));
  // The HTTP server asks for the shape of its own refusals, for any method.
  for (const auto method : {Method::get, Method::put}) {
    Request head;
    head.method = method;
    head.path = "/auth/oauth2/authorize";
    EXPECT_EQ(world.router->body_rule(head).error_shape, ErrorShape::oauth);
    head.path = "/inject/" + test::token('a');
    EXPECT_EQ(world.router->body_rule(head).error_shape, ErrorShape::problem);
    head.path = "";
    EXPECT_EQ(world.router->body_rule(head).error_shape, ErrorShape::problem);
  }
}

TEST(Router, HeadIsServedWhereGetIs) {
  World world;
  const auto path = "/" + test::token('a') + "/outputs";
  const HeaderList query{{"userId", "u"}, {"sessionId", "s"}};
  EXPECT_EQ(world.call({Method::head, path, {}, "", query}).status, 200);
  EXPECT_EQ(world.call({Method::head, "/v2.0/endpoint/inject", {}, "", {}}).status, 405);
}

TEST(Router, PreflightIsAnsweredOnAnyPath) {
  World world;
  auto response = world.call({Method::options, "/v2.0/endpoint/inject", {}, "", {}});
  EXPECT_EQ(response.status, 204);
  EXPECT_EQ(test::header(response, "Access-Control-Allow-Methods"), "POST, OPTIONS");
  EXPECT_NE(test::header(response, "Access-Control-Allow-Headers").find("X-API-Key"),
            std::string::npos);
  EXPECT_FALSE(test::header(response, "Access-Control-Max-Age").empty());
  EXPECT_EQ(world.call({Method::options, "/unknown", {}, "", {}}).status, 204);
  EXPECT_EQ(world.call({Method::options, "*", {}, "", {}}).status, 204);
}

Request head_of(const std::string& path, const std::string& authorization = {}) {
  Request head;
  head.method = Method::post;
  head.path = path;
  if (!authorization.empty()) head.headers.emplace_back("authorization", authorization);
  return head;
}

TEST(Router, AnImportWithoutCredentialsIsNotRead) {
  World world;
  const auto import = [&](const std::string& authorization) {
    return world.router->body_rule(head_of("/management/import", authorization));
  };
  EXPECT_FALSE(import("").wanted);
  EXPECT_FALSE(import("Bearer abc").wanted);
  EXPECT_FALSE(import("Basic !").wanted);
  EXPECT_TRUE(import(test::basic("admin@acme.example", "wrong")).wanted)
      << "the password is verified later";
  EXPECT_TRUE(world.router->body_rule(head_of("/v2.0/endpoint/inject")).wanted);
  // Without its body the request gets the same answer.
  EXPECT_EQ(world.call({Method::post, "/management/import", {}, "", {}}).status, 401);
}

TEST(Router, AnImportOfAUserWhoMayImportNowhereIsNotRead) {
  World world;
  const auto wanted = [&](std::string_view email) {
    EXPECT_LT(world.manage(Method::get, "/management/apikeys", nullptr, {}, email).status, 404);
    return world.router->body_rule(head_of("/management/import", world.sign_in(email))).wanted;
  };
  EXPECT_FALSE(wanted("tom@acme.example"));
  EXPECT_TRUE(wanted("admin@acme.example"));
}

TEST(Router, TheSenderOfAnImportIsKnownOnceItsPasswordWasVerified) {
  World world;
  const auto sender = [&](const std::string& authorization) {
    return world.router->body_rule(head_of("/management/import", authorization)).sender;
  };
  const auto right = world.sign_in("admin@acme.example");
  EXPECT_EQ(sender(right), Sender::stranger);
  ASSERT_EQ(world.manage(Method::get, "/management/status").status, 200);
  EXPECT_EQ(sender(right), Sender::known);
  EXPECT_EQ(sender(test::basic("admin@acme.example", "wrong")), Sender::stranger);
  world.steady += Authenticator::basic_lifetime;
  EXPECT_EQ(sender(right), Sender::stranger);
}

TEST(Router, AnImportMayBeLargerThanOtherBodies) {
  World world;
  const auto usual = world.options.api.max_body_bytes;
  EXPECT_EQ(world.router->body_rule(head_of("/v2.0/endpoint/inject")).max_body, usual);
  EXPECT_EQ(world.router->body_rule(head_of("/unknown")).max_body, usual);
  EXPECT_GE(world.router->body_rule(head_of("/new/management/import")).max_body, 16U << 20);
  const auto response =
      world.call({Method::post, "/v2.0/endpoint/inject", {}, std::string(usual + 1, ' '), {}});
  EXPECT_EQ(response.status, 413);
}

TEST(Router, AddressesAndKeysAreLimitedApart) {
  test::WorldSettings settings;
  settings.limits.requests_per_second = 1;
  settings.limits.public_requests_per_second = 1;
  settings.limits.burst = 2;
  World world(settings);
  for (int i = 0; i < 2; ++i) EXPECT_EQ(world.inject(test::message()).status, 200);
  const auto refused = world.inject(test::message());
  EXPECT_EQ(refused.status, 429);
  EXPECT_TRUE(test::header(refused, "Retry-After").ends_with("GMT"));
  // Guesses count for the address and not for any key.
  for (int i = 0; i < 2; ++i) {
    EXPECT_EQ(world.call({Method::post, "/v2.0/endpoint/inject", {}, "", {}}).status, 401);
  }
  EXPECT_EQ(world.call({Method::post, "/v2.0/endpoint/inject", {}, "", {}}).status, 429);
  world.steady += std::chrono::seconds(1);
  EXPECT_EQ(world.inject(test::message()).status, 200);
}

// The count of requests, out of `count`, with another answer than 429.
int answered(World& world, const test::Sent& sent, int count) {
  int answers = 0;
  for (int i = 0; i < count; ++i) answers += world.call(sent).status != 429 ? 1 : 0;
  return answers;
}

test::Sent from(std::string peer, std::string body = "{}") {
  return {Method::post, "/" + test::token('a'), {}, std::move(body), {}, std::move(peer)};
}

TEST(Router, AddressesOfOneNetworkAreOne) {
  test::WorldSettings settings;
  settings.limits.public_requests_per_second = 1;
  settings.limits.burst = 4;
  World world(settings);
  EXPECT_EQ(answered(world, from("2001:db8::1"), 2), 2);
  EXPECT_EQ(answered(world, from("2001:db8::ffff:2"), 4), 2);
  EXPECT_EQ(answered(world, from("2001:db8:0:1::1"), 4), 4) << "another /64";
  EXPECT_EQ(answered(world, from("192.0.2.1"), 4), 4);
  EXPECT_EQ(answered(world, from("192.0.2.2"), 4), 4);
}

TEST(Router, TheBytesOfStrangersCount) {
  test::WorldSettings settings;
  settings.limits.public_requests_per_second = 1;
  settings.limits.burst = 10;
  World world(settings);
  EXPECT_EQ(answered(world, from("192.0.2.1", std::string(std::size_t{20} << 10, ' ')), 10), 2);
  EXPECT_EQ(answered(world, from("192.0.2.2"), 10), 10);
}

TEST(Router, ManagementIsLimitedLikeTheRest) {
  test::WorldSettings settings;
  settings.limits.requests_per_second = 1;
  settings.limits.public_requests_per_second = 1;
  settings.limits.burst = 2;
  World world(settings);
  const auto sent = [&](const std::string& authorization) {
    return test::Sent{
        Method::get, "/management/apikeys", {{"authorization", authorization}}, "", {}};
  };
  EXPECT_EQ(answered(world, sent(test::basic("admin@acme.example", "wrong")), 4), 2);
  world.steady += std::chrono::seconds(10);
  EXPECT_EQ(answered(world, sent(world.sign_in("admin@acme.example")), 4), 2)
      << "the user's bucket";
}

TEST(Router, AWrongPasswordCostsItsBytesAndARightOneDoesNot) {
  test::WorldSettings settings;
  settings.limits.public_requests_per_second = 1;
  settings.limits.burst = 4;
  World world(settings);
  const auto sent = [&](const std::string& authorization) {
    return test::Sent{Method::post,
                      "/management/apikeys",
                      {{"authorization", authorization}},
                      std::string(std::size_t{40} << 10, ' '),
                      {}};
  };
  EXPECT_EQ(answered(world, sent(test::basic("admin@acme.example", "wrong")), 4), 1);
  world.steady += std::chrono::seconds(4);
  EXPECT_EQ(answered(world, sent(test::basic("admin@acme.example", "wrong")), 1), 0)
      << "the address has a debt";
  world.steady += std::chrono::seconds(100);
  EXPECT_EQ(answered(world, sent(world.sign_in("admin@acme.example")), 4), 4);
}

TEST(Router, AnEncodedSlashIsNoSlash) {
  World world;
  for (const char* path : {"/management%2fstatus", "/management%2Fstatus",
                           "/new%2Fmanagement/status", "/management%252fstatus"}) {
    EXPECT_EQ(world.call({Method::get, path, {}, "", {}}).status, 404) << path;
  }
  EXPECT_EQ(world.call({Method::get, "/%6danagement/status", {}, "", {}}).status, 401);
}

TEST(Router, ManagementLeadsToTheConsole) {
  World world;
  for (const char* base : {"", "/new"}) {
    auto response = world.call({Method::get, std::string(base) + "/management", {}, "", {}});
    EXPECT_EQ(response.status, 302);
    EXPECT_EQ(test::header(response, "Location"), "management/console");
    response = world.call({Method::get, std::string(base) + "/management/", {}, "", {}});
    EXPECT_EQ(response.status, 302);
    EXPECT_EQ(test::header(response, "Location"), "console");
  }
}

}  // namespace
}  // namespace conversed::api
