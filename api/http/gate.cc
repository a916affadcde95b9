#include "api/http/gate.h"

#include <fcntl.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "api/http/client_address.h"
#include "api/http/error_reply.h"
#include "api/http/keeper.h"
#include "api/http/response_writer.h"
#include "store/model/ids.h"

namespace conversed::api {
namespace {

// Bytes that a client may still send after its last answer. Some clients read the answer only after
// they have sent everything. Closing with unread bytes would reset the connection.
constexpr std::size_t max_lingered = 16 * 1024 * 1024;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

std::int64_t to_ns(Gate::Time time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

// Several headers are one list. A list that is malformed or too long is dropped.
std::string tracestate_of(const Request& request) {
  std::string list;
  for (const auto& [name, value] : request.headers) {
    if (name == "tracestate") list.append(list.empty() ? "" : ",").append(value);
  }
  return model::is_tracestate(list) ? list : std::string();
}

}  // namespace

Gate::Gate(std::shared_ptr<Keeper> keeper, std::uint64_t id, int descriptor, std::string peer,
           std::string address)
    : keeper_(std::move(keeper)),
      id_(id),
      peer_(std::move(peer)),
      address_(std::move(address)),
      from_proxy_(is_trusted(peer_, keeper_->settings().trusted_proxies)),
      deadline_(never),
      descriptor_(descriptor),
      reader_(keeper_->settings(), keeper_->large_bodies()) {
  wait_for(Wait::idle);
}

model::Timestamp Gate::now() const {
  return keeper_->clock().now();
}

// ---- Bytes in

void Gate::received(std::string_view bytes) {
  Lock lock(mutex_);
  if (phase_ != Phase::serving) {
    lingered_ += bytes.size();
    if (lingered_ > max_lingered) close_now();
    return;
  }
  // Held bytes come first, also between an answer and its resume().
  const bool first = unread_.empty() && !overrun_;
  if (pumping_ || in_flight_ || !unsent_.empty() || !first) return hold(bytes);
  pump(lock, bytes);
}

void Gate::resume() {
  Lock lock(mutex_);
  if (!pumping_) pump(lock, {});
}

// Keeps bytes for later. Their sum is bounded, because the reactor reads all that arrives.
void Gate::hold(std::string_view bytes) {
  if (overrun_) return;
  if (unread_.view().size() + bytes.size() > keeper_->settings().max_pipelined) {
    overrun_ = true;  // held requests are served, then the connection ends
    return;
  }
  unread_.append(bytes);
}

// Reads as many requests as can be answered now. `bytes` may be given only while no bytes are held.
// They are read in place and copied only if they have to wait.
void Gate::pump(Lock& lock, std::string_view bytes) {
  pumping_ = true;
  while (phase_ == Phase::serving && !in_flight_ && unsent_.empty()) {
    const bool direct = !bytes.empty();
    std::string_view source = direct ? bytes : unread_.view();
    if (source.empty()) {
      if (overrun_) refuse(413, "More requests were pipelined than this server holds.");
      break;
    }
    const std::size_t before = source.size();
    const auto progress = reader_.feed(source);
    if (direct) {
      bytes = source;
    } else {
      unread_.drop(before - source.size());
    }
    if (progress == RequestReader::Progress::complete) {
      hold(bytes);
      bytes = {};
      dispatch(lock);
    } else if (progress == RequestReader::Progress::refused) {
      refuse(reader_.refusal().status, reader_.refusal().detail);
    } else if (progress == RequestReader::Progress::expects_continue) {
      write(continue_line);
    }
  }
  pumping_ = false;
  settle();
}

// Hands the complete request to the handler, without the lock: it may answer at once.
void Gate::dispatch(Lock& lock) {
  error_shape_ = reader_.error_shape();
  http_1_0_ = reader_.http_1_0();
  Request request = reader_.take();
  begin_exchange(request, request.keep_alive);
  request.peer = from_proxy_
                     ? forwarded_client(peer_, request.headers, keeper_->settings().trusted_proxies)
                     : peer_;
  request.trace_id = context_.trace_id;
  request.sampled = trace_.sampled;
  if (!trace_.parent_id.empty()) request.tracestate = tracestate_of(request);
  in_flight_ = true;
  wait_for(Wait::nothing);
  Reply reply(shared_from_this(), sequence_);
  lock.unlock();
  try {
    keeper_->handler()(std::move(request), std::move(reply));
  } catch (...) {
    // The handler did not keep the Reply, so unwinding destroyed it, which has answered 500.
    keeper_->defect("A request handler threw an exception", context_.trace_id);
  }
  lock.lock();
}

void Gate::begin_exchange(const Request& request, bool keep_alive) {
  ++sequence_;
  method_ = request.method;
  keep_alive_ = keep_alive;
  context_.instance.assign(request.target, 0, request.target.find('?'));
  if (context_.instance.empty()) context_.instance = "/";
  // Several traceparent headers are invalid (W3C Trace Context §3.2).
  const auto header = request.header("traceparent");
  const bool is_sole = header && request.count_headers("traceparent") == 1;
  auto trace = is_sole ? model::parse_traceparent(*header) : std::nullopt;
  if (!trace) {
    trace = model::Trace{.trace_id = model::new_trace_id(), .parent_id = {}};
    trace->sampled = model::in_sample(trace->trace_id, keeper_->settings().sample);
  }
  trace_ = *std::move(trace);
  context_.trace_id = trace_.trace_id;
  if (keeper_->settings().on_answer) begun_ = std::chrono::system_clock::now();
}

// Answers a request that is not well-formed, and ends the connection.
void Gate::refuse(int status, std::string_view detail) {
  begin_exchange(reader_.partial(), false);
  keeper_->count_answer(status);
  const BodyRuleFor& rule = keeper_->settings().body_rule;
  const auto shape = rule ? rule(reader_.partial()).error_shape : ErrorShape::problem;
  const Response response = error_response(status, detail, context_, now(), shape);
  const auto span = model::new_span_id();
  report(response, span);
  http_1_0_ = false;
  std::string message;
  compose(message, response, span, false);
  write(message);
  if (phase_ == Phase::serving) phase_ = Phase::finishing;
}

void Gate::report(const Response& response, std::string_view span_id) const {
  const auto& settings = keeper_->settings();
  if (settings.on_answer && !response.route.empty()) {
    settings.on_answer({.method = method_,
                        .route = response.route,
                        .status = response.status,
                        .trace = trace_,
                        .span_id = span_id,
                        .event_id = response.event_id,
                        .begun = begun_});
  }
  if (response.status < 400 || !settings.on_error) return;
  settings.on_error({.method = method_,
                     .route = response.route,
                     .status = response.status,
                     .reason = response.reason,
                     .trace_id = context_.trace_id});
}

void Gate::turn_away(int status, std::string_view detail) {
  const Lock lock(mutex_);
  refuse(status, detail);
  settle();
}

// ---- Answers out

void Gate::answer(std::uint64_t sequence, Response response) noexcept try {
  // Most answers are written at once from this buffer and allocate nothing.
  thread_local std::string message;
  message.clear();
  const bool keep_alive = keep_alive_ && !keeper_->draining();
  const auto span =
      response.event_id.empty() ? model::new_span_id() : model::span_of_event(response.event_id);
  report(response, span);
  compose(message, response, span, keep_alive);
  const Lock lock(mutex_);
  if (!in_flight_ || sequence != sequence_) return;
  in_flight_ = false;
  keeper_->count_answer(response.status);
  write(message);
  if (message.capacity() > keeper_->settings().max_pipelined) std::string().swap(message);
  if (!keep_alive && phase_ == Phase::serving) phase_ = Phase::finishing;
  if (pumping_) return;
  if (phase_ == Phase::serving && unsent_.empty() && (overrun_ || !unread_.empty())) {
    keeper_->resume_later(shared_from_this());
  }
  settle();
} catch (...) {
  abort();  // out of memory: ending the connection is better than letting it hang
}

void Gate::compose(std::string& message, const Response& response, std::string_view span_id,
                   bool keep_alive) const {
  write_response(message, response,
                 {.head = method_ == Method::head,
                  .http_1_0 = http_1_0_,
                  .keep_alive = keep_alive,
                  .cors = keeper_->settings().cors,
                  .trace_id = context_.trace_id,
                  .traceparent = model::make_traceparent(trace_.trace_id, span_id, trace_.sampled)},
                 now());
}

void Gate::abandoned(std::uint64_t sequence) noexcept try {
  keeper_->defect("A request was dropped without an answer", context_.trace_id);
  answer(sequence,
         error_response(500, "The request could not be completed.", context_, now(), error_shape_));
} catch (...) {
  abort();
}

void Gate::write(std::string_view bytes) {
  const std::size_t sent = unsent_.empty() ? write_some(bytes) : 0;
  if (phase_ == Phase::ended || sent == bytes.size()) return;
  unsent_.append(bytes.substr(sent));
  keeper_->watch(descriptor_, id_, watched_);
  watched_ = true;
  wait_for(Wait::write);
}

// Writes as much as the socket takes without blocking. Ends the connection if it is broken.
std::size_t Gate::write_some(std::string_view bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size() && phase_ != Phase::ended && descriptor_ >= 0) {
    const auto count =
        ::send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      close_now();
    }
  }
  return sent;
}

void Gate::writable() {
  Lock lock(mutex_);
  if (phase_ == Phase::ended || unsent_.empty()) return;
  const std::size_t sent = write_some(unsent_.view());
  if (phase_ == Phase::ended) return;
  unsent_.drop(sent);
  if (!unsent_.empty()) {
    keeper_->watch(descriptor_, id_, watched_);
    if (sent != 0) wait_for(Wait::write);
    return;
  }
  wait_for(Wait::nothing);
  if (!pumping_) pump(lock, {});
}

// ---- The connection's end

// Chooses the next wait of a connection that no thread works on.
void Gate::settle() {
  if (phase_ == Phase::ended || phase_ == Phase::lingering || !unsent_.empty()) return;
  if (in_flight_ || (phase_ == Phase::serving && !unread_.empty())) return wait_for(Wait::nothing);
  if (phase_ == Phase::finishing) return finish();
  if (half_closed_) return finish();
  Wait wait = Wait::head;
  if (reader_.idle()) wait = Wait::idle;
  if (reader_.in_body()) wait = Wait::body;
  if (wait != wait_) wait_for(wait);
}

// Closes the daemon's side. Reads the client's bytes for a while, because closing with unread bytes
// would reset the connection before the client has the answer.
void Gate::finish() {
  if (half_closed_) return close_now();
  ::shutdown(descriptor_, SHUT_WR);
  phase_ = Phase::lingering;
  wait_for(Wait::linger);
}

// After a shutdown the reactor reads the end of the stream, calls disconnected() and closes.
void Gate::close_now() {
  if (phase_ == Phase::ended) return;
  phase_ = Phase::ended;
  wait_for(Wait::nothing);
  unread_.clear();
  unsent_.clear();
  if (descriptor_ < 0) return;
  if (!owned_) {
    ::shutdown(descriptor_, SHUT_RDWR);
    return;
  }
  if (watched_) keeper_->unwatch(descriptor_);
  ::close(std::exchange(descriptor_, -1));
  keeper_->gone(id_);
}

void Gate::disconnected() {
  const Lock lock(mutex_);
  if (watched_) keeper_->unwatch(descriptor_);
  watched_ = false;
  half_closed_ = true;
  const bool owes = (phase_ == Phase::serving || phase_ == Phase::finishing) &&
                    (in_flight_ || !unsent_.empty() || !unread_.empty());
  const int copy = owes ? ::fcntl(descriptor_, F_DUPFD_CLOEXEC, 0) : -1;
  descriptor_ = copy;
  if (copy < 0) {
    close_now();
    keeper_->gone(id_);
    return;
  }
  owned_ = true;
  if (unsent_.empty()) return;
  keeper_->watch(descriptor_, id_, watched_);
  watched_ = true;
}

void Gate::abort() {
  const Lock lock(mutex_);
  close_now();
}

void Gate::wait_for(Wait wait) {
  const HttpSettings& settings = keeper_->settings();
  const std::array limits{settings.idle_timeout, settings.header_timeout, settings.body_timeout,
                          settings.write_timeout, settings.linger_timeout};  // as in Wait
  wait_ = wait;
  const auto deadline =
      wait == Wait::nothing
          ? never
          : to_ns(std::chrono::steady_clock::now() + limits.at(static_cast<std::size_t>(wait) - 1));
  deadline_.store(deadline, std::memory_order_relaxed);
}

void Gate::tick(Time now) {
  const bool due = deadline_.load(std::memory_order_relaxed) <= to_ns(now);
  if (!due && !keeper_->draining()) return;
  const Lock lock(mutex_);
  // A drain closes connections on which no request has begun.
  if (keeper_->draining() && wait_ == Wait::idle) return close_now();
  if (deadline_.load(std::memory_order_relaxed) > to_ns(now)) return;
  switch (wait_) {
    case Wait::nothing:
      return;
    case Wait::head:
    case Wait::body:
      refuse(408, "The request did not arrive in time.");
      return settle();
    case Wait::idle:
    case Wait::write:
    case Wait::linger:
      return close_now();
  }
}

}  // namespace conversed::api
