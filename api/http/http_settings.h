// The settings of the HTTP layer.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/http/body_budget.h"
#include "api/http/http.h"
#include "config/address.h"
#include "store/model/clock.h"
#include "store/model/trace.h"
#include "store/runtime/heartbeat.h"

namespace conversed::api {

// Takes a request and its Reply. Runs on the server's threads, for different connections at the
// same time, so it must not block. If it throws, the request gets 500 and `on_defect` is called.
using Handler = std::function<void(Request&&, Reply)>;

// The number of answers for each status that occurred, ordered by status.
using AnswerCounts = std::vector<std::pair<int, std::uint64_t>>;

// How to read a request's body. Decided when its head is complete.
struct BodyRule {
  std::size_t max_body = 0;          // bytes; a larger body gets 413
  Sender sender = Sender::stranger;  // `known`: its credentials were verified
  bool wanted = true;  // false: the body is not read, and the connection ends after the answer
  ErrorShape error_shape = ErrorShape::problem;  // for errors that the server itself answers
};
// `head` is the request without its body, `peer` and `trace_id`, or the part that was read. Runs on
// the server's threads under a connection's lock, so it may read memory only.
using BodyRuleFor = std::function<BodyRule(const Request& head)>;

// An answer with a status from 400 on, for the log.
struct ErrorAnswer {
  Method method = Method::get;
  std::string_view route;  // the operation's path pattern; "" if the request found none
  int status = 0;
  std::string_view reason;
  std::string_view trace_id;
};

// A request that was answered, for its trace.
struct AnsweredRequest {
  Method method = Method::get;
  std::string_view route;  // as above
  int status = 0;
  const model::Trace& trace;
  std::string_view span_id;
  std::string_view event_id;  // of the event that the request began; may be empty
  std::chrono::system_clock::time_point begun;
};

struct HttpSettings {
  std::string address = "127.0.0.1";  // an IPv4 or IPv6 address
  std::uint16_t port = 0;             // 0 picks one
  std::size_t threads = 2;            // reactor threads, at least 1
  // Proxies whose X-Forwarded-For is trusted (client_address.h).
  std::vector<config::AddressRange> trusted_proxies = {};

  std::size_t max_header = 16 * 1024;  // bytes of the header section; a larger one gets 414 or 431
  std::size_t max_body = 64 * 1024;    // bytes; a larger body gets 413
  BodyRuleFor body_rule = {};          // empty: `max_body` applies to all requests
  // Bytes of all bodies above `max_body` together, until they are handled. A body beyond that gets
  // 503. Strangers may take half.
  std::size_t max_large_bodies = std::size_t{128} << 20;
  std::size_t max_pipelined =
      256 * 1024;  // bytes that wait behind the request in flight; more ends the connection
  std::size_t max_connections = 10'000;  // open at a time; the next ones get 503
  // Open connections of one address (IPv6: of one /64). Trusted proxies are not counted.
  std::size_t max_connections_per_address = 1000;

  std::chrono::milliseconds header_timeout{
      10'000};                                      // from a request's first byte to its empty line
  std::chrono::milliseconds body_timeout{10'000};   // from there to its last byte
  std::chrono::milliseconds idle_timeout{75'000};   // between requests, and before the first
  std::chrono::milliseconds write_timeout{10'000};  // while the client takes no byte of an answer
  std::chrono::milliseconds linger_timeout{2'000};  // for the client to close after the last answer

  bool cors = true;  // whether pages of other sites may read the answers

  // The clock of Date and Retry-After. nullptr: the system's clock. It must outlive the server and
  // every Reply. Time-outs use a steady clock instead.
  const model::Clock* clock = nullptr;
  // Receives defects (a handler that threw, a Reply that was dropped) with the trace id, from any
  // thread. It must be thread-safe. The message contains no secret and no text of the exception.
  std::function<void(std::string_view message)> on_defect = nullptr;

  // Receives each error answer before it is sent, from any thread. It must be thread-safe and
  // quick. May be empty.
  std::function<void(const ErrorAnswer& answer)> on_error = nullptr;

  // Receives each answer of an operation before it is sent, as `on_error`. May be empty.
  std::function<void(const AnsweredRequest& answered)> on_answer = nullptr;
  double sample = 1;  // of the traces that begin here (model::in_sample)

  // Each of the server's threads, except the accepting one, has a heartbeat here under `name`. It
  // must outlive the server. Null: no heartbeats.
  model::Heartbeats* heartbeats = nullptr;
  std::string name = "http";
};

}  // namespace conversed::api
