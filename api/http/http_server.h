// The HTTP front end: a listener and its threads, strict about what is HTTP.
#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <vector>

#include "api/http/http_settings.h"
#include "store/model/result.h"

namespace conversed::api {

class Gate;
struct ServerState;

// Serves HTTP/1.1 and HTTP/1.0 in clear (TLS belongs to a proxy in front). Every request gets
// exactly one answer, in order; malformed ones, time-outs and limits are answered here and never
// reach the handler. See HttpSettings for the limits.
//
// A keeper thread accepts connections and ends those whose time is up. Reactor threads, each with
// an epoll set of its own, read requests and call the handler.
//
// Thread-safe, but for start() and stop(), which belong to the owner. Its lock is never
// held together with a Gate's.
class HttpServer {
 public:
  // Binds the address; connections wait until start(). Fails with invalid_argument (settings) or
  // unavailable (the address can't be bound, or no descriptor is left).
  [[nodiscard]] static model::Result<std::unique_ptr<HttpServer>> open(HttpSettings settings,
                                                                       Handler handler);
  ~HttpServer();  // stops
  HttpServer(const HttpServer&) = delete;
  HttpServer& operator=(const HttpServer&) = delete;

  // The port that it listens on.
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
  using Time = std::chrono::steady_clock::time_point;

  HttpServer(HttpSettings settings, Handler handler);
  [[nodiscard]] model::Result<void> listen();
  void keep();
  void make_round();
  [[nodiscard]] bool accept_waiting();
  void admit(int descriptor, std::string peer);
  void react(int epoll, model::Heartbeat heartbeat);
  void react_to(Gate& gate, std::uint32_t events, std::span<char> buffer);
  void forget(Gate& gate);

  const std::shared_ptr<ServerState> state_;
  const std::chrono::milliseconds round_;  // how often time-outs are looked for
  int listener_ = -1;
  int end_ = -1;  // an eventfd in each epoll set: readable from stop() on
  std::uint16_t port_ = 0;
  std::vector<int> epolls_;  // of the reactors
  std::atomic<bool> stopping_{false};

  std::size_t accepted_ = 0;  // connections so far; the keeper's own

  mutable std::mutex mutex_;  // guards the next three
  std::condition_variable emptied_;
  std::unordered_map<Gate*, std::shared_ptr<Gate>> gates_;
  std::unordered_map<std::string, std::size_t> by_address_;  // how many gates

  std::vector<std::jthread> threads_;  // last: they use the others
};

}  // namespace conversed::api
