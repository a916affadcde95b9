// One connection, between its socket and the handler. It deals with wrong requests, slow clients
// and late answers.
#pragma once

#include <array>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <span>
#include <string>
#include <string_view>

#include "api/http/body_budget.h"
#include "api/http/http.h"
#include "api/http/http_settings.h"
#include "api/http/request_reader.h"

namespace conversed::api {

// What the connections of a server share. It lives as long as the last Reply. Thread-safe.
struct ServerState {
  ServerState(HttpSettings its_settings, Handler its_handler);

  // The answer's status is counted; one that is no status counts as 500.
  void count_answer(int status);
  void defect(std::string_view message, std::string_view trace_id = "none") const noexcept;

  const HttpSettings settings;
  const Handler handler;
  const std::shared_ptr<BodyBudget> large_bodies;
  std::atomic<bool> draining{false};                      // each answer ends its connection
  std::array<std::atomic<std::uint64_t>, 500> answers{};  // by status, from 100 on
};

// Reads requests from the socket, hands them on one at a time, and writes each answer from the
// thread that sends it. While a request is with the handler, or an answer has not been written,
// nothing is read: the client's bytes wait in the socket.
//
// Thread-safe: the reactor reads, the server's keeper calls when time is up, any thread answers.
// One lock guards all of it. The socket is in the reactor's epoll, edge-triggered, from the
// connection's begin to its end; `rearm` makes the reactor look at it again.
//
// Invariants:
// - Only the reactor reads, calls handlers, and closes the descriptor. Other threads shut it down.
//   So no answer goes to a connection that was given the same number.
// - No handler runs under the lock. The `BodyRule` does, and reads memory only.
// - The next request is read after the last answer was written. This bounds a connection's memory
//   to `max_header` + `max_body` + one read + one answer.
//   Kept by: HttpLimits.APipelineIsReadNoFasterThanItIsAnswered.
// - After the last answer the Gate closes its side and reads the client's bytes for a while,
//   bounded by time and bytes. Closing with unread bytes would reset the connection before the
//   client has seen the answer. Kept by: HttpLimits.AClientThatSendsItsWholeBodyFirstSeesThe413,
//   HttpLimits.LingeringEndsWhenItsTimeIsUp.
class Gate final : public ReplySink, public std::enable_shared_from_this<Gate> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `descriptor` is a connected non-blocking socket, which the Gate owns; `epoll` is its reactor's.
  // `address`: what the connection is counted under, "" if it is not.
  Gate(std::shared_ptr<ServerState> server, int epoll, int descriptor, std::string peer,
       std::string address);

  [[nodiscard]] const std::string& address() const { return address_; }

  // From now on the reactor calls `ready`. False: the system has no memory for it.
  [[nodiscard]] bool watch();

  // For the reactor: something can be read or written, or `rearm` asked for it. `hung_up`: the
  // client will send no more than what is in the socket. `buffer` is for reading. False: the
  // connection has ended; `close` it.
  [[nodiscard]] bool ready(bool hung_up, std::span<char> buffer);
  // By the reactor's thread, or after its end.
  void close();

  // Instead of serving it: answers with an error at once and closes.
  void turn_away(int status, std::string_view detail);
  void tick(Time now);
  void abort();  // ends the connection, with a request in flight or not

  // ReplySink
  void answer(std::uint64_t sequence, Response response) noexcept override;
  void abandoned(std::uint64_t sequence) noexcept override;
  [[nodiscard]] const ExchangeContext& context() const override { return context_; }
  [[nodiscard]] model::Timestamp now() const override { return server_->settings.clock->now(); }

 private:
  using Lock = std::unique_lock<std::mutex>;

  enum class Phase : std::uint8_t {
    serving,
    finishing,  // no more requests; closes when the answer is written
    lingering,  // our side is closed; waits for the client's
    ended,      // shut down; the reactor closes it
  };
  // What the deadline is for.
  enum class Wait : std::uint8_t { nothing, idle, head, body, write, linger };

  [[nodiscard]] bool serves() const {
    return phase_ == Phase::serving && !in_flight_ && unsent_.empty();
  }
  void pump(Lock& lock, std::span<char> buffer);
  void discard(std::span<char> buffer);
  [[nodiscard]] std::string_view read(std::span<char> buffer);
  void dispatch(Lock& lock);
  void refuse(int status, std::string_view detail);
  void compose(std::string& message, const Response& response, bool keep_alive) const;
  void begin_exchange(const Request& request, bool keep_alive);
  void write(std::string_view bytes);
  std::size_t write_some(std::string_view bytes);
  void flush();
  void settle();
  void finish();
  void end();
  void rearm();
  void wait_for(Wait wait);

  const std::shared_ptr<ServerState> server_;
  const int epoll_;
  const std::string peer_;
  const std::string address_;
  const bool from_proxy_;  // that is trusted to say whose its requests are
  // Steady nanoseconds; read without the lock, so that a round of `tick` costs next to nothing.
  std::atomic<std::int64_t> deadline_;

  std::mutex mutex_;          // guards what follows, but for the exchange
  int descriptor_;            // -1: closed
  bool readable_ = false;     // the socket may hold bytes, or the end of the stream
  bool hung_up_ = false;      // the end of the stream is in the socket
  bool half_closed_ = false;  // and has been read
  Phase phase_ = Phase::serving;
  Wait wait_ = Wait::nothing;
  bool pumping_ = false;    // the reactor is in pump() and will see what changes
  bool in_flight_ = false;  // a request is with the handler
  RequestReader reader_;
  std::string unread_;  // read behind the request in flight
  std::string unsent_;
  std::size_t sent_ = 0;  // bytes of `unsent_` that have been written
  std::size_t lingered_ = 0;

  // The exchange: written under the lock before its request is handed on, then only read, by the
  // holder of its Reply, until the answer.
  std::uint64_t sequence_ = 0;
  ExchangeContext context_;
  ErrorShape error_shape_ = ErrorShape::problem;  // should its Reply be dropped
  std::string traceparent_;
  Method method_ = Method::get;
  bool http_1_0_ = false;
  bool keep_alive_ = false;
};

}  // namespace conversed::api
