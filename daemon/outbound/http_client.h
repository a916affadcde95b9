#pragma once

#include <sys/epoll.h>

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

#include "daemon/outbound/egress.h"
#include "daemon/service/service.h"
#include "store/runtime/heartbeat.h"
#include "store/runtime/live.h"

namespace conversed::daemon {

class HttpConnection;
struct HttpConnectionSetup;
class HttpTransfer;

struct HttpRequest {
  std::string method;  // a token of RFC 9110, upper case
  std::string url;     // http or https, without user, password, `.` and `..`
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};  // at most what fits in memory; sent if not empty, or for POST, PUT and PATCH
  std::chrono::milliseconds timeout{10'000};    // of the whole exchange, from its begin
  std::size_t max_response_bytes = 256 * 1024;  // of the body
  // If set, only the status matters. After the headers the client waits this long for the body, so
  // that it can reuse the connection. The outcome is the status in any case.
  std::optional<std::chrono::milliseconds> wait_for_body{};
};

enum class HttpError : std::uint8_t {
  none,            // the answer came, with any status
  invalid,         // the method, URL or a header is invalid: nothing was sent
  timeout,         // the outcome at the other end is unknown
  refused,         // name not found, no connection, TLS not trusted, or the connection broke
  egress_refused,  // the policy closes the address: nothing was sent
  too_large,  // the answer is above `max_response_bytes`, or its headers and trailers above 64 KiB
  aborted,    // the client stopped or stood still; the outcome at the other end is unknown
};

struct HttpOutcome {
  HttpError error = HttpError::none;
  int status = 0;                                   // of the answer; 0 without an answer
  std::string body;                                 // of the answer; empty on an error
  std::optional<std::chrono::seconds> retry_after;  // the header's, above zero, at most ten years
  std::chrono::microseconds took{};                 // from begin to end

  [[nodiscard]] bool success() const {
    return error == HttpError::none && status >= 200 && status < 300;
  }
};

// The end of an exchange, as the predicate of a sentence about the other end: "answered 503", "did
// not answer in time".
[[nodiscard]] std::string describe(const HttpOutcome& outcome);

struct HttpClientSettings {
  std::string name = "http";     // of the Service
  std::size_t connections = 32;  // the most that its users have in flight. Twice as many, and at
                                 // least 64, are kept for reuse.
  model::Heartbeats* heartbeats = nullptr;  // of its thread; must outlive it. Null: none
  bool own_thread = true;                   // false: its only user's thread calls `run_once`
  // A PEM file of the certificate authorities to trust. Empty: those of the system.
  std::string authorities{};
};

// Sends HTTP/1.1 requests from one thread, its own or its user's: a request in flight costs memory
// only. Its users bound their number. Connections are reused. Certificates are checked; proxies of
// the environment are not used. A steady exchange is one write and one read of a kept connection.
//
// Invariants:
// - Each connection asks Egress about its resolved address. Redirects are not followed.
//   Kept by: HttpClientTest.ClosedAddressIsNeverConnectedTo,
//   HttpClientTest.RedirectIsAnAnswerAndNotFollowed.
// - An exchange whose time passed while the thread stood still, as in a suspended process, is
//   aborted: its answer may have come.
//   Kept by: StandstillTest.TimeThatPassedBetweenTwoWaitsIsNoTimeout.
// - No URL, header or body is logged.
//   Kept by: CallerTest.EachFailureHasItsCodeAndNoSecretInItsMessage.
//
// `send` is thread-safe. Callbacks run on the client's thread or inside `stop`, one after the
// other, exactly once for every request, including refused and aborted ones. They must not block.
// They may call `send`.
class HttpClient final : public Service {
 public:
  using Time = std::chrono::steady_clock::time_point;
  using Callback = std::function<void(HttpOutcome)>;
  struct Exchange {
    HttpRequest request;
    Callback callback;
  };

  HttpClient(HttpClientSettings settings, Egress egress);
  ~HttpClient() override;

  [[nodiscard]] model::Result<void> start() override;  // `unavailable`: no descriptors left
  // Ends all requests with `aborted`. After it, and before `start`, requests are
  // aborted inside the call to `send`.
  void stop() override;

  void send(HttpRequest request, Callback callback);
  // Takes many requests under one lock. They begin in order.
  void send(std::vector<Exchange> exchanges);

  // For a client without its own thread: begins the requests that were sent, waits for the network
  // until `until`, the next `wake` or the next heartbeat, and ends exchanges. `send` does not end
  // the wait. For its user's one thread, between `start` and `stop`.
  void run_once(Time until);
  // Ends the current wait, else the next one. Does nothing while `run_once` ends exchanges behind
  // its wait: then its caller looks for work by itself. Thread-safe, between `start` and `stop`.
  void wake();
  [[nodiscard]] bool has_thread() const { return settings_.own_thread; }

  // Replaces the policy. Connections of the former policy serve no further requests. Thread-safe.
  // Kept by: HttpClientTest.AConnectionOfAFormerPolicyServesNoFurtherRequest.
  void set_egress(Egress egress);

  // Requests that have begun and not ended, for metrics.
  [[nodiscard]] std::size_t in_flight() const { return in_flight_.load(std::memory_order_relaxed); }

 private:
  struct Watched {
    std::uint32_t events = 0;              // registered with epoll
    HttpConnection* connection = nullptr;  // null: libcurl connects, and handles the events
  };

  struct Standstill {
    Time begin;
    Time end;
  };

  // libcurl's callbacks; `self` is this.
  static int on_socket(void* easy, int fd, int what, void* self, void* unused);
  static int on_timer(void* multi, long timeout_ms, void* self);
  static int on_close(void* self, int fd);

  void close_all();
  void run();
  [[nodiscard]] std::vector<Exchange> take_inbox();
  void begin(Exchange exchange);
  void connect(HttpTransfer& transfer);
  [[nodiscard]] std::unique_ptr<HttpConnection> take_idle(std::string_view origin);
  void drop_idle(const HttpConnection& connection);
  void drop_old_connections();
  [[nodiscard]] std::size_t wait_for_events(Time until);
  void handle_events(std::size_t count);
  [[nodiscard]] bool look_once();
  void handle(int fd, std::uint32_t events);
  void run_due_timer();
  void take_over_connections();
  void start_sending(HttpTransfer& transfer);
  void send_rest(HttpTransfer& transfer);
  void receive(HttpTransfer& transfer);
  void break_off(HttpTransfer& transfer);
  [[nodiscard]] bool stood_still(const HttpTransfer& transfer) const;
  void end_due();
  void finish(HttpTransfer& transfer);
  void end(HttpTransfer& transfer, HttpError error);
  void end(HttpTransfer& transfer, HttpOutcome outcome);
  void abort_all();
  [[nodiscard]] Watched& socket_of(int fd);
  void watch(int fd, std::uint32_t events);

  const HttpClientSettings settings_;
  const model::Live<std::shared_ptr<const Egress>> egress_;

  std::mutex mutex_;
  std::vector<Exchange> inbox_;  // under the mutex, like the next one
  bool accepting_ = false;
  std::atomic<bool> stopping_{false};
  std::atomic<bool> returning_{false};  // `run_once` has waited, and is about to return
  std::atomic<std::size_t> in_flight_{0};
  std::thread thread_;

  // Used by the thread alone.
  int epoll_ = -1;
  int wake_ = -1;
  std::unique_ptr<HttpConnectionSetup> setup_;
  std::vector<std::unique_ptr<HttpTransfer>> active_;
  std::vector<std::unique_ptr<HttpTransfer>> pool_;
  std::vector<std::unique_ptr<HttpConnection>> idle_;  // the oldest first
  std::size_t max_idle_ = 0;
  std::optional<Time> timer_;        // libcurl's
  Time first_due_ = Time::max();     // no exchange is due before
  Time woken_{};                     // the end of the last wait
  Standstill standstill_{};          // the last long one
  std::vector<Watched> sockets_;     // by descriptor
  std::vector<char> received_;       // a read's bytes
  std::vector<epoll_event> events_;  // of the last wait
};

}  // namespace conversed::daemon
