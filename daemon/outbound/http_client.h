#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/outbound/egress.h"
#include "daemon/service/service.h"
#include "store/runtime/heartbeat.h"

namespace conversed::daemon {

struct HttpRequest {
  std::string method;  // a token of RFC 9110, upper case
  std::string url;     // http or https, without user and password, `.` and `..`
  std::vector<std::pair<std::string, std::string>> headers{};
  std::string body{};  // at most what fits in memory; sent if not empty, or for POST, PUT and PATCH
  std::chrono::milliseconds timeout{10'000};    // of the whole exchange, from its begin
  std::size_t max_response_bytes = 256 * 1024;  // of the body
  // Set: only the status matters. After the headers, the client waits this long for the body, to
  // reuse the connection. The outcome is the status in any case.
  std::optional<std::chrono::milliseconds> wait_for_body{};
};

enum class HttpError : std::uint8_t {
  none,            // there is an answer, of any status
  invalid,         // no such method, URL or header: nothing was sent
  timeout,         // the outcome at the other end is unknown
  refused,         // name not found, no connection, TLS not trusted, or the connection broke
  egress_refused,  // the policy closes the address: nothing was sent
  too_large,   // the answer is above `max_response_bytes`, or its headers and trailers above 64 KiB
  overloaded,  // too many requests wait: nothing was sent
  aborted,     // the client stopped; the outcome at the other end is unknown
};

struct HttpOutcome {
  HttpError error = HttpError::none;
  int status = 0;                                   // of the answer; 0 when there is none
  std::string body;                                 // of the answer; empty on an error
  std::optional<std::chrono::seconds> retry_after;  // the header's, not negative, unbounded
  std::chrono::microseconds took{};                 // from begin to end

  [[nodiscard]] bool success() const {
    return error == HttpError::none && status >= 200 && status < 300;
  }
};

// The end of an exchange, as the predicate of a sentence about the other end: "answered 503", "did
// not answer in time".
[[nodiscard]] std::string describe(const HttpOutcome& outcome);

// Whether the two name one header field: without case (RFC 9110 §5.1).
[[nodiscard]] bool same_field(std::string_view a, std::string_view b);

struct HttpClientSettings {
  std::string name = "http";         // of the Service
  std::size_t max_in_flight = 32;    // exchanges at once; the rest waits, in order
  std::size_t max_waiting = 65'536;  // beyond it requests are `overloaded`
  std::string user_agent = "conversed";
  model::Heartbeats* heartbeats = nullptr;  // of its thread; must outlive it. Null: none
};

// Sends HTTP/1.1 requests, any number at once, from one thread: a request in flight costs memory
// only. Connections are reused. Certificates are checked; proxies of the environment are not used.
//
// Invariants:
// - Each connection asks Egress about its resolved address. Redirects are not followed.
//   Kept by: HttpClientTest.ClosedAddressIsNeverConnectedTo,
//   HttpClientTest.RedirectIsAnAnswerAndNotFollowed.
// - No URL, header or body is logged.
//   Kept by: CallerTest.EachFailureHasItsCodeAndNoSecretInItsMessage.
//
// `send` is thread-safe. Callbacks run on the client's thread, one after the other, exactly once
// for every request, also for those that are refused or aborted; they must not block. They may
// call `send`.
class HttpClient final : public Service {
 public:
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
  // Takes many under one lock; they begin in order.
  void send(std::vector<Exchange> exchanges);

  // Replaces the policy. Connections of the former policy serve no further request. Thread-safe.
  // Kept by: HttpClientTest.AConnectionOfAFormerPolicyServesNoFurtherRequest.
  void set_egress(Egress egress);

  // Requests that have begun and not ended, for metrics.
  [[nodiscard]] std::size_t in_flight() const;

 private:
  class Loop;
  std::unique_ptr<Loop> loop_;
};

}  // namespace conversed::daemon
