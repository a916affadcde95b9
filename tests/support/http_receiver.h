#pragma once

#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <utility>
#include <vector>

namespace conversed::tests {

// A real HTTP/1.1 server on loopback whose answers a test sets: the other end of webhooks and
// calls. One thread, epoll, kept connections. Without recording it is fast enough for a load test.
// Bodies need a Content-Length. Pipelined requests are not answered in parallel.
//
// Thread-safe. The handler runs on the receiver's thread, without a lock.
class HttpReceiver {
 public:
  struct Request {
    std::string method;
    std::string target;
    std::map<std::string, std::string> headers;  // names in lower case
    std::string body;
    std::uint64_t connection = 0;  // counted from 1
  };
  enum class Then : std::uint8_t {
    answer,
    close,    // closes the connection without an answer, or after sending `raw`
    silence,  // never answers
  };
  struct Answer {
    int status = 200;
    std::string body{};
    std::vector<std::pair<std::string, std::string>> headers{};
    Then then = Then::answer;
    std::chrono::milliseconds delay{0};
    std::string raw{};  // sends these bytes instead of an answer
  };
  using Handler = std::function<Answer(const Request&)>;
  enum class Recording : std::uint8_t { on, off };

  // Listens on 127.0.0.1 on a free port (or the given one) until it is destroyed. Without a handler
  // it answers 200.
  explicit HttpReceiver(Handler handler = {}, Recording recording = Recording::on,
                        std::uint16_t port = 0);
  ~HttpReceiver();
  HttpReceiver(const HttpReceiver&) = delete;
  HttpReceiver& operator=(const HttpReceiver&) = delete;

  [[nodiscard]] std::uint16_t port() const { return port_; }
  [[nodiscard]] std::string url(std::string_view path = "/") const;

  void set_handler(Handler handler);

  // The count of requests so far. A request counts before it is answered.
  [[nodiscard]] std::size_t count() const { return count_.load(); }
  // Waits until `count` requests have come; false if that takes longer than `timeout`.
  [[nodiscard]] bool wait_for(std::size_t count,
                              std::chrono::milliseconds timeout = std::chrono::seconds(20)) const;
  [[nodiscard]] std::vector<Request> requests() const;
  [[nodiscard]] std::uint64_t connections() const { return connections_.load(); }

 private:
  struct Connection {
    std::uint64_t serial = 0;
    std::string in;
    std::string out;
    bool waits = false;  // for a delayed answer, or for ever
  };
  struct Delayed {
    int fd = -1;
    std::uint64_t serial = 0;
    std::string bytes;
  };

  void run();
  void accept_all();
  void read_from(int fd);
  void handle_input(int fd);
  void respond(int fd, Connection& connection, Request request);
  void flush(int fd, Connection& connection);
  void drop(int fd);
  int send_delayed();  // milliseconds to the next answer, -1 if there is none

  std::uint16_t port_ = 0;
  int listener_ = -1;
  int epoll_ = -1;
  int wake_ = -1;
  const Recording recording_;
  std::atomic<bool> stop_{false};
  std::atomic<std::size_t> count_{0};
  std::atomic<std::uint64_t> connections_{0};

  mutable std::mutex mutex_;
  mutable std::condition_variable arrived_;
  std::shared_ptr<const Handler> handler_;  // guarded by the mutex, like the next member
  std::vector<Request> requests_;

  std::map<int, Connection> open_;  // only for the thread, like the next member
  std::multimap<std::chrono::steady_clock::time_point, Delayed> delayed_;
  std::thread thread_;
};

}  // namespace conversed::tests
