// One connection, between its socket and the handler. It handles malformed requests, slow clients
// and late answers.
#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <mutex>
#include <string>
#include <string_view>
#include <utility>

#include "api/http/http.h"
#include "api/http/request_reader.h"
#include "store/model/trace.h"

namespace conversed::api {

class Keeper;

// Bytes that wait. They are removed from the front.
class WaitingBytes {
 public:
  [[nodiscard]] std::string_view view() const { return std::string_view(bytes_).substr(from_); }
  [[nodiscard]] bool empty() const { return bytes_.empty(); }
  void append(std::string_view bytes) {
    bytes_.erase(0, std::exchange(from_, 0));
    bytes_.append(bytes);
  }
  void drop(std::size_t count) {
    from_ += count;
    if (from_ == bytes_.size()) clear();
  }
  // Releases the memory, which an assignment would keep.
  void clear() {
    std::string().swap(bytes_);
    from_ = 0;
  }

 private:
  std::string bytes_;
  std::size_t from_ = 0;
};

// Reads requests from the bytes that the reactor brings, hands them to the handler one at a time,
// and writes each answer from the thread that sends it.
//
// Thread-safe: the reactor brings bytes, the Keeper reports time-outs, any thread answers. One lock
// guards all state.
//
// Invariants:
// - Only the reactor closes the descriptor, right after `disconnected()`. The Gate uses it under
//   its lock while it is known to be open, so no answer goes to a connection that was given the
//   same number.
// - No handler runs under the lock. The `BodyRule` does, and reads memory only. The lock is taken
//   before the Keeper's, never after it.
// - The next request is read after the last answer was written. This bounds a connection's memory
//   to `max_header` + `max_body` + `max_pipelined` + one answer.
//   Kept by: HttpLimits.PipelinesOverTheLimitAreAnsweredUntilA413.
// - After the last answer the Gate closes its side and reads the client's bytes for a while,
//   bounded by time and bytes. Closing with unread bytes would reset the connection before the
//   client has seen the answer. Kept by: HttpLimits.AClientThatSendsItsWholeBodyFirstSeesThe413,
//   HttpLimits.LingeringEndsWhenItsTimeIsUp.
class Gate final : public ReplySink, public std::enable_shared_from_this<Gate> {
 public:
  using Time = std::chrono::steady_clock::time_point;

  // `descriptor` is a connected non-blocking socket. `address` is the name that the connection is
  // counted under, "" if it is not counted.
  Gate(std::shared_ptr<Keeper> keeper, std::uint64_t id, int descriptor, std::string peer,
       std::string address);

  [[nodiscard]] const std::string& address() const { return address_; }

  // Called by the reactor.
  void received(std::string_view bytes);
  // The client has closed at least its sending side. The caller closes the descriptor next. The
  // remaining answers are sent over a duplicate, because a client may half-close after its request.
  void disconnected();
  // Answers a new connection with an error at once and closes it.
  void turn_away(int status, std::string_view detail);

  // Called by the Keeper.
  void resume();    // reads the requests that waited for an answer
  void writable();  // continues an answer that the socket had no room for
  void tick(Time now);
  void abort();  // ends the connection, also with requests in flight

  // ReplySink
  void answer(std::uint64_t sequence, Response response) noexcept override;
  void abandoned(std::uint64_t sequence) noexcept override;
  [[nodiscard]] const ExchangeContext& context() const override { return context_; }
  [[nodiscard]] model::Timestamp now() const override;

 private:
  using Lock = std::unique_lock<std::mutex>;

  enum class Phase : std::uint8_t {
    serving,
    finishing,  // reads no more requests; closes when the answer is written
    lingering,  // this side is closed; waits for the client to close
    ended,      // shut down; waits for the reactor to notice, or gone
  };
  enum class Wait : std::uint8_t { nothing, idle, head, body, write, linger };

  void pump(Lock& lock, std::string_view bytes);
  void dispatch(Lock& lock);
  void refuse(int status, std::string_view detail);
  void report(const Response& response, std::string_view span_id) const;
  void compose(std::string& message, const Response& response, std::string_view span_id,
               bool keep_alive) const;
  void begin_exchange(const Request& request, bool keep_alive);
  void write(std::string_view bytes);
  std::size_t write_some(std::string_view bytes);
  void settle();
  void finish();
  void close_now();
  void hold(std::string_view bytes);
  void wait_for(Wait wait);

  const std::shared_ptr<Keeper> keeper_;
  const std::uint64_t id_;
  const std::string peer_;
  const std::string address_;
  const bool from_proxy_;  // whether a trusted proxy names the clients
  // Steady nanoseconds. Read without the lock, so the Keeper's round costs next to nothing.
  std::atomic<std::int64_t> deadline_;

  std::mutex mutex_;  // guards the members below, except the exchange
  int descriptor_;    // -1: closed
  bool owned_ = false;
  bool watched_ = false;  // whether the Keeper watches for room to write
  bool half_closed_ = false;
  Phase phase_ = Phase::serving;
  Wait wait_ = Wait::nothing;
  bool pumping_ = false;    // a thread is in pump() and will see the change
  bool in_flight_ = false;  // a request is with the handler
  bool overrun_ = false;    // more was pipelined than `max_pipelined`
  RequestReader reader_;
  WaitingBytes unread_;
  WaitingBytes unsent_;
  std::size_t lingered_ = 0;

  // The exchange. It is written under the lock before its request is handed over. Then the holder
  // of the Reply reads it, and nothing writes it, until the answer.
  std::uint64_t sequence_ = 0;
  ExchangeContext context_;
  ErrorShape error_shape_ = ErrorShape::problem;  // for a Reply that is dropped
  model::Trace trace_;                            // of the request; its id is the context's
  std::chrono::system_clock::time_point begun_;   // only for `on_answer`
  Method method_ = Method::get;
  bool http_1_0_ = false;
  bool keep_alive_ = false;
};

}  // namespace conversed::api
