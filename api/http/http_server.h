// The HTTP front end: a listener and its reactor threads. It accepts only well-formed HTTP.
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

// Serves HTTP/1.1 and HTTP/1.0 without TLS (a proxy in front speaks TLS). Every request gets
// exactly one answer, in order. The server itself answers malformed requests, time-outs and
// exceeded limits; they do not reach the handler. HttpSettings has the limits.
//
// Thread-safe, except start() and stop(), which only the owner calls.
class HttpServer {
 public:
  // Binds the address. Connections wait until start(). Fails with invalid_argument (settings) or
  // unavailable (the address can't be bound).
  [[nodiscard]] static model::Result<std::unique_ptr<HttpServer>> open(HttpSettings settings,
                                                                       Handler handler);
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  // Open connections, including connections that are about to close.
  [[nodiscard]] std::size_t connections() const;
  // The answers to all requests since the start, refused requests included. For metrics.
  [[nodiscard]] AnswerCounts answer_counts() const;

  // Starts the threads. Fails with internal if the system refuses them.
  [[nodiscard]] model::Result<void> start();

  // Starts the drain: answers end their connections, idle connections close, new connections get
  // 503. Waits until no connection is left or the time is up. True if none is left. Repeatable.
  [[nodiscard]] bool drain(std::chrono::milliseconds limit);

  // Ends all connections and the threads. An answer that is sent later is dropped. Blocks until no
  // handler runs. Tolerates double stop and stop without start.
  void stop();

 private:
  HttpServer(std::shared_ptr<Keeper> keeper, std::unique_ptr<Pistache::Tcp::Listener> listener);

  const std::shared_ptr<Keeper> keeper_;
  std::unique_ptr<Pistache::Tcp::Listener> listener_;  // null after stop()
  const std::uint16_t port_;
  bool started_ = false;
};

}  // namespace conversed::api
