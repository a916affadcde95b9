#include "api/http/http_server.h"

#include <gtest/gtest.h>

#include <nlohmann/json.hpp>
#include <regex>
#include <thread>
#include <vector>

#include "tests/unit/api/test_server.h"

namespace conversed::api::test {
namespace {

const std::string posted = "POST /b?c=d%20e HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nxyz";
const std::string in_chunks =
    "PUT /c HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n"
    "3;ext=1\r\nabc\r\n2\r\nde\r\n0\r\nTrailer: t\r\n\r\n";

TEST(HttpServer, EveryAnswerCarriesTheCommonHeaders) {
  TestServer server;
  RawClient client(server.port());
  client.send(simple);
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 200);
  EXPECT_EQ(answer->body, "GET /a|");
  EXPECT_EQ(answer->header("content-type"), "text/plain; charset=utf-8");
  EXPECT_EQ(answer->header("access-control-allow-origin"), "*");
  EXPECT_NE(answer->header("access-control-expose-headers").find("X-Inject-Id"), std::string::npos);
  EXPECT_TRUE(std::regex_match(answer->header("x-trace-id"), std::regex("[0-9a-f]{32}")));
  EXPECT_EQ(answer->header("traceparent").substr(3, 32), answer->header("x-trace-id"));
  EXPECT_TRUE(
      std::regex_match(answer->header("date"), std::regex(".{3}, \\d\\d .{3} \\d{4} .* GMT")));
  EXPECT_EQ(answer->header("connection"), "");
}

TEST(HttpServer, TraceOfTheCallerIsContinued) {
  TestServer server;
  RawClient client(server.port());
  const std::string id = "4bf92f3577b34da6a3ce929d0e0e4736";
  client.send("GET / HTTP/1.1\r\nHost: x\r\ntraceparent: 00-" + id +
              "-00f067aa0ba902b7-01\r\n\r\n");
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header("x-trace-id"), id);
  EXPECT_EQ(answer->header("traceparent").substr(0, 36), "00-" + id + "-");
  EXPECT_EQ(answer->header("traceparent").substr(52), "-01");
}

TEST(HttpServer, InvalidTraceparentIsIgnored) {
  TestServer server;
  RawClient client(server.port());
  const std::string id = "4bf92f3577b34da6a3ce929d0e0e4736";
  for (const auto* const end : {"-0000000000000000-01", "-00f067aa0ba902b7-01-more", "-x"}) {
    client.send("GET / HTTP/1.1\r\nHost: x\r\ntraceparent: 00-" + id + end + "\r\n\r\n");
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 200);
    EXPECT_NE(answer->header("x-trace-id"), id);
  }
}

TEST(HttpServer, PipelinedRequestsAreAnsweredInOrderHoweverTheyAreSplit) {
  TestServer server;
  const std::string all = simple + posted + in_chunks + simple;
  for (std::size_t split = 1; split < all.size(); ++split) {
    RawClient client(server.port());
    client.send(std::string_view(all).substr(0, split));
    client.send(std::string_view(all).substr(split));
    for (const auto* body : {"GET /a|", "POST /b?c=d e|xyz", "PUT /c|abcde", "GET /a|"}) {
      const auto answer = client.read_answer();
      ASSERT_TRUE(answer) << "split at " << split;
      EXPECT_EQ(answer->status, 200);
      EXPECT_EQ(answer->body, body) << "split at " << split;
    }
  }
}

TEST(HttpServer, BytesThatComeOneByOneAreARequest) {
  TestServer server;
  RawClient client(server.port());
  for (const char c : simple + in_chunks) client.send({&c, 1});
  EXPECT_EQ(client.read_answer()->body, "GET /a|");
  EXPECT_EQ(client.read_answer()->body, "PUT /c|abcde");
}

TEST(HttpServer, AnswersFromOtherThreadsKeepTheOrderOfPipelinedRequests) {
  Parked parked;
  TestServer server({}, parked.handler());
  RawClient client(server.port());
  std::string all;
  for (int i = 0; i < 50; ++i) {
    all += "GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n";
  }
  client.send(all);
  std::jthread answering([&] {
    for (int i = 0; i < 50; ++i) {
      auto [request, reply] = parked.next();
      EXPECT_EQ(parked.size(), 0U) << "a connection has one request in flight";
      reply.text(200, describe(request));
    }
  });
  for (int i = 0; i < 50; ++i) {
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->body, "GET /" + std::to_string(i) + "|");
  }
}

TEST(HttpServer, RequestsThatArriveDuringAnAnswerKeepTheirOrder) {
  Parked parked;
  TestServer server({}, parked.handler());
  RawClient client(server.port());
  constexpr int count = 3000;
  std::jthread answering([&](const std::stop_token& stop) {
    while (auto next = parked.next(stop)) next->second.text(200, describe(next->first));
  });
  std::jthread sending([&] {
    for (int i = 0; i < count; ++i) {
      client.send("GET /" + std::to_string(i) + " HTTP/1.1\r\nHost: x\r\n\r\n");
    }
  });
  for (int i = 0; i < count; ++i) {
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    ASSERT_EQ(answer->body, "GET /" + std::to_string(i) + "|");
  }
}

TEST(HttpServer, HeadGetsTheLengthWithoutTheBody) {
  TestServer server;
  RawClient client(server.port());
  client.send("HEAD /a HTTP/1.1\r\nHost: x\r\n\r\n" + simple);
  const auto head = client.read_answer(true);
  ASSERT_TRUE(head);
  EXPECT_EQ(head->header("content-length"), "8");  // "HEAD /a|"
  EXPECT_EQ(client.read_answer()->body, "GET /a|");
}

TEST(HttpServer, NoContentHasNoLength) {
  TestServer server({}, [](Request&&, Reply reply) {
    reply.send({.status = 204, .content_type = {}, .headers = {{"Allow", "GET"}}, .body = {}});
  });
  RawClient client(server.port());
  client.send(simple + simple);
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 204);
  EXPECT_EQ(answer->header("allow"), "GET");
  EXPECT_EQ(answer->headers.count("content-length"), 0U);
  EXPECT_EQ(client.read_answer()->status, 204);
}

TEST(HttpServer, HeaderValuesCannotWriteHeadersOfTheirOwn) {
  TestServer server({}, [](Request&&, Reply reply) {
    reply.send({.status = 200, .content_type = {}, .headers = {{"X", "a\r\nY: b"}}, .body = {}});
  });
  RawClient client(server.port());
  client.send(simple);
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header("x"), "a  Y: b");
  EXPECT_EQ(answer->headers.count("y"), 0U);
}

TEST(HttpServer, ContinueComesBeforeTheBodyIsSent) {
  TestServer server;
  RawClient client(server.port());
  client.send("POST /a HTTP/1.1\r\nHost: x\r\nExpect: 100-continue\r\nContent-Length: 2\r\n\r\n");
  EXPECT_EQ(client.read_answer()->status, 100);
  client.send("hi");
  EXPECT_EQ(client.read_answer()->body, "POST /a|hi");
}

TEST(HttpServer, ConnectionCloseClosesAfterTheAnswer) {
  TestServer server;
  RawClient client(server.port());
  client.send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n" + simple);
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->header("connection"), "close");
  EXPECT_TRUE(client.read_end());
}

TEST(HttpServer, Http10ClosesUnlessAskedToStay) {
  TestServer server;
  RawClient leaving(server.port());
  leaving.send("GET /a HTTP/1.0\r\n\r\n");
  EXPECT_EQ(leaving.read_answer()->header("connection"), "close");
  EXPECT_TRUE(leaving.read_end());

  RawClient staying(server.port());
  staying.send("GET /a HTTP/1.0\r\nConnection: keep-alive\r\n\r\n");
  EXPECT_EQ(staying.read_answer()->header("connection"), "keep-alive");
  staying.send(simple);
  EXPECT_EQ(staying.read_answer()->status, 200);
}

TEST(HttpServer, RefusalIsAProblemAndEndsTheConnection) {
  TestServer server;
  RawClient client(server.port());
  client.send("POST /x/y?z HTTP/1.1\r\nHost: x\r\nContent-Length: -1\r\n\r\n");
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 400);
  EXPECT_EQ(answer->header("content-type"), "application/problem+json");
  EXPECT_EQ(answer->header("access-control-allow-origin"), "*");
  EXPECT_EQ(answer->header("connection"), "close");
  const auto body = nlohmann::json::parse(answer->body);
  EXPECT_EQ(body["title"], "Bad Request Error");
  EXPECT_EQ(body["instance"], "/x/y");
  EXPECT_EQ(body["traceId"], answer->header("x-trace-id"));
  EXPECT_TRUE(client.read_end());
}

TEST(HttpServer, RequestsBeforeAMalformedOneAreAnswered) {
  TestServer server;
  RawClient client(server.port());
  client.send(simple + posted + "NONSENSE\r\n\r\n" + simple);
  EXPECT_EQ(client.read_answer()->status, 200);
  EXPECT_EQ(client.read_answer()->status, 200);
  EXPECT_EQ(client.read_answer()->status, 400);
  EXPECT_TRUE(client.read_end());
}

TEST(HttpServer, AnExceptionOfAHandlerIsA500) {
  TestServer server({}, [](Request&& request, Reply) {
    if (request.path == "/int") throw 42;
    throw std::runtime_error("secret text");
  });
  RawClient client(server.port());
  client.send("GET /int HTTP/1.1\r\nHost: x\r\n\r\n" + simple);
  for (int i = 0; i < 2; ++i) {
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_EQ(answer->status, 500);
    EXPECT_EQ(answer->body.find("secret"), std::string::npos);
    EXPECT_EQ(nlohmann::json::parse(answer->body)["type"], "Internal Server Error");
  }
  EXPECT_GE(server.defects(), 2);
}

TEST(HttpServer, ItsOwnErrorsHaveTheShapeOfTheirRoute) {
  HttpSettings settings;
  settings.body_rule = [](const Request& head) {
    const bool oauth = head.path == "/token";
    return BodyRule{.max_body = 10, .error_shape = oauth ? ErrorShape::oauth : ErrorShape::problem};
  };
  TestServer server(std::move(settings),
                    [](Request&&, Reply reply) { const Reply dropped = std::move(reply); });
  const auto ask = [&](const std::string& path, const std::string& rest) {
    RawClient client(server.port());
    client.send("POST " + path + " HTTP/1.1\r\nHost: x\r\n" + rest);
    const auto answer = client.read_answer();
    EXPECT_TRUE(answer);
    const auto body = nlohmann::json::parse(answer ? answer->body : "{}");
    return std::pair(answer ? answer->status : 0, body.value("error", "none"));
  };
  const std::pair<std::string, std::pair<int, std::string>> rows[] = {
      {"\r\n", {500, "server_error"}},  // the handler drops the Reply
      {"Content-Length: 11\r\n\r\n", {413, "invalid_request"}},
      {"Transfer-Encoding: chunked\r\n\r\nb\r\n", {413, "invalid_request"}},
      {"Transfer-Encoding: chunked\r\n\r\nx", {400, "invalid_request"}},
      {"A name: x\r\n\r\n", {400, "invalid_request"}},  // the head is incomplete
  };
  for (const auto& [rest, expected] : rows) {
    EXPECT_EQ(ask("/token", rest), expected) << rest;
    EXPECT_EQ(ask("/other", rest), std::pair(expected.first, std::string("none"))) << rest;
  }
}

TEST(HttpServer, AReplyThatIsDroppedIsA500) {
  TestServer server({}, [](Request&&, Reply reply) { const Reply dropped = std::move(reply); });
  RawClient client(server.port());
  client.send(simple);
  const auto answer = client.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 500);
  EXPECT_EQ(server.defects(), 1);
  EXPECT_NE(server.last_defect().find(answer->header("x-trace-id")), std::string::npos);
}

TEST(HttpServer, OnlyTheFirstAnswerCounts) {
  TestServer server({}, [](Request&&, Reply reply) {
    reply.text(200, "first");
    EXPECT_FALSE(reply);
    reply.text(200, "second");
    reply.fail({model::Errc::internal, ""});
  });
  RawClient client(server.port());
  client.send(simple + simple);
  EXPECT_EQ(client.read_answer()->body, "first");
  EXPECT_EQ(client.read_answer()->body, "first");
  EXPECT_FALSE(client.readable());
}

TEST(HttpServer, FailAnswersWithTheErrorsStatusInTheAskedShape) {
  TestServer server({}, [](Request&& request, Reply reply) {
    if (request.path != "/a") reply.set_error_shape(ErrorShape::reduced);
    reply.fail({model::Errc::not_found, "taken"});
  });
  RawClient client(server.port());
  client.send(simple + posted);
  const auto whole = client.read_answer();
  ASSERT_TRUE(whole);
  EXPECT_EQ(whole->status, 404);
  EXPECT_EQ(nlohmann::json::parse(whole->body)["traceId"], whole->header("x-trace-id"));
  const auto reduced = client.read_answer();
  ASSERT_TRUE(reduced);
  EXPECT_EQ(nlohmann::json::parse(reduced->body).size(), 4U);
}

TEST(HttpServer, AClientThatHalfClosesStillGetsItsLateAnswers) {
  Parked parked;
  TestServer server({}, parked.handler());
  RawClient client(server.port());
  client.send(simple + posted);
  client.half_close();
  auto [first, first_reply] = parked.next();
  first_reply.text(200, "one");
  EXPECT_EQ(client.read_answer()->body, "one");
  auto [second, second_reply] = parked.next();
  second_reply.text(200, "two");
  EXPECT_EQ(client.read_answer()->body, "two");
  EXPECT_TRUE(client.read_end());
}

// The idle time-out is longer than the client waits.
TEST(HttpServer, ARequestThatEndsItsConnectionAtOnceSeesTheServerClose) {
  TestServer server;
  for (int i = 0; i < 50; ++i) {
    RawClient client(server.port());
    client.send(simple);
    client.half_close();
    ASSERT_TRUE(client.read_answer());
    ASSERT_TRUE(client.read_end()) << "connection " << i;
  }
}

TEST(HttpServer, ClientsThatAbortDoNotDisturbOthers) {
  Parked parked;
  TestServer server({}, parked.handler());
  std::jthread answering([&] {
    for (int i = 0; i < 200; ++i) {
      auto [request, reply] = parked.next();
      reply.text(200, describe(request));
    }
  });
  for (int i = 0; i < 200; ++i) {
    RawClient client(server.port());
    client.send(i % 2 == 0 ? simple : posted);
    if (i % 3 == 0) {
      client.close();
    } else if (i % 3 == 1) {
      client.reset();
    } else {
      EXPECT_EQ(client.read_answer()->status, 200);
    }
  }
  answering.join();
  EXPECT_TRUE(server->drain(std::chrono::seconds(10)));
  EXPECT_EQ(server->connections(), 0U);
  EXPECT_EQ(server.defects(), 0);
}

TEST(HttpServer, ManyConnectionsAreServedFromOtherThreads) {
  Parked parked;
  TestServer server({}, parked.handler());
  constexpr int connections = 256;
  constexpr int rounds = 4;
  std::vector<std::unique_ptr<RawClient>> clients;
  for (int i = 0; i < connections; ++i)
    clients.push_back(std::make_unique<RawClient>(server.port()));
  std::vector<std::jthread> answering;
  for (int t = 0; t < 2; ++t) {
    answering.emplace_back([&] {
      for (int i = 0; i < connections * rounds / 2; ++i) {
        auto [request, reply] = parked.next();
        reply.text(200, describe(request));
      }
    });
  }
  for (int round = 0; round < rounds; ++round) {
    for (int i = 0; i < connections; ++i) {
      clients[static_cast<std::size_t>(i)]->send("GET /" + std::to_string(i) +
                                                 " HTTP/1.1\r\nHost: x\r\n\r\n");
    }
    for (int i = 0; i < connections; ++i) {
      const auto answer = clients[static_cast<std::size_t>(i)]->read_answer();
      ASSERT_TRUE(answer);
      EXPECT_EQ(answer->body, "GET /" + std::to_string(i) + "|");
    }
  }
}

TEST(HttpServer, DrainFinishesWhatIsInFlightAndClosesTheRest) {
  Parked parked;
  TestServer server({}, parked.handler());
  RawClient idle(server.port());
  idle.send(simple);  // the answer shows that the server knows the connection
  parked.next().second.text(200, "first");
  ASSERT_TRUE(idle.read_answer());
  RawClient busy(server.port());
  busy.send(simple);
  auto [request, reply] = parked.next();
  EXPECT_FALSE(server->drain(std::chrono::milliseconds(1)));
  EXPECT_TRUE(idle.read_end());
  RawClient late(server.port());
  const auto refused = late.read_answer();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  EXPECT_TRUE(late.read_end());
  late.close();
  reply.text(200, "done");
  const auto answer = busy.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->body, "done");
  EXPECT_EQ(answer->header("connection"), "close");
  EXPECT_TRUE(busy.read_end());
  busy.close();
  EXPECT_TRUE(server->drain(std::chrono::seconds(10)));
}

TEST(HttpServer, StopEndsWhatIsInFlightAndLateAnswersGoNowhere) {
  Parked parked;
  std::optional<std::pair<Request, Reply>> late;
  {
    TestServer server({}, parked.handler());
    RawClient client(server.port());
    client.send(simple + simple);
    late.emplace(parked.next());
    server->stop();
    EXPECT_TRUE(client.read_end());
    server->stop();
  }
  late->second.text(200, "too late");
}

TEST(HttpServer, CountsItsAnswersByStatus) {
  TestServer server({}, [](Request&& request, Reply reply) {
    if (request.path == "/drop") return;
    reply.text(request.path == "/missing" ? 404 : status::ok, "x");
  });
  RawClient client(server.port());
  client.send(
      "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /missing HTTP/1.1\r\nHost: x\r\n\r\n"
      "GET /a HTTP/1.1\r\nHost: x\r\n\r\nGET /drop HTTP/1.1\r\nHost: x\r\n\r\nnonsense\r\n\r\n");
  for (int i = 0; i < 5; ++i) ASSERT_TRUE(client.read_answer());
  EXPECT_EQ(server->answer_counts(), (AnswerCounts{{200, 2}, {400, 1}, {404, 1}, {500, 1}}));
}

TEST(HttpServer, OpenRefusesATakenPortABadAddressAndNoThreads) {
  auto never_started = HttpServer::open({}, echo);
  ASSERT_TRUE(never_started);
  const auto taken = HttpServer::open({.port = (*never_started)->port()}, echo);
  ASSERT_FALSE(taken);
  EXPECT_EQ(taken.error().code, model::Errc::unavailable);
  EXPECT_FALSE(HttpServer::open({.address = "no such address"}, echo));
  EXPECT_FALSE(HttpServer::open({.threads = 0}, echo));
}

TEST(HttpServer, SpeaksIpv6) {
  auto server = HttpServer::open({.address = "::1"}, echo);
  ASSERT_TRUE(server) << server.error().message;
  EXPECT_NE((*server)->port(), 0);
}

}  // namespace
}  // namespace conversed::api::test
