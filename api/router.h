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

// Finds the operation of a request and sees that it is called with what it was promised:
// authenticated, within its rate. Built from the table once; thread-safe.
//
// Every path is served with and without `api.base_path`. HEAD is answered by GET's operation;
// OPTIONS by the preflight's 204 on any path; another method by 405 with `Allow`.
class Router {
 public:
  // Until `open` every request is refused with 503, but for the preflight's.
  Router(std::span<const Operation* const> operations, const config::ApiSettings& settings);
  ~Router();
  Router(const Router&) = delete;
  Router& operator=(const Router&) = delete;

  // From now on requests reach the operations. `services` must outlive this and all requests. At
  // most once.
  void open(Services& services) { services_.store(&services); }

  // Answers the request, now or later. To be called on the threads of the HTTP server; it blocks on
  // no more than a point select.
  void handle(Request&& request, Reply reply) const;

  // What becomes of the body of a request with this head, and what errors look like that the HTTP
  // server itself answers to it: asked before a body is read, and for what is refused, when the
  // head may have no more than a path. `api.max_body` for what the table does not know. A larger
  // one is not read from somebody who shows no credentials, or who lacks the role everywhere;
  // whether those that are shown are right is told from memory only.
  [[nodiscard]] BodyRule body_rule(const Request& head) const;

 private:
  [[nodiscard]] std::size_t body_limit(const Operation& operation) const;

  class Table;
  const std::unique_ptr<const Table> table_;
  const std::size_t usual_body_bytes_;
  std::atomic<Services*> services_{nullptr};
};

}  // namespace conversed::api
