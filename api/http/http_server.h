// The HTTP front end: a listener and its reactor threads, strict about what is HTTP.
#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>

#include "api/http/http_settings.h"
#include "store/model/result.h"

namespace Pistache::Tcp {
class Listener;
}

namespace conversed::api {

class Keeper;

// Serves HTTP/1.1 and HTTP/1.0 in clear (TLS belongs to a proxy in front). Every request gets
// exactly one answer, in order; malformed ones, time-outs and limits are answered here and never
// reach the handler. See HttpSettings for the limits.
//
// Thread-safe, but for start() and stop(), which belong to the owner.
class HttpServer {
 public:
  // Binds the address; connections wait until start(). Fails with invalid_argument (settings) or
  // unavailable (the address can't be bound).
  [[nodiscard]] static model::Result<std::unique_ptr<HttpServer>> open(HttpSettings settings,
                                                                       Handler handler);
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Connections that are open, those included that are about to close.
  [[nodiscard]] std::size_t connections() const;
  // Of all requests since the start, refused ones included; for metrics.
  [[nodiscard]] AnswerCounts answer_counts() const;

  // Starts the threads. Fails with internal if they can't be had.
  [[nodiscard]] model::Result<void> start();

  // From now on every answer ends its connection, idle connections close, new ones get 503. Waits
  // until no connection is left or the time is up; true if none is left. May be called again.
  [[nodiscard]] bool drain(std::chrono::milliseconds limit);

  // Ends all connections, whatever they wait for, and the threads; a Reply that is sent later goes
  // nowhere. Blocks until no handler runs. Tolerates double stop and stop without start.
  void stop();

 private:
  HttpServer(std::shared_ptr<Keeper> keeper, std::unique_ptr<Pistache::Tcp::Listener> listener);

  const std::shared_ptr<Keeper> keeper_;
  std::unique_ptr<Pistache::Tcp::Listener> listener_;  // null after stop()
  const std::uint16_t port_;
  bool started_ = false;
};

}  // namespace conversed::api
