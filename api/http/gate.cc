#include "api/http/gate.h"

#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cerrno>
#include <limits>
#include <utility>

#include "api/http/client_address.h"
#include "api/http/error_reply.h"
#include "api/http/response_writer.h"
#include "store/model/ids.h"
#include "store/model/trace.h"

namespace conversed::api {
namespace {

// Bytes that a client may go on sending, unread, after its last answer. Some clients read the
// answer only after they have sent everything, and closing with unread bytes would reset the
// connection.
constexpr std::size_t max_lingered = 16 * 1024 * 1024;
// The memory that a thread keeps for composing answers.
constexpr std::size_t max_kept_message = 256 * 1024;
constexpr std::int64_t never = std::numeric_limits<std::int64_t>::max();
constexpr std::string_view continue_line = "HTTP/1.1 100 Continue\r\n\r\n";

std::int64_t to_ns(Gate::Time time) {
  return std::chrono::duration_cast<std::chrono::nanoseconds>(time.time_since_epoch()).count();
}

bool control(int epoll, int action, int descriptor, Gate* gate) {
  epoll_event event{};
  event.events = EPOLLIN | EPOLLOUT | EPOLLRDHUP | EPOLLET;
  event.data.ptr = gate;
  return ::epoll_ctl(epoll, action, descriptor, &event) == 0;
}

}  // namespace

ServerState::ServerState(HttpSettings its_settings, Handler its_handler)
    : settings(std::move(its_settings)),
      handler(std::move(its_handler)),
      large_bodies(std::make_shared<BodyBudget>(settings.max_large_bodies)) {}

void ServerState::count_answer(int status) {
  if (status < 100 || status > 599) status = 500;
  answers[static_cast<std::size_t>(status - 100)].fetch_add(1, std::memory_order_relaxed);
}

void ServerState::defect(std::string_view message, std::string_view trace_id) const noexcept try {
  if (!settings.on_defect) return;
  settings.on_defect(std::string(message) + " (trace " + std::string(trace_id) + ")");
} catch (...) {
  // A log that throws must not take a connection down with it.
}

Gate::Gate(std::shared_ptr<ServerState> server, int epoll, int descriptor, std::string peer,
           std::string address)
    : server_(std::move(server)),
      epoll_(epoll),
      peer_(std::move(peer)),
      address_(std::move(address)),
      from_proxy_(is_trusted(peer_, server_->settings.trusted_proxies)),
      deadline_(never),
      descriptor_(descriptor),
      reader_(server_->settings, server_->large_bodies) {
  wait_for(Wait::idle);
}

bool Gate::watch() {
  const Lock lock(mutex_);
  return control(epoll_, EPOLL_CTL_ADD, descriptor_, this);
}

// The reactor gets an event, since a socket can be written, or has been shut down.
void Gate::rearm() {
  (void)control(epoll_, EPOLL_CTL_MOD, descriptor_, this);
}

// ---- Bytes in

bool Gate::ready(bool hung_up, std::span<char> buffer) {
  Lock lock(mutex_);
  readable_ = true;
  hung_up_ = hung_up_ || hung_up;
  if (!unsent_.empty()) flush();
  if (phase_ == Phase::serving) pump(lock, buffer);
  if (phase_ == Phase::finishing || phase_ == Phase::lingering) discard(buffer);
  return phase_ != Phase::ended;
}

// Empty: there is nothing to read now, or the stream has ended.
std::string_view Gate::read(std::span<char> buffer) {
  for (;;) {
    const auto count = ::recv(descriptor_, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (count > 0) {
      const auto size = static_cast<std::size_t>(count);
      // Less than was asked for is all that there was: what comes later is a new event.
      readable_ = hung_up_ || size == buffer.size();
      return {buffer.data(), size};
    }
    if (count < 0 && errno == EINTR) continue;
    readable_ = false;
    half_closed_ = count == 0;
    if (count < 0 && errno != EAGAIN && errno != EWOULDBLOCK) end();
    return {};
  }
}

// Answers as many requests as it can with one read, so that the reactor's connections take turns.
void Gate::pump(Lock& lock, std::span<char> buffer) {
  pumping_ = true;
  const std::string held = std::exchange(unread_, {});
  std::string_view bytes = held;
  for (bool has_read = false; serves();) {
    if (bytes.empty()) {
      if (!readable_ || std::exchange(has_read, true)) break;
      bytes = read(buffer);
      continue;
    }
    const auto progress = reader_.feed(bytes);
    if (progress == RequestReader::Progress::complete) {
      dispatch(lock);
    } else if (progress == RequestReader::Progress::refused) {
      refuse(reader_.refusal().status, reader_.refusal().detail);
    } else if (progress == RequestReader::Progress::expects_continue) {
      write(continue_line);
    }
  }
  pumping_ = false;
  if (phase_ == Phase::serving) unread_ = bytes;
  if (serves() && readable_) rearm();
  settle();
}

// The client's bytes behind its last request.
void Gate::discard(std::span<char> buffer) {
  while (readable_ && phase_ != Phase::ended) {
    lingered_ += read(buffer).size();
    if (lingered_ > max_lingered) end();
  }
  if (half_closed_ && phase_ == Phase::lingering) end();
}

// Hands the complete request on. The lock is free meanwhile, so the answer may come from inside.
void Gate::dispatch(Lock& lock) {
  http_1_0_ = reader_.http_1_0();
  error_shape_ = reader_.error_shape();
  Request request = reader_.take();
  begin_exchange(request, request.keep_alive);
  request.peer = from_proxy_
                     ? forwarded_client(peer_, request.headers, server_->settings.trusted_proxies)
                     : peer_;
  request.trace_id = context_.trace_id;
  in_flight_ = true;
  wait_for(Wait::nothing);
  Reply reply(shared_from_this(), sequence_);
  lock.unlock();
  try {
    server_->handler(std::move(request), std::move(reply));
  } catch (...) {
    // If the Reply was not handed on, unwinding dropped it, and that has answered 500.
    server_->defect("A request handler threw an exception", context_.trace_id);
  }
  lock.lock();
}

void Gate::begin_exchange(const Request& request, bool keep_alive) {
  ++sequence_;
  method_ = request.method;
  keep_alive_ = keep_alive;
  context_.instance = request.target.substr(0, request.target.find('?'));
  if (context_.instance.empty()) context_.instance = "/";
  const auto header = request.header("traceparent");
  auto trace = header ? model::parse_traceparent(*header) : std::nullopt;
  context_.trace_id = trace ? std::move(trace->trace_id) : model::new_trace_id();
  traceparent_ = model::make_traceparent(context_.trace_id, trace && trace->sampled);
}

// Answers what never became a request, and ends the connection.
void Gate::refuse(int status, std::string_view detail) {
  begin_exchange(reader_.partial(), false);
  server_->count_answer(status);
  const BodyRuleFor& rule = server_->settings.body_rule;
  const auto shape = rule ? rule(reader_.partial()).error_shape : ErrorShape::problem;
  const Response response = error_response(status, detail, context_, now(), shape);
  http_1_0_ = false;
  std::string message;
  compose(message, response, false);
  write(message);
  if (phase_ == Phase::serving) phase_ = Phase::finishing;
}

void Gate::turn_away(int status, std::string_view detail) {
  const Lock lock(mutex_);
  refuse(status, detail);
  settle();
}

// ---- Answers out

void Gate::answer(std::uint64_t sequence, Response response) noexcept try {
  // One buffer a thread: most answers are written at once and need no memory of their own.
  thread_local std::string message;
  message.clear();
  const bool keep_alive = keep_alive_ && !server_->draining.load(std::memory_order_relaxed);
  compose(message, response, keep_alive);
  const Lock lock(mutex_);
  if (!in_flight_ || sequence != sequence_) return;
  in_flight_ = false;
  server_->count_answer(response.status);
  write(message);
  if (message.capacity() > max_kept_message) message = {};
  if (!keep_alive && phase_ == Phase::serving) phase_ = Phase::finishing;
  if (pumping_) return;
  if (serves() && (readable_ || !unread_.empty())) rearm();
  settle();
} catch (...) {
  abort();  // out of memory: a connection that ends is better than one that hangs
}

// Reports an error, and appends the answer's bytes to `message`.
void Gate::compose(std::string& message, const Response& response, bool keep_alive) const {
  const auto& settings = server_->settings;
  if (response.status >= 400 && settings.on_error) {
    settings.on_error({.method = method_,
                       .route = response.route,
                       .status = response.status,
                       .reason = response.reason,
                       .trace_id = context_.trace_id});
  }
  write_response(message, response,
                 {.head = method_ == Method::head,
                  .http_1_0 = http_1_0_,
                  .keep_alive = keep_alive,
                  .cors = settings.cors,
                  .trace_id = context_.trace_id,
                  .traceparent = traceparent_},
                 now());
}

void Gate::abandoned(std::uint64_t sequence) noexcept try {
  server_->defect("A request was dropped without an answer", context_.trace_id);
  answer(sequence,
         error_response(500, "The request could not be completed.", context_, now(), error_shape_));
} catch (...) {
  abort();
}

void Gate::write(std::string_view bytes) {
  const std::size_t sent = unsent_.empty() ? write_some(bytes) : 0;
  if (phase_ == Phase::ended || sent == bytes.size()) return;
  unsent_.append(bytes.substr(sent));
  wait_for(Wait::write);
}

// As much as the socket takes without waiting. Ends the connection if it is broken.
std::size_t Gate::write_some(std::string_view bytes) {
  std::size_t sent = 0;
  while (sent < bytes.size() && phase_ != Phase::ended) {
    const auto count =
        ::send(descriptor_, bytes.data() + sent, bytes.size() - sent, MSG_NOSIGNAL | MSG_DONTWAIT);
    if (count >= 0) {
      sent += static_cast<std::size_t>(count);
    } else if (errno == EAGAIN || errno == EWOULDBLOCK) {
      break;
    } else if (errno != EINTR) {
      end();
    }
  }
  return sent;
}

void Gate::flush() {
  const std::size_t count = write_some(std::string_view(unsent_).substr(sent_));
  if (phase_ == Phase::ended) return;
  sent_ += count;
  if (sent_ < unsent_.size()) {
    if (count != 0) wait_for(Wait::write);
    return;
  }
  unsent_ = {};
  sent_ = 0;
  wait_for(Wait::nothing);
  settle();
}

// ---- The connection's end

// Decides what the connection waits for once nobody works on it.
void Gate::settle() {
  if (phase_ == Phase::ended || phase_ == Phase::lingering || !unsent_.empty()) return;
  if (in_flight_ || (phase_ == Phase::serving && !unread_.empty())) return wait_for(Wait::nothing);
  if (phase_ == Phase::finishing || half_closed_) return finish();
  Wait wait = Wait::head;
  if (reader_.idle()) wait = Wait::idle;
  if (reader_.in_body()) wait = Wait::body;
  if (wait != wait_) wait_for(wait);
}

// Our side ends; the client's is read on for a while, because closing with bytes unread would reset
// the connection, and the answer with it.
void Gate::finish() {
  if (half_closed_) return end();
  ::shutdown(descriptor_, SHUT_WR);
  phase_ = Phase::lingering;
  wait_for(Wait::linger);
  rearm();
}

// The reactor closes what has been shut down.
void Gate::end() {
  if (phase_ == Phase::ended) return;
  phase_ = Phase::ended;
  wait_for(Wait::nothing);
  unread_ = {};
  unsent_ = {};
  ::shutdown(descriptor_, SHUT_RDWR);
  rearm();
}

void Gate::close() {
  const Lock lock(mutex_);
  end();
  // A child that has not yet replaced its program holds a copy, which would keep the events coming.
  (void)control(epoll_, EPOLL_CTL_DEL, descriptor_, this);
  ::close(std::exchange(descriptor_, -1));
}

void Gate::abort() {
  const Lock lock(mutex_);
  end();
}

void Gate::wait_for(Wait wait) {
  const HttpSettings& settings = server_->settings;
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
  if (!due && !server_->draining.load(std::memory_order_relaxed)) return;
  const Lock lock(mutex_);
  // While draining nobody need wait for a request that has not begun.
  if (server_->draining.load(std::memory_order_relaxed) && wait_ == Wait::idle) return end();
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
      return end();
  }
}

}  // namespace conversed::api
