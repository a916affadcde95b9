// Keeps the connections of one server: counts them, and acts when no byte arrives.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <condition_variable>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <vector>

#include "api/http/body_budget.h"
#include "api/http/gate.h"
#include "api/http/http_settings.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"
#include "store/runtime/heartbeat.h"

namespace conversed::api {

// One thread with its own epoll set. It continues answers that a socket had no room for, reads the
// requests that were pipelined behind an answer from another thread, and ends connections whose
// time is up. Other requests do not wake it.
//
// Thread-safe. Its lock is taken after a Gate's, never before one.
class Keeper : public std::enable_shared_from_this<Keeper> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  [[nodiscard]] static model::Result<std::shared_ptr<Keeper>> open(HttpSettings settings,
                                                                   Handler handler);
  ~Keeper();
  Keeper(const Keeper&) = delete;
  Keeper& operator=(const Keeper&) = delete;

  void start();
  // From now on every answer is the last one of its connection, idle connections close, and new
  // connections get 503.
  void begin_drain();
  // Waits until no connection is left; false at the deadline.
  [[nodiscard]] bool wait_until_empty(Time deadline);
  void abort_all();
  // Ends the thread and releases all connections. The reactor must have stopped before. Tolerates
  // double stop and stop without start.
  void stop();

  // Makes a Gate for a new connection. The Gate may have been turned away already.
  [[nodiscard]] std::shared_ptr<Gate> admit(int descriptor, std::string peer);
  [[nodiscard]] std::size_t connections() const;

  // Called by Gates.
  void gone(std::uint64_t id);
  void resume_later(std::shared_ptr<Gate> gate);
  // Calls the Gate's writable() once when the socket has room. `again` if it was watched before.
  void watch(int descriptor, std::uint64_t id, bool again);
  void unwatch(int descriptor);
  void defect(std::string_view message, std::string_view trace_id) const noexcept;
  [[nodiscard]] bool draining() const { return draining_.load(std::memory_order_relaxed); }
  [[nodiscard]] const HttpSettings& settings() const { return settings_; }
  [[nodiscard]] model::Heartbeat new_heartbeat();
  [[nodiscard]] const Handler& handler() const { return handler_; }
  [[nodiscard]] const model::Clock& clock() const { return *settings_.clock; }
  [[nodiscard]] const std::shared_ptr<BodyBudget>& large_bodies() const { return large_bodies_; }

  // Counts an answer that is about to be written. An invalid status counts as 500.
  void count_answer(int status);
  [[nodiscard]] AnswerCounts answer_counts() const;

 private:
  using Gates = std::unordered_map<std::uint64_t, std::shared_ptr<Gate>>;

  Keeper(HttpSettings settings, Handler handler, int epoll, int wake);
  void run(const std::stop_token& stop);
  void make_round();
  void resume_due();
  void wake_up() const;
  [[nodiscard]] std::vector<std::shared_ptr<Gate>> all() const;

  const HttpSettings settings_;
  const Handler handler_;
  const std::chrono::milliseconds round_;  // the time between two looks for time-outs
  const int epoll_;
  const int wake_;
  const std::shared_ptr<BodyBudget> large_bodies_;
  std::atomic<bool> draining_{false};
  std::atomic<std::size_t> reactors_{0};                   // with a heartbeat
  std::array<std::atomic<std::uint64_t>, 500> answers_{};  // by status, from 100 on

  mutable std::mutex mutex_;  // guards the next four
  std::condition_variable emptied_;
  Gates gates_;
  std::unordered_map<std::string, std::size_t> by_address_;  // how many gates
  std::uint64_t last_id_ = 0;

  struct Resumable {
    std::vector<std::shared_ptr<Gate>> gates;
    bool closed = false;  // after stop(): no Gate may be kept, because Gates own their Keeper
  };
  model::Guarded<Resumable> resumable_;
  std::jthread thread_;
};

}  // namespace conversed::api
