#include "daemon/outbound/http_client.h"

#include <arpa/inet.h>
#include <gtest/gtest.h>
#include <netinet/in.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <atomic>
#include <filesystem>
#include <future>
#include <memory>
#include <semaphore>
#include <string>
#include <thread>
#include <vector>

#include "tests/support/http_receiver.h"
#include "tests/support/tls_front.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using tests::HttpReceiver;

class HttpClientTest : public testing::Test {
 protected:
  void SetUp() override { use(loopback_egress()); }

  void use(Egress egress) {
    client_ = std::make_unique<HttpClient>(HttpClientSettings{}, std::move(egress));
    ASSERT_TRUE(client_->start());
  }
  std::future<HttpOutcome> send(HttpRequest request) {
    auto promise = std::make_shared<std::promise<HttpOutcome>>();
    client_->send(std::move(request),
                  [promise](HttpOutcome outcome) { promise->set_value(std::move(outcome)); });
    return promise->get_future();
  }
  HttpOutcome get(const std::string& url) { return send({.method = "GET", .url = url}).get(); }
  HttpRequest post(const std::string& path = "/") {
    return {.method = "POST", .url = receiver_.url(path), .body = "{}"};
  }

  HttpReceiver receiver_;
  std::unique_ptr<HttpClient> client_;
};

// A server that sends what a test tells it to.
class RawServer {
 public:
  RawServer() : listener_(socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0)) {
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof(address);
    timeval most{.tv_sec = 20, .tv_usec = 0};  // of `accept`, so that a failing test ends
    setsockopt(listener_, SOL_SOCKET, SO_RCVTIMEO, &most, sizeof(most));
    EXPECT_EQ(bind(listener_, reinterpret_cast<sockaddr*>(&address), size), 0);
    EXPECT_EQ(listen(listener_, SOMAXCONN), 0);
    EXPECT_EQ(getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size), 0);
    url_ = "http://127.0.0.1:" + std::to_string(ntohs(address.sin_port)) + "/";
  }
  ~RawServer() {
    for (const int connection : connections_) close(connection);
    close(listener_);
  }
  RawServer(const RawServer&) = delete;
  RawServer& operator=(const RawServer&) = delete;

  [[nodiscard]] const std::string& url() const { return url_; }
  // A new connection, whose request has begun.
  int accept_and_read() {
    connections_.push_back(accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC));
    std::array<char, 1024> bytes;
    EXPECT_GT(recv(connections_.back(), bytes.data(), bytes.size(), 0), 0);
    return connections_.back();
  }
  static void send(int connection, const std::string& bytes) {
    EXPECT_EQ(::send(connection, bytes.data(), bytes.size(), MSG_NOSIGNAL),
              static_cast<ssize_t>(bytes.size()));
  }

  std::binary_semaphore may_go_on{0};
  std::binary_semaphore has_gone_on{0};

 private:
  int listener_;
  std::vector<int> connections_;
  std::string url_;
};

TEST_F(HttpClientTest, SendsMethodHeadersAndBodyAsTheyAre) {
  const std::string body = std::string("bytes ") + '\0' + " \xff and more";
  const auto outcome = send({.method = "PUT",
                             .url = receiver_.url("/path?q=1"),
                             .headers = {{"X-Mine", "yes"}, {"X-Empty", ""}},
                             .body = body})
                           .get();
  EXPECT_TRUE(outcome.success());
  EXPECT_EQ(outcome.status, 200);
  const auto request = receiver_.requests().at(0);
  EXPECT_EQ(request.method, "PUT");
  EXPECT_EQ(request.target, "/path?q=1");
  EXPECT_EQ(request.body, body);
  EXPECT_EQ(request.headers.at("x-mine"), "yes");
  EXPECT_EQ(request.headers.at("x-empty"), "");
  EXPECT_EQ(request.headers.at("user-agent"), "conversed");
  EXPECT_FALSE(request.headers.contains("content-type")) << "the request names no content type";
  EXPECT_FALSE(request.headers.contains("expect"));
}

TEST_F(HttpClientTest, OneHandleServesAllMethodsOneAfterTheOther) {
  for (const std::string method : {"POST", "GET", "HEAD", "DELETE", "PATCH", "OPTIONS", "GET"}) {
    const auto outcome = send({.method = method, .url = receiver_.url()}).get();
    EXPECT_EQ(outcome.status, 200) << method;
    EXPECT_EQ(receiver_.requests().back().method, method);
  }
  EXPECT_EQ(receiver_.connections(), 1U) << "the connection is kept";
}

TEST_F(HttpClientTest, GivesStatusBodyAndRetryAfter) {
  receiver_.set_handler([](const auto&) {
    return HttpReceiver::Answer{.status = 503, .body = "later", .headers = {{"Retry-After", "17"}}};
  });
  const auto outcome = get(receiver_.url());
  EXPECT_EQ(outcome.error, HttpError::none);
  EXPECT_FALSE(outcome.success());
  EXPECT_EQ(outcome.status, 503);
  EXPECT_EQ(outcome.body, "later");
  EXPECT_EQ(outcome.retry_after, 17s);
}

TEST_F(HttpClientTest, RedirectIsAnAnswerAndNotFollowed) {
  receiver_.set_handler([this](const auto&) {
    return HttpReceiver::Answer{.status = 302, .headers = {{"Location", receiver_.url("/other")}}};
  });
  EXPECT_EQ(get(receiver_.url()).status, 302);
  EXPECT_EQ(receiver_.count(), 1U);
}

TEST_F(HttpClientTest, SilenceEndsAsTimeout) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; });
  auto request = post();
  request.timeout = 50ms;
  const auto outcome = send(request).get();
  EXPECT_EQ(outcome.error, HttpError::timeout);
  EXPECT_EQ(outcome.status, 0);
}

// A stopped process stands still. The upstream may have answered meanwhile.
class StandstillTest : public HttpClientTest {
 protected:
  void SetUp() override {
    receiver_.set_handler([](const auto& request) {
      const bool answers = request.target == "/answers";
      return HttpReceiver::Answer{.then = answers ? HttpReceiver::Then::answer
                                                  : HttpReceiver::Then::silence};
    });
  }
  HttpRequest silent() {
    auto request = post("/silent");
    request.timeout = 1500ms;
    return request;
  }
  static void stand_still() {
    const auto over = std::chrono::steady_clock::now() + 2s;
    while (std::chrono::steady_clock::now() < over) std::this_thread::yield();
  }
};

TEST_F(StandstillTest, TimeThatPassedInACallbackIsNoTimeout) {
  use(loopback_egress());
  auto ended = send(silent());
  client_->send(post("/answers"), [](const HttpOutcome&) { stand_still(); });
  EXPECT_EQ(ended.get().error, HttpError::aborted);
}

TEST_F(StandstillTest, TimeThatPassedBetweenTwoWaitsIsNoTimeout) {
  client_ =
      std::make_unique<HttpClient>(HttpClientSettings{.own_thread = false}, loopback_egress());
  ASSERT_TRUE(client_->start());
  auto ended = send(silent());
  client_->run_once(std::chrono::steady_clock::now());
  stand_still();
  while (ended.wait_for(0s) != std::future_status::ready) {
    client_->run_once(std::chrono::steady_clock::now() + 1s);
  }
  EXPECT_EQ(ended.get().error, HttpError::aborted);
  // The standstill was before this exchange.
  ended = send(silent());
  while (ended.wait_for(0s) != std::future_status::ready) {
    client_->run_once(std::chrono::steady_clock::now() + 1s);
  }
  EXPECT_EQ(ended.get().error, HttpError::timeout);
}

TEST_F(HttpClientTest, ClosedPortAndBrokenConnectionAreRefused) {
  auto gone = std::make_unique<HttpReceiver>();
  const auto url = gone->url();
  gone.reset();
  EXPECT_EQ(get(url).error, HttpError::refused);
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::close}; });
  EXPECT_EQ(send(post()).get().error, HttpError::refused);
}

TEST_F(HttpClientTest, TooLongAnswerIsCutOffWithItsStatus) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.body = std::string(5000, 'x')}; });
  auto request = post();
  request.max_response_bytes = 4999;
  const auto outcome = send(request).get();
  EXPECT_EQ(outcome.error, HttpError::too_large);
  EXPECT_EQ(outcome.status, 200);
  EXPECT_TRUE(outcome.body.empty());
  request.max_response_bytes = 5000;
  EXPECT_EQ(send(request).get().body.size(), 5000U);
}

// An answer whose chunked trailer, headers or preliminary answers never end.
TEST_F(HttpClientTest, HeadersAndTrailersBeyond64KiBEndTheExchange) {
  const std::string ok = "HTTP/1.1 200 OK\r\n";
  const auto many = [](const std::string& what) {
    std::string text;
    while (text.size() < 100 * 1024) text += what;
    return text;
  };
  const std::string line = "X-More: " + std::string(500, 'x') + "\r\n";
  const std::vector<std::string> answers{
      ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" + many(line),
      ok + many(line),
      many("HTTP/1.1 103 Early Hints\r\n" + line + "\r\n"),
  };
  for (const auto& answer : answers) {
    receiver_.set_handler([&](const auto&) { return HttpReceiver::Answer{.raw = answer}; });
    EXPECT_EQ(get(receiver_.url()).error, HttpError::too_large) << answer.substr(0, 60);
  }
  receiver_.set_handler([&](const auto&) {
    return HttpReceiver::Answer{.raw = ok + "Transfer-Encoding: chunked\r\n\r\n2\r\nok\r\n0\r\n" +
                                       line + "\r\n"};
  });
  const auto outcome = get(receiver_.url());
  EXPECT_TRUE(outcome.success()) << "a trailer is allowed";
  EXPECT_EQ(outcome.body, "ok");
}

TEST_F(HttpClientTest, StatusIsEnoughWhereTheBodyIsNotWaitedFor) {
  const std::vector<std::string> stalled{
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\n",
      "HTTP/1.1 200 OK\r\nContent-Length: 10\r\n\r\nhalf",
      "HTTP/1.1 100 Continue\r\n\r\nHTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n",
  };
  for (const auto& answer : stalled) {
    receiver_.set_handler([&](const auto&) { return HttpReceiver::Answer{.raw = answer}; });
    auto request = post();
    request.timeout = 1min;
    request.wait_for_body = 10ms;
    const auto outcome = send(request).get();
    EXPECT_TRUE(outcome.success()) << answer;
    EXPECT_EQ(outcome.status, 200);
  }
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.raw = "HTTP/1.1 100 Continue\r\n\r\n"}; });
  auto request = post();
  request.timeout = 50ms;
  request.wait_for_body = 10ms;
  EXPECT_EQ(send(request).get().error, HttpError::timeout) << "100 is not the final answer";
}

TEST_F(HttpClientTest, ConnectionIsKeptWhereTheBodyIsNotWaitedFor) {
  receiver_.set_handler([](const auto&) { return HttpReceiver::Answer{.body = "thanks"}; });
  for (int i = 0; i < 3; ++i) {
    auto request = post();
    request.wait_for_body = 1min;
    EXPECT_TRUE(send(request).get().success());
  }
  EXPECT_EQ(receiver_.connections(), 1U);
}

TEST_F(HttpClientTest, ClosedAddressIsNeverConnectedTo) {
  use(*Egress::create({}));
  EXPECT_EQ(send(post()).get().error, HttpError::egress_refused);
  const auto port = std::to_string(receiver_.port());
  for (const std::string host : {"localhost", "0177.0.0.1", "2130706433", "0x7f.1", "127.1",
                                 "[::ffff:127.0.0.1]", "[::1]", "0.0.0.0"}) {
    const auto outcome = get("http://" + host + ":" + port + "/");
    EXPECT_EQ(outcome.error, HttpError::egress_refused) << host;
  }
  EXPECT_EQ(receiver_.connections(), 0U);
}

TEST_F(HttpClientTest, HostNameInTheListOpensIt) {
  use(*Egress::create({"localhost"}));
  const auto port = std::to_string(receiver_.port());
  EXPECT_EQ(get("http://localhost:" + port + "/").status, 200);
  EXPECT_EQ(get("http://127.0.0.1:" + port + "/").error, HttpError::egress_refused)
      << "the kept connection belongs to the name";
}

TEST_F(HttpClientTest, AConnectionOfAFormerPolicyServesNoFurtherRequest) {
  EXPECT_EQ(get(receiver_.url()).status, 200);
  client_->set_egress(*Egress::create({}));
  EXPECT_EQ(get(receiver_.url()).error, HttpError::egress_refused)
      << "the kept connection is not used";
  client_->set_egress(loopback_egress());
  EXPECT_EQ(get(receiver_.url()).status, 200);
  EXPECT_EQ(receiver_.connections(), 2U);
}

TEST_F(HttpClientTest, MalformedRequestIsInvalid) {
  const auto url = receiver_.url();
  const auto port = std::to_string(receiver_.port());
  std::vector<HttpRequest> requests{
      {.method = "GE T", .url = url},
      {.method = "", .url = url},
      {.method = "CONNECT", .url = url},
      {.method = "GET", .url = "ftp://127.0.0.1/"},
      {.method = "GET", .url = "file:///etc/passwd"},
      {.method = "GET", .url = "http://"},
      {.method = "GET", .url = "http://user:pw@127.0.0.1:" + port + "/"},
      {.method = "GET", .url = url + "a b"},
      {.method = "GET", .url = "http://%31.example/"},
      {.method = "GET", .url = url + "a/../b"},
      {.method = "GET", .url = url + "a/%2e%2E"},
      {.method = "GET", .url = url + std::string("\0", 1)},
      {.method = "GET", .url = url, .headers = {{"X", "a\r\nY: b"}}},
      {.method = "GET", .url = url, .headers = {{"X Y", "a"}}},
      {.method = "GET", .url = url, .headers = {{"Content-Length", "5"}}},
      {.method = "GET", .url = url, .headers = {{"transfer-encoding", "chunked"}}},
  };
  for (auto& request : requests) {
    const auto text = request.method + " " + request.url;
    EXPECT_EQ(send(std::move(request)).get().error, HttpError::invalid) << text;
  }
  EXPECT_EQ(receiver_.count(), 0U);
  EXPECT_EQ(get(url).status, 200) << "the handle still works";
}

TEST_F(HttpClientTest, EnvironmentSetsNoProxy) {
  setenv("http_proxy", "http://127.0.0.1:1", 1);
  EXPECT_EQ(get(receiver_.url()).status, 200);
  unsetenv("http_proxy");
}

TEST_F(HttpClientTest, StopAbortsEachPendingRequestOnce) {
  receiver_.set_handler(
      [](const auto&) { return HttpReceiver::Answer{.then = HttpReceiver::Then::silence}; });
  std::atomic<int> aborted = 0;
  for (int i = 0; i < 10; ++i) {
    client_->send(post(), [&](const HttpOutcome& outcome) {
      EXPECT_EQ(outcome.error, HttpError::aborted);
      ++aborted;
      client_->send(post(), [&](const HttpOutcome& next) {
        EXPECT_EQ(next.error, HttpError::aborted);
        ++aborted;
      });
    });
  }
  ASSERT_TRUE(receiver_.wait_for(2));
  client_->stop();
  EXPECT_EQ(aborted.load(), 20);
  client_->stop();
  EXPECT_EQ(send(post()).get().error, HttpError::aborted);
}

TEST_F(HttpClientTest, StopWithoutStartIsTolerated) {
  HttpClient client({}, loopback_egress());
  client.stop();
  client.stop();
}

TEST_F(HttpClientTest, ManyThreadsSendAndEachGetsItsAnswer) {
  receiver_.set_handler(
      [](const auto& request) { return HttpReceiver::Answer{.body = request.body}; });
  std::vector<std::jthread> threads;
  std::atomic<int> right = 0;
  for (int t = 0; t < 4; ++t) {
    threads.emplace_back([&, t] {
      std::vector<std::pair<std::string, std::future<HttpOutcome>>> sent;
      for (int i = 0; i < 100; ++i) {
        auto request = post();
        request.body = std::to_string(t) + ":" + std::to_string(i);
        auto body = request.body;
        sent.emplace_back(std::move(body), send(std::move(request)));
      }
      for (auto& [body, outcome] : sent) right += outcome.get().body == body;
    });
  }
  threads.clear();
  EXPECT_EQ(right.load(), 400);
}

// The other end may close a kept connection while the next request is on its way.
TEST_F(HttpClientTest, ARequestOnAKeptConnectionThatClosesIsRepeatedOnce) {
  std::atomic<int> closes = 1;
  receiver_.set_handler([&](const auto& request) {
    const bool closing = request.target == "/second" && closes-- > 0;
    return HttpReceiver::Answer{.then = closing ? HttpReceiver::Then::close
                                                : HttpReceiver::Then::answer};
  });
  ASSERT_TRUE(send(post("/first")).get().success());
  EXPECT_TRUE(send(post("/second")).get().success());
  EXPECT_EQ(receiver_.count(), 3U);
  EXPECT_EQ(receiver_.connections(), 2U);
  closes = 9;
  EXPECT_EQ(send(post("/second")).get().error, HttpError::refused);
  EXPECT_EQ(receiver_.count(), 5U) << "once on the kept connection, once on a new one";
}

TEST_F(HttpClientTest, ABrokenAnswerIsNotRepeated) {
  ASSERT_TRUE(send(post()).get().success());
  receiver_.set_handler([](const auto&) {
    return HttpReceiver::Answer{.then = HttpReceiver::Then::close, .raw = "HTTP/1.1 20"};
  });
  EXPECT_EQ(send(post()).get().error, HttpError::refused);
  EXPECT_EQ(receiver_.count(), 2U);
}

TEST_F(HttpClientTest, BytesBehindAnAnswerReachNoOtherExchange) {
  const std::string ok = "HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n";
  receiver_.set_handler(
      [&](const auto&) { return HttpReceiver::Answer{.raw = ok + "ok" + ok + "no"}; });
  EXPECT_EQ(get(receiver_.url()).body, "ok");
  EXPECT_EQ(get(receiver_.url()).body, "ok");
  EXPECT_EQ(receiver_.connections(), 2U);
}

TEST_F(HttpClientTest, BytesThatComeBetweenTwoExchangesReachNoneOfThem) {
  client_ =
      std::make_unique<HttpClient>(HttpClientSettings{.own_thread = false}, loopback_egress());
  ASSERT_TRUE(client_->start());
  RawServer server;
  const auto end_of = [&](std::future<HttpOutcome> ended) {
    while (ended.wait_for(0s) != std::future_status::ready) {
      client_->run_once(std::chrono::steady_clock::now() + 10ms);
    }
    return ended.get();
  };
  std::jthread other([&] {
    const int first = server.accept_and_read();
    RawServer::send(first, "HTTP/1.1 200 OK\r\nContent-Length: 0\r\n\r\n");
    server.may_go_on.acquire();
    RawServer::send(first, "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nstale");
    server.has_gone_on.release();
    RawServer::send(server.accept_and_read(), "HTTP/1.1 200 OK\r\nContent-Length: 5\r\n\r\nfresh");
  });
  EXPECT_EQ(end_of(send({.method = "GET", .url = server.url()})).status, 200);
  server.may_go_on.release();
  server.has_gone_on.acquire();
  EXPECT_EQ(end_of(send({.method = "GET", .url = server.url()})).body, "fresh");
}

TEST_F(HttpClientTest, ALargeRequestAndALargeAnswerPassInParts) {
  receiver_.set_handler(
      [](const auto& request) { return HttpReceiver::Answer{.body = request.body}; });
  std::string body(std::size_t{8} * 1024 * 1024, 'x');
  for (std::size_t i = 0; i < body.size(); i += 1000) body[i] = static_cast<char>('a' + i % 26);
  auto request = post();
  request.body = body;
  request.max_response_bytes = body.size();
  EXPECT_EQ(send(request).get().body, body);
  EXPECT_TRUE(send(post()).get().success());
  EXPECT_EQ(receiver_.connections(), 1U);
}

// The server answers at once, and reads no more.
TEST_F(HttpClientTest, AnAnswerBeforeTheEndOfTheRequestCounts) {
  RawServer server;
  auto outcome = send({.method = "POST",
                       .url = server.url(),
                       .body = std::string(std::size_t{32} * 1024 * 1024, 'x')});
  RawServer::send(server.accept_and_read(), "HTTP/1.1 413 Too Large\r\nContent-Length: 0\r\n\r\n");
  EXPECT_EQ(outcome.get().status, 413);
}

TEST_F(HttpClientTest, TheRequestNamesItsHostAndItsTarget) {
  const auto host = "127.0.0.1:" + std::to_string(receiver_.port());
  const std::vector<std::pair<std::string, std::string>> targets{
      {"", "/"}, {"?a=b", "/?a=b"}, {"/a?b#c", "/a?b"}, {"#c", "/"}, {"/a/", "/a/"}};
  for (const auto& [end, target] : targets) {
    ASSERT_EQ(get("http://" + host + end).status, 200) << end;
    EXPECT_EQ(receiver_.requests().back().target, target);
    EXPECT_EQ(receiver_.requests().back().headers.at("host"), host);
    EXPECT_EQ(receiver_.requests().back().headers.at("accept"), "*/*");
  }
  ASSERT_TRUE(send({.method = "GET",
                    .url = receiver_.url(),
                    .headers = {{"host", "other.example"}, {"User-Agent", "mine"}}})
                  .get()
                  .success());
  EXPECT_EQ(receiver_.requests().back().headers.at("host"), "other.example");
  EXPECT_EQ(receiver_.requests().back().headers.at("user-agent"), "mine");
}

TEST_F(HttpClientTest, RetryAfterMayBeADate) {
  std::string date;
  receiver_.set_handler([&](const auto&) {
    return HttpReceiver::Answer{.status = 503, .headers = {{"Retry-After", date}}};
  });
  const auto wait_of = [&](const std::string& text) {
    date = text;
    return get(receiver_.url()).retry_after;
  };
  EXPECT_GT(wait_of("Fri, 01 Jan 2200 00:00:00 GMT"), 24h);
  EXPECT_EQ(wait_of("99999999999999999999"), std::chrono::years(10));
  for (const auto* none : {"Fri, 01 Jan 1999 00:00:00 GMT", "-5", "0", "soon", ""}) {
    EXPECT_EQ(wait_of(none), std::nullopt) << none;
  }
}

class HttpsTest : public HttpClientTest {
 protected:
  void trust(const std::filesystem::path& authorities) {
    client_ = std::make_unique<HttpClient>(HttpClientSettings{.authorities = authorities.string()},
                                           loopback_egress());
    ASSERT_TRUE(client_->start());
  }
  std::string url(const std::string& host = "localhost") {
    return "https://" + host + ":" + std::to_string(front_.port()) + "/";
  }

  tests::TlsFront front_{receiver_.port()};
};

TEST_F(HttpsTest, ExchangesShareATrustedConnection) {
  trust(front_.certificate());
  receiver_.set_handler(
      [](const auto& request) { return HttpReceiver::Answer{.body = request.body}; });
  for (const std::size_t size : {2U, 200'000U, 2'000'000U, 2U}) {
    const std::string body(size, 'x');
    const auto outcome =
        send({.method = "POST", .url = url(), .body = body, .max_response_bytes = body.size()})
            .get();
    EXPECT_EQ(outcome.error, HttpError::none);
    EXPECT_EQ(outcome.body, body);
  }
  EXPECT_EQ(front_.handshakes(), 1);
}

TEST_F(HttpsTest, ASecondConnectionResumesTheSession) {
  trust(front_.certificate());
  receiver_.set_handler([](const auto&) {
    return HttpReceiver::Answer{.headers = {{"Connection", "close"}}};
  });
  for (int i = 0; i < 2; ++i) EXPECT_TRUE(get(url()).success());
  EXPECT_EQ(front_.handshakes(), 2);
  EXPECT_EQ(front_.resumed(), 1);
}

TEST_F(HttpsTest, ForeignCertificatesAreRefused) {
  trust(front_.certificate());
  ASSERT_TRUE(get(url()).success());
  EXPECT_EQ(get(url("127.0.0.1")).error, HttpError::refused) << "it names localhost only";
  use(loopback_egress());
  EXPECT_EQ(get(url()).error, HttpError::refused) << "its authority is not trusted";
  EXPECT_EQ(receiver_.count(), 1U);
}

TEST_F(HttpClientTest, ConnectionThatEndedWhileIdleIsReplaced) {
  auto own = std::make_unique<HttpReceiver>();
  const auto port = own->port();
  const auto url = own->url();
  ASSERT_EQ(get(url).status, 200);
  own = nullptr;  // closes the kept connection
  own = std::make_unique<HttpReceiver>(HttpReceiver::Handler{}, HttpReceiver::Recording::on, port);
  EXPECT_EQ(get(url).status, 200);
}

}  // namespace
}  // namespace conversed::daemon
