// The whole way of a request, from sockets to operations and back, while clients connect, pipeline,
// half-close and reset at random. A run prints its seed. CONVERSED_TEST_SEED repeats a run.
#include <gtest/gtest.h>

#include <cstdlib>
#include <iostream>
#include <random>
#include <string>
#include <thread>
#include <vector>

#include "tests/unit/api/api_world.h"
#include "tests/unit/api/test_server.h"

namespace conversed::api {
namespace {

using test::token;
using test::World;

constexpr int client_threads = 6;
constexpr int connections_a_thread = 60;

// A request and the known part of its answer.
struct Exchange {
  std::string bytes;
  std::string trace_id;  // "": the server may refuse the request before it reads its header
  int status = 0;
  enum class Kind : std::uint8_t {
    plain,
    head,    // the answer has no body, whatever its length says
    pooled,  // may also answer that the pool is full
    last,    // ends its connection
  } kind = Kind::plain;
};

class Client {
 public:
  Client(std::uint16_t port, std::string key, unsigned seed)
      : port_(port), key_(std::move(key)), random_(seed) {}

  void run() {
    for (int i = 0; i < connections_a_thread; ++i) {
      switch (below(4)) {
        case 0:
          abort_somewhere();
          break;
        default:
          talk();
      }
    }
  }

  [[nodiscard]] int answered() const { return answered_; }

 private:
  std::size_t below(std::size_t limit) { return random_() % limit; }
  bool chance() { return below(2) == 0; }

  Exchange request(const std::string& line, const std::string& headers, const std::string& body,
                   int status, Exchange::Kind kind = Exchange::Kind::plain) {
    Exchange made{.bytes = {}, .trace_id = {}, .status = status, .kind = kind};
    for (int i = 0; i < 32; ++i) made.trace_id += "123456789abcdef"[below(15)];
    made.bytes = line + " HTTP/1.1\r\nHost: a\r\ntraceparent: 00-" + made.trace_id +
                 "-00f067aa0ba902b7-01\r\n" + headers;
    if (!body.empty()) made.bytes += "Content-Length: " + std::to_string(body.size()) + "\r\n";
    made.bytes += "\r\n" + body;
    return made;
  }

  Exchange any_request() {
    using enum Exchange::Kind;
    const std::string key = "X-API-Key: " + key_ + "\r\n";
    const std::string inject = "POST /v2.0/endpoint/inject";
    const std::string message = test::message().dump();
    const std::string outputs = "/" + token('a') + "/outputs?userId=u&sessionId=s";
    switch (below(12)) {
      case 0:
        return request(inject, key, message, 200);
      case 1: {
        auto chunked = request(inject, key + "Transfer-Encoding: chunked\r\n", "", 200);
        char size[16];
        std::snprintf(size, sizeof size, "%zx", message.size());
        chunked.bytes += std::string(size) + "\r\n" + message + "\r\n0\r\nX-End: 1\r\n\r\n";
        return chunked;
      }
      case 2:
        return request(inject, "", message, 401);
      case 3:
        return request(inject, key, "{", 400);
      case 4:
        return request("GET /nothing", "", "", 404);
      case 5:
        return request("DELETE /v2.0/endpoint/inject", "", "", 405);
      case 6:
        return request("OPTIONS /v2.0/tasks", "Origin: https://b.example\r\n", "", 204);
      case 7:
        return request("HEAD " + outputs, "", "", 200, head);
      case 8:
        return request("GET " + outputs, "", "", 200);
      case 9:
        return request("GET /new/v2.0/tasks?limit=3", key, "", 200, pooled);
      case 10:
        return request("GET /v2.0/organisations/chunkcount", key, "", 200, pooled);
      default:
        return request("POST /auth/oauth2/token", "", "grant_type=password&client_id=x", 401);
    }
  }

  // A request that ends its connection.
  Exchange last_request() {
    switch (below(3)) {
      case 0:
        return {"GET / HTTP/1.1\r\n\r\n", "", 400, Exchange::Kind::last};
      case 1:
        return {"POST / HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n", "",
                400, Exchange::Kind::last};
      default:
        return request("POST /auth/oauth2/token", "Content-Length: 99999999\r\n", "", 413,
                       Exchange::Kind::last);
    }
  }

  std::vector<Exchange> conversation() {
    std::vector<Exchange> exchanges;
    const std::size_t count = 1 + below(8);
    for (std::size_t i = 0; i < count; ++i) exchanges.push_back(any_request());
    if (below(4) == 0) exchanges.push_back(last_request());
    return exchanges;
  }

  // False if the connection broke.
  bool send_in_pieces(test::RawClient& client, std::string_view bytes) {
    while (!bytes.empty()) {
      const auto piece = chance() ? bytes.size() : 1 + below(bytes.size());
      if (!client.send(bytes.substr(0, piece))) return false;
      bytes.remove_prefix(piece);
    }
    return true;
  }

  // Expects an answer to every request, in order.
  void talk() {
    test::RawClient client(port_);
    ASSERT_TRUE(client.connected());
    const auto exchanges = conversation();
    std::string bytes;
    for (const auto& each : exchanges) bytes += each.bytes;
    ASSERT_TRUE(send_in_pieces(client, bytes));
    const bool refused = exchanges.back().kind == Exchange::Kind::last;
    const bool half_closes = chance();
    if (half_closes) client.half_close();
    for (const auto& each : exchanges) expect_answer(client, each);
    if (half_closes || refused) {
      EXPECT_TRUE(client.read_end());
    }
  }

  void expect_answer(test::RawClient& client, const Exchange& exchange) {
    const auto answer = client.read_answer(exchange.kind == Exchange::Kind::head);
    ASSERT_TRUE(answer) << exchange.bytes;
    ++answered_;
    const bool full = exchange.kind == Exchange::Kind::pooled && answer->status == 503;
    if (!full) {
      EXPECT_EQ(answer->status, exchange.status) << exchange.bytes << answer->body;
    }
    if (!exchange.trace_id.empty()) {
      EXPECT_EQ(answer->header("x-trace-id"), exchange.trace_id) << "another request's answer";
    }
    if (answer->status == 413) {
      EXPECT_NE(answer->body.find(R"("error":"invalid_request")"), std::string::npos);
    }
  }

  // Resets the connection during its requests, during its answers, or during a wait for outputs
  // that never come.
  void abort_somewhere() {
    test::RawClient client(port_);
    ASSERT_TRUE(client.connected());
    auto exchanges = conversation();
    if (chance()) {
      exchanges.insert(
          exchanges.begin() + static_cast<std::ptrdiff_t>(below(exchanges.size())),
          request("GET /" + token('b') + "/outputs?userId=u&sessionId=s&wait=30", "", "", 200));
    }
    std::string bytes;
    for (const auto& each : exchanges) bytes += each.bytes;
    if (chance()) bytes.resize(below(bytes.size()));
    if (send_in_pieces(client, bytes) && chance() && client.readable()) {
      (void)client.read_answer(true);  // reads the head only
    }
    client.reset();
  }

  const std::uint16_t port_;
  const std::string key_;
  std::mt19937 random_;
  int answered_ = 0;
};

TEST(RandomClients, EveryRequestOfAConnectionThatStaysIsAnsweredInOrder) {
  const char* given = std::getenv("CONVERSED_TEST_SEED");
  const auto seed = given != nullptr ? static_cast<unsigned>(std::strtoul(given, nullptr, 10))
                                     : std::random_device{}();
  std::cout << "CONVERSED_TEST_SEED=" << seed << '\n';
  World world;
  HttpSettings settings;
  settings.body_rule = [&](const Request& head) { return world.router->body_rule(head); };
  test::TestServer server(std::move(settings), [&](Request&& request, Reply reply) {
    world.router->handle(std::move(request), std::move(reply));
  });
  std::vector<Client> clients;
  for (unsigned i = 0; i < client_threads; ++i) {
    clients.emplace_back(server.port(), world.key_of("ann@acme.example"), seed + i);
  }
  {
    std::vector<std::jthread> threads;
    for (auto& client : clients) threads.emplace_back([&client] { client.run(); });
  }
  int answered = 0;
  for (const auto& client : clients) answered += client.answered();
  EXPECT_GT(answered, client_threads * connections_a_thread);
  // Ends the polls of clients that are gone.
  world.watch.stop();
  EXPECT_TRUE(server->drain(std::chrono::seconds(60))) << "connections are left";
  server->stop();
  EXPECT_EQ(server.defects(), 0) << server.last_defect();
}

}  // namespace
}  // namespace conversed::api
