#pragma once

#include <atomic>
#include <cstddef>
#include <memory>
#include <span>

#include "api/http/http_settings.h"
#include "api/operation.h"
#include "config/settings.h"

namespace conversed::api {

struct Services;

// Finds the operation of a request and passes the request on, authenticated and within its rate.
// Built from the table once. Thread-safe.
//
// Every path is served with and without `api.base_path`. GET's operation also answers HEAD. OPTIONS
// gets the preflight's 204 on any path. Any other method without an operation gets 405 with
// `Allow`.
class Router {
 public:
  // Refuses every request except the preflight with 503 until `open`.
  Router(std::span<const Operation* const> operations, const config::ApiSettings& settings);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // From now on requests reach the operations. `services` must outlive them. Call it once.
  void open(Services& services) { services_.store(&services); }

  // Answers the request, now or later. Call it on the threads of the HTTP server. It blocks for a
  // point select at most.
  void handle(Request&& request, Reply reply) const;

  // The rule for the body of a request with this head, and the shape of errors that the HTTP server
  // itself answers. The server asks before it reads a body, and for each refused request, whose
  // head may be incomplete. A path outside the table gets `api.max_body`. A larger body of an
  // operators' operation is not read if the request has no credentials, or if its remembered user
  // holds the role nowhere. Reads memory only.
  [[nodiscard]] BodyRule body_rule(const Request& head) const;

 private:
  [[nodiscard]] std::size_t body_limit(const Operation& operation) const;

  class Table;
  const std::unique_ptr<const Table> table_;
  const std::size_t usual_body_bytes_;
  std::atomic<Services*> services_{nullptr};
};

}  // namespace conversed::api
