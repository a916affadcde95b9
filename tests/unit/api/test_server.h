// An HttpServer on its own port. Its handler describes the request in its answer.
#pragma once

#include <gtest/gtest.h>

#include <atomic>
#include <condition_variable>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <stop_token>
#include <string>
#include <utility>

#include "api/http/http_server.h"
#include "tests/unit/api/raw_client.h"

namespace conversed::api::test {

inline const std::string simple = "GET /a HTTP/1.1\r\nHost: x\r\n\r\n";

// "POST /path?a=b| body"
inline std::string describe(const Request& request) {
  std::string text = std::string(method_name(request.method)) + " " + request.path;
  char mark = '?';
  for (const auto& [name, value] : request.query) {
    text += mark + name + "=" + value;
    mark = '&';
  }
  return text + "|" + request.body;
}

inline void echo(Request&& request, Reply reply) {
  reply.text(status::ok, describe(request));
}

// Replies that wait until the test sends them.
class Parked {
 public:
  Handler handler() {
    return [this](Request&& request, Reply reply) {
      const std::lock_guard lock(mutex_);
      waiting_.emplace_back(std::move(request), std::move(reply));
      arrived_.notify_all();
    };
  }
  std::pair<Request, Reply> next() {
    std::unique_lock lock(mutex_);
    arrived_.wait(lock, [&] { return !waiting_.empty(); });
    auto first = std::move(waiting_.front());
    waiting_.pop_front();
    return first;
  }
  // nullopt after a stop.
  std::optional<std::pair<Request, Reply>> next(const std::stop_token& stop) {
    std::unique_lock lock(mutex_);
    if (!arrived_.wait(lock, stop, [&] { return !waiting_.empty(); })) return std::nullopt;
    std::optional first(std::move(waiting_.front()));
    waiting_.pop_front();
    return first;
  }
  std::size_t size() {
    const std::lock_guard lock(mutex_);
    return waiting_.size();
  }

 private:
  std::mutex mutex_;
  std::condition_variable_any arrived_;
  std::deque<std::pair<Request, Reply>> waiting_;
};

class TestServer {
 public:
  explicit TestServer(HttpSettings settings = {}, Handler handler = echo) {
    settings.on_defect = [this](std::string_view message) {
      const std::lock_guard lock(mutex_);
      last_defect_ = message;
      ++defects_;
    };
    auto opened = HttpServer::open(std::move(settings), std::move(handler));
    if (!opened) {
      ADD_FAILURE() << opened.error().message;
      std::abort();
    }
    server_ = std::move(*opened);
    EXPECT_TRUE(server_->start());
  }

  HttpServer& operator*() { return *server_; }
  HttpServer* operator->() { return server_.get(); }
  [[nodiscard]] std::uint16_t port() const { return server_->port(); }
  [[nodiscard]] int defects() const { return defects_; }
  std::string last_defect() {
    const std::lock_guard lock(mutex_);
    return last_defect_;
  }

 private:
  std::atomic<int> defects_{0};
  std::mutex mutex_;
  std::string last_defect_;
  std::unique_ptr<HttpServer> server_;
};

}  // namespace conversed::api::test
