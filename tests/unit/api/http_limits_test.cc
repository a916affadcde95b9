// Limits and time-outs of the HTTP server, seen by a client.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "tests/unit/api/test_server.h"

namespace conversed::api::test {
namespace {

using std::chrono::milliseconds;

TEST(HttpLimits, ABodyOverTheLimitIsRefusedBeforeItIsRead) {
  TestServer server({.max_body = 1000});
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
  EXPECT_EQ(client.read_answer()->status, 413);
  EXPECT_TRUE(client.read_end());
}

TEST(HttpLimits, AClientThatSendsItsWholeBodyFirstSeesThe413) {
  TestServer server({.max_body = 1000});
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 5000000\r\n\r\n");
  EXPECT_TRUE(client.send(std::string(5'000'000, 'x')));
  EXPECT_EQ(client.read_answer()->status, 413);
  EXPECT_TRUE(client.read_end());
}

TEST(HttpLimits, ABodyAtTheLimitIsAccepted) {
  TestServer server({.max_body = 1000});
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 1000\r\n\r\n" +
              std::string(1000, 'x'));
  EXPECT_EQ(client.read_answer()->status, 200);
}

// "/large" takes larger bodies than other paths, "/secret" takes no body. The header "known" marks
// a known sender.
BodyRule rule_of_tests(const Request& head) {
  if (head.path == "/secret") return {.max_body = 1'000'000, .wanted = false};
  return {.max_body = head.path == "/large" ? std::size_t{60'000} : std::size_t{1'000},
          .sender = head.header("known") ? Sender::known : Sender::stranger};
}

std::string large_request(std::size_t bytes, const std::string& fields = {}) {
  return "POST /large HTTP/1.1\r\nHost: x\r\n" + fields +
         "Content-Length: " + std::to_string(bytes) + "\r\n\r\n" + std::string(bytes, 'x');
}

TEST(HttpLimits, ABodyThatIsNotWantedIsNotReadAndEndsItsConnection) {
  for (const char* framing : {"Content-Length: 900000\r\n", "Transfer-Encoding: chunked\r\n",
                              "Content-Length: 900000\r\nExpect: 100-continue\r\n"}) {
    TestServer server({.max_body = 1'000, .body_rule = rule_of_tests});
    RawClient client(server.port());
    // The server answers before any byte of the body.
    client.send("POST /secret HTTP/1.1\r\nHost: x\r\n" + std::string(framing) + "\r\n");
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer) << framing;
    EXPECT_EQ(answer->status, 200);
    EXPECT_EQ(answer->body, "POST /secret|");
    EXPECT_EQ(answer->header("connection"), "close");
    EXPECT_TRUE(client.read_end());
  }
}

TEST(HttpLimits, AClientThatSendsAnUnwantedBodyFirstStillSeesTheAnswer) {
  TestServer server({.max_body = 1'000, .body_rule = rule_of_tests});
  RawClient client(server.port());
  client.send("POST /secret HTTP/1.1\r\nHost: x\r\nContent-Length: 900000\r\n\r\n");
  EXPECT_TRUE(client.send(std::string(900'000, 'x')));
  EXPECT_EQ(client.read_answer()->body, "POST /secret|");
  EXPECT_TRUE(client.read_end());
}

TEST(HttpLimits, WhereBodiesAreUnwantedARequestWithoutOneKeepsItsConnection) {
  TestServer server({.max_body = 1'000, .body_rule = rule_of_tests});
  RawClient client(server.port());
  client.send("GET /secret HTTP/1.1\r\nHost: x\r\n\r\n" + simple);
  EXPECT_EQ(client.read_answer()->body, "GET /secret|");
  EXPECT_EQ(client.read_answer()->body, "GET /a|");
}

TEST(HttpLimits, LargeBodiesOfStrangersShareHalfOfTheirMemory) {
  Parked parked;
  TestServer server({.max_body = 1'000, .body_rule = rule_of_tests, .max_large_bodies = 100'000},
                    parked.handler());
  RawClient first(server.port());
  first.send(large_request(40'000));
  auto held = std::make_optional(parked.next());  // read, but not handled yet
  EXPECT_EQ(held->first.body.size(), 40'000U);

  RawClient second(server.port());
  second.send(large_request(40'000));
  const auto refused = second.read_answer();
  ASSERT_TRUE(refused);
  EXPECT_EQ(refused->status, 503);
  EXPECT_FALSE(refused->header("retry-after").empty());
  EXPECT_TRUE(second.read_end());
  RawClient chunked(server.port());
  chunked.send("POST /large HTTP/1.1\r\nHost: x\r\nTransfer-Encoding: chunked\r\n\r\n9000\r\n" +
               std::string(0x9000, 'x'));
  EXPECT_EQ(chunked.read_answer()->status, 503);

  // Small bodies use none of this memory. The other half is for known senders.
  RawClient small(server.port());
  small.send(large_request(1'000));
  auto small_request = parked.next();
  small_request.second.text(status::ok, "small");
  EXPECT_EQ(small.read_answer()->body, "small");
  RawClient known(server.port());
  known.send(large_request(40'000, "Known: yes\r\n"));
  auto known_request = std::make_optional(parked.next());
  known_request->second.text(status::ok, "known");
  EXPECT_EQ(known.read_answer()->body, "known");
  known_request.reset();

  // The request gives the memory of its body back at its end, even if the connection continues.
  held->second.text(status::ok, "first");
  EXPECT_EQ(first.read_answer()->body, "first");
  held.reset();
  RawClient third(server.port());
  third.send(large_request(40'000));
  auto last = parked.next();
  last.second.text(status::ok, "third");
  EXPECT_EQ(third.read_answer()->body, "third");
}

TEST(BodyBudget, RefusesBeyondItsLimitAndReusesReleasedMemory) {
  const auto budget = std::make_shared<BodyBudget>(100'000);
  {
    BodyShare stranger(budget, Sender::stranger);
    std::string body;
    EXPECT_TRUE(stranger.make_room(body, 20'000, 45'000));
    EXPECT_EQ(budget->taken(), 40'000U) << "twice the need, so that the body can grow";
    EXPECT_TRUE(stranger.make_room(body, 40'000, 45'000)) << "the share has this room already";
    EXPECT_TRUE(stranger.make_room(body, 41'000, 45'000));
    EXPECT_EQ(budget->taken(), 45'000U) << "at most the limit of the body";
    BodyShare other(budget, Sender::stranger);
    std::string others;
    EXPECT_FALSE(other.make_room(others, 6'000, 6'000));
    EXPECT_TRUE(other.make_room(others, 4'000, 10'000))
        << "the need fits, although its double does not";
    BodyShare known(budget, Sender::known);
    std::string third;
    EXPECT_TRUE(known.make_room(third, 51'000, 51'000));
    EXPECT_FALSE(known.make_room(third, 52'000, 52'000));
    EXPECT_EQ(budget->taken(), 100'000U);
  }
  EXPECT_EQ(budget->taken(), 0U);
}

TEST(BodyBudget, CountsTheReservedBytesOfABody) {
  const auto budget = std::make_shared<BodyBudget>(100'000);
  BodyShare share(budget, Sender::known);
  std::string body(30'000, 'x');
  const auto before = body;
  ASSERT_TRUE(share.make_room(body, 31'000, 31'000));
  EXPECT_EQ(body, before);
  EXPECT_EQ(budget->taken(), body.capacity());
  EXPECT_EQ(body.capacity(), 31'000U) << "not doubled";
  BodyShare other(budget, Sender::known);
  std::string spacious;
  spacious.reserve(50'000);
  ASSERT_TRUE(other.make_room(spacious, 10'000, 10'000));
  EXPECT_EQ(budget->taken(), body.capacity() + spacious.capacity());
  BodyShare third(budget, Sender::known);
  std::string larger;
  larger.reserve(50'000);
  EXPECT_FALSE(third.make_room(larger, 1'000, 1'000));
}

TEST(HttpLimits, AHeaderSectionOverTheLimitIs431) {
  TestServer server({.max_header = 1000});
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\nA: " + std::string(2000, 'x'));
  EXPECT_EQ(client.read_answer()->status, 431);
  EXPECT_TRUE(client.read_end());
}

TEST(HttpLimits, AHeaderThatDoesNotEndInTimeIs408) {
  TestServer server({.header_timeout = milliseconds(60)});
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost");
  EXPECT_EQ(client.read_answer()->status, 408);
  EXPECT_TRUE(client.read_end());
}

TEST(HttpLimits, ABodyThatDoesNotEndInTimeIs408) {
  TestServer server({.body_timeout = milliseconds(60)});
  RawClient client(server.port());
  client.send("POST / HTTP/1.1\r\nHost: x\r\nContent-Length: 3\r\n\r\nab");
  EXPECT_EQ(client.read_answer()->status, 408);
  EXPECT_TRUE(client.read_end());
}

TEST(HttpLimits, AnIdleConnectionIsClosedSilently) {
  TestServer server({.idle_timeout = milliseconds(60)});
  RawClient used(server.port());
  used.send(simple);
  EXPECT_EQ(used.read_answer()->status, 200);
  EXPECT_TRUE(used.read_end());
  RawClient unused(server.port());
  EXPECT_TRUE(unused.read_end());
}

TEST(HttpLimits, ASlowHandlerIsNoTimeOut) {
  Parked parked;
  TestServer server({.header_timeout = milliseconds(20),
                     .body_timeout = milliseconds(20),
                     .idle_timeout = milliseconds(20)},
                    parked.handler());
  RawClient waiting(server.port());
  waiting.send(simple);
  auto [request, reply] = parked.next();
  RawClient clock(server.port());  // this connection's idle time-out measures the time
  EXPECT_TRUE(clock.read_end());
  EXPECT_FALSE(waiting.readable());
  reply.text(200, "late");
  EXPECT_EQ(waiting.read_answer()->body, "late");
}

TEST(HttpLimits, SlowClientsDoNotDelayOthers) {
  TestServer server({.threads = 1, .header_timeout = milliseconds(60'000)});
  std::vector<std::unique_ptr<RawClient>> slow;
  for (int i = 0; i < 50; ++i) {
    slow.push_back(std::make_unique<RawClient>(server.port()));
    slow.back()->send("GET / HTTP/1.1\r\nHo");
  }
  RawClient quick(server.port());
  quick.send(simple);
  EXPECT_EQ(quick.read_answer()->status, 200);
  for (auto& client : slow) {
    EXPECT_FALSE(client->readable());
    client->send("st: x\r\n\r\n");
    EXPECT_EQ(client->read_answer()->status, 200);
  }
}

TEST(HttpLimits, ConnectionsOverTheLimitGet503) {
  TestServer server({.max_connections = 2});
  RawClient first(server.port());
  RawClient second(server.port());
  first.send(simple);
  second.send(simple);
  EXPECT_EQ(first.read_answer()->status, 200);
  EXPECT_EQ(second.read_answer()->status, 200);
  RawClient third(server.port());
  const auto answer = third.read_answer();
  ASSERT_TRUE(answer);
  EXPECT_EQ(answer->status, 503);
  EXPECT_TRUE(answer->header("retry-after").ends_with("GMT"));
  EXPECT_TRUE(third.read_end());
  first.send(simple);
  EXPECT_EQ(first.read_answer()->status, 200);
}

TEST(HttpLimits, OneAddressCanNotTakeAllConnections) {
  TestServer server({.max_connections = 10, .max_connections_per_address = 2});
  auto first = std::make_unique<RawClient>(server.port());
  RawClient second(server.port());
  for (RawClient* each : {first.get(), &second}) {
    each->send(simple);
    EXPECT_EQ(each->read_answer()->status, 200);
  }
  RawClient third(server.port());
  EXPECT_EQ(third.read_answer()->status, 429);
  EXPECT_TRUE(third.read_end());
  first.reset();
  // The server learns a moment later that the clients have closed.
  for (int status = 429; status == 429;) {
    RawClient next(server.port());
    next.send(simple);
    // The refusal can be lost: the server does not read the request, so TCP may reset the
    // connection after the answer.
    const auto answer = next.read_answer();
    status = answer ? answer->status : 429;
    EXPECT_TRUE(status == 429 || status == 200) << status;
  }
}

TEST(HttpLimits, ConnectionsOfTrustedProxiesAreNotCountedByAddress) {
  TestServer server({.trusted_proxies = {*config::AddressRange::parse("127.0.0.1")},
                     .max_connections_per_address = 1});
  RawClient first(server.port());
  RawClient second(server.port());
  for (RawClient* each : {&first, &second}) {
    each->send(simple);
    EXPECT_EQ(each->read_answer()->status, 200);
  }
}

TEST(HttpLimits, AnAnswerLargerThanTheSocketTakesArrivesWhole) {
  const std::string large(8 * 1024 * 1024, 'y');
  TestServer server({}, [&](Request&&, Reply reply) { reply.text(200, large); });
  RawClient client(server.port(), 4096);
  client.send(simple + simple);
  for (int i = 0; i < 2; ++i) {
    const auto answer = client.read_answer();
    ASSERT_TRUE(answer);
    EXPECT_TRUE(answer->body == large);
  }
}

TEST(HttpLimits, ALargeLastAnswerArrivesWholeBeforeTheEnd) {
  const std::string large(8 * 1024 * 1024, 'y');
  TestServer server({}, [&](Request&&, Reply reply) { reply.text(200, large); });
  RawClient client(server.port(), 4096);
  client.send("GET /a HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  client.half_close();
  EXPECT_TRUE(client.read_answer()->body == large);
  EXPECT_TRUE(client.read_end());
}

TEST(HttpLimits, AClientThatDoesNotReadItsAnswerIsDropped) {
  const std::string large(32 * 1024 * 1024, 'y');
  TestServer server({.write_timeout = milliseconds(60)},
                    [&](Request&&, Reply reply) { reply.text(200, large); });
  RawClient client(server.port(), 4096);
  client.send(simple);
  RawClient other(server.port(), 4096);
  other.send(simple);
  // drain() waits for the connections to end. Only the write time-out ends these.
  EXPECT_TRUE(server->drain(std::chrono::seconds(20)));
  EXPECT_LT(client.read_all().size(), large.size());
}

TEST(HttpLimits, PipelinesOverTheLimitAreAnsweredUntilA413) {
  Parked parked;
  std::atomic<bool> first{true};
  const auto park = parked.handler();
  TestServer server({.max_pipelined = 1000}, [&](Request&& request, Reply reply) {
    if (first.exchange(false)) return park(std::move(request), std::move(reply));
    echo(std::move(request), std::move(reply));
  });
  RawClient client(server.port());
  client.send(simple);
  auto [request, reply] = parked.next();
  std::string more;
  for (int i = 0; i < 10'000; ++i) more += simple;
  ASSERT_TRUE(client.send(more));
  reply.text(200, "first");
  EXPECT_EQ(client.read_answer()->body, "first");
  int answered = 0;
  std::optional<Answer> last;
  while (auto answer = client.read_answer()) {
    last = std::move(answer);
    ++answered;
  }
  ASSERT_TRUE(last);
  EXPECT_EQ(last->status, 413);
  EXPECT_LT(answered, 10'000);
}

TEST(HttpLimits, LingeringEndsWhenItsTimeIsUp) {
  TestServer server({.linger_timeout = milliseconds(60)});
  RawClient client(server.port());
  client.send("GET / HTTP/1.1\r\nHost: x\r\nConnection: close\r\n\r\n");
  EXPECT_EQ(client.read_answer()->status, 200);
  EXPECT_TRUE(client.read_end());
  // The client keeps its side open. The server stops waiting for it.
  EXPECT_TRUE(server->drain(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace conversed::api::test
