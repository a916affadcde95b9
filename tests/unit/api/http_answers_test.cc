// The common parts of all answers, and the reports of error answers to the log.
#include <gtest/gtest.h>

#include <mutex>
#include <string>
#include <vector>

#include "tests/unit/api/test_server.h"

namespace conversed::api::test {
namespace {

TEST(HttpServer, AnswersAreNeitherStoredNorSniffedUnlessTheySayHow) {
  TestServer server({}, [](Request&& request, Reply reply) {
    Response response{.status = 200, .body = "x"};
    if (request.path == "/kept") response.headers.emplace_back("Cache-Control", "max-age=60");
    reply.send(std::move(response));
  });
  RawClient client(server.port());
  const HeaderList cases{{"GET / HTTP/1.1", "no-store"},
                         {"GET /kept HTTP/1.1", "max-age=60"},
                         {"GET / HTTP/3.0", "no-store"}};  // the server itself refuses this request
  for (const auto& [line, caching] : cases) {
    client.send(line + "\r\nHost: x\r\n\r\n");
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->header("cache-control"), caching) << line;
    EXPECT_EQ(answer->header("x-content-type-options"), "nosniff");
    EXPECT_EQ(answer->header("access-control-allow-origin"), "*");
  }
}

TEST(HttpServer, WithoutCorsNoPageMayReadTheAnswers) {
  TestServer server({.cors = false});
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\n\r\n");
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header("access-control-allow-origin"), "");
  EXPECT_EQ(answer->header("access-control-expose-headers"), "");
}

TEST(HttpServer, EachErrorAnswerIsToldWithItsRouteAndTrace) {
  std::mutex mutex;
  std::vector<std::string> told;
  HttpSettings settings;
  settings.on_error = [&](const ErrorAnswer& answer) {
    const std::lock_guard lock(mutex);
    told.push_back(std::string(method_name(answer.method)) + ' ' + std::string(answer.route) + ' ' +
                   std::to_string(answer.status) + ' ' + std::string(answer.reason) + ' ' +
                   std::string(answer.trace_id));
  };
  const std::string trace(32, 'a');
  {
    TestServer server(std::move(settings), [](Request&& request, Reply reply) {
      reply.set_route("/{name}");
      if (request.path == "/good") return reply.text(200, "x");
      if (request.path == "/away")
        return reply.fail({model::Errc::unavailable, "the store is away"});
      reply.set_error_shape(ErrorShape::reduced);
      reply.fail({model::Errc::not_found, "no " + request.path});
    });
    RawClient client(server.port());
    for (const char* path : {"/good", "/secret?x=y", "/away"}) {
      client.send("GET " + std::string(path) + " HTTP/1.1\r\nHost: x\r\ntraceparent: 00-" + trace +
                  "-bbbbbbbbbbbbbbbb-00\r\n\r\n");
      ASSERT_TRUE(client.read_answer());
    }
    client.send("GET / HTTP/3.0\r\n\r\n");
    ASSERT_TRUE(client.read_answer());
  }
  ASSERT_EQ(told.size(), 3U);
  EXPECT_EQ(told[0], "GET /{name} 404 not_found " + trace);
  EXPECT_EQ(told[1], "GET /{name} 503 the store is away " + trace);
  EXPECT_TRUE(told[2].starts_with("GET  505 ")) << told[2];
}

}  // namespace
}  // namespace conversed::api::test
