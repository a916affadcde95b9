// What the HTTP layer can be told.
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
#include "store/runtime/heartbeat.h"

namespace conversed::api {

// Takes a request and its Reply. Called on one of the server's threads, for different connections
// at the same time: it must not block. What it throws ends in a 500 for that request and in
// `on_defect`.
using Handler = std::function<void(Request&&, Reply)>;

// How many answers had each status, for those that had one; in order.
using AnswerCounts = std::vector<std::pair<int, std::uint64_t>>;

// What becomes of a request's body, decided once its head is whole.
struct BodyRule {
  std::size_t max_body = 0;          // bytes: else 413
  Sender sender = Sender::stranger;  // `known`: its credentials are known to be right
  bool wanted = true;  // false: the request is handed on without a body, its connection then ends
  ErrorShape error_shape = ErrorShape::problem;  // of errors that the server itself answers
};
// `head` is the request without its body, `peer` and `trace_id`; of one that is refused, as far as
// it was read. Called on the server's threads,
// under the lock of a connection: it may look into memory, no further.
using BodyRuleFor = std::function<BodyRule(const Request& head)>;

// An answer with a status from 400 on, for the log.
struct ErrorAnswer {
  Method method = Method::get;
  std::string_view route;  // the operation's path pattern; "" if the request found none
  int status = 0;
  std::string_view reason;
  std::string_view trace_id;
};

struct HttpSettings {
  std::string address = "127.0.0.1";  // an IPv4 or IPv6 address
  std::uint16_t port = 0;             // 0 picks one
  std::size_t threads = 2;            // reactor threads, at least 1
  // Whose X-Forwarded-For is believed (client_address.h).
  std::vector<config::AddressRange> trusted_proxies = {};

  std::size_t max_header = 16 * 1024;  // bytes of the header section: else 414 or 431
  std::size_t max_body = 64 * 1024;    // bytes: else 413
  BodyRuleFor body_rule = {};          // empty: `max_body` for all
  // Bytes of all bodies above `max_body` together, until they are handled: else 503. Strangers'
  // may take half.
  std::size_t max_large_bodies = std::size_t{128} << 20;
  std::size_t max_pipelined =
      256 * 1024;  // bytes that wait behind the request in flight: else closed
  std::size_t max_connections = 10'000;  // open at a time: the next ones get 503
  // The same of one address, IPv6 by /64; the trusted proxies' are not counted.
  std::size_t max_connections_per_address = 1000;

  std::chrono::milliseconds header_timeout{
      10'000};                                      // from a request's first byte to its empty line
  std::chrono::milliseconds body_timeout{10'000};   // from there to its last byte
  std::chrono::milliseconds idle_timeout{75'000};   // between requests, and before the first
  std::chrono::milliseconds write_timeout{10'000};  // without the client taking a byte of an answer
  std::chrono::milliseconds linger_timeout{2'000};  // for the client to close after the last answer

  bool cors = true;  // whether pages of other sites may read the answers

  // The source of Date and Retry-After; nullptr is the system's clock. Must outlive the server and
  // every Reply. Time-outs are steady and do not use it.
  const model::Clock* clock = nullptr;
  // Told about defects (a handler that threw, a Reply that was dropped), with the trace id, from
  // any thread; must be thread-safe. Nothing secret, and nothing of the exception, is in the
  // message.
  std::function<void(std::string_view message)> on_defect = nullptr;

  // Told of each error answer before it is sent, from any thread; must be thread-safe and quick.
  // May be empty.
  std::function<void(const ErrorAnswer& answer)> on_error = nullptr;

  // Where each of the server's threads, but for the one that accepts, has a heartbeat under `name`;
  // must outlive the server. Null: nobody watches.
  model::Heartbeats* heartbeats = nullptr;
  std::string name = "http";
};

}  // namespace conversed::api
