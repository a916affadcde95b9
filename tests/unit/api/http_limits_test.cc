// Limits and time-outs of the HTTP server, each seen from a client's side.
#include <gtest/gtest.h>

#include <atomic>
#include <chrono>
#include <memory>
#include <string>
#include <vector>

#include "tests/unit/api/test_server.h"

namespace conversed::api::test {
namespace {

using std::chrono::milliseconds;

const std::string simple = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

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
  RawClient clock(server.port());  // its idle time-out is the passing of time
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
  // drain() waits for the connections to end, and only the write time-out ends these.
  EXPECT_TRUE(server->drain(std::chrono::seconds(20)));
  EXPECT_LT(client.read_all().size(), large.size());
}

TEST(HttpLimits, PipelinesThatOutgrowTheirLimitAreServedAsFarAsHeld) {
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
  // This side stays open: the server does not wait for it for ever.
  EXPECT_TRUE(server->drain(std::chrono::seconds(10)));
}

}  // namespace
}  // namespace conversed::api::test
