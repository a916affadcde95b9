#include "api/http/http_server.h"

#include <netdb.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <exception>
#include <system_error>
#include <utility>

#include "api/http/client_address.h"
#include "api/http/gate.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/thread_name.h"

namespace conversed::api {
namespace {

constexpr int backlog = 1024;
constexpr int accepts_at_once = 64;            // between two looks at the clock
constexpr std::size_t read_bytes = 64 * 1024;  // at once
// Connections beyond the limit that are told so; the ones beyond these are closed without a word.
constexpr std::size_t max_turned_away = 256;
constexpr std::size_t max_turned_away_of_one = 16;

// A quarter of the shortest time-out, within reason: how late one may be noticed.
std::chrono::milliseconds round_for(const HttpSettings& settings) {
  const auto shortest =
      std::min({settings.header_timeout, settings.body_timeout, settings.idle_timeout,
                settings.write_timeout, settings.linger_timeout});
  return std::clamp(shortest / 4, std::chrono::milliseconds(5), std::chrono::milliseconds(250));
}

HttpSettings with_clock(HttpSettings settings) {
  static const model::SystemClock system_clock;
  if (settings.clock == nullptr) settings.clock = &system_clock;
  return settings;
}

union SocketName {
  sockaddr_storage storage;  // first: `{}` clears all of it
  sockaddr any;
  sockaddr_in v4;
  sockaddr_in6 v6;
};

std::size_t beyond(std::size_t count, std::size_t limit) {
  return count > limit ? count - limit : 0;
}

std::string last_error() {
  return std::system_category().message(errno);
}

}  // namespace

HttpServer::HttpServer(HttpSettings settings, Handler handler)
    : state_(std::make_shared<ServerState>(with_clock(std::move(settings)), std::move(handler))),
      round_(round_for(state_->settings)) {}

HttpServer::~HttpServer() {
  stop();
  for (const int epoll : epolls_) ::close(epoll);
  if (listener_ >= 0) ::close(listener_);
  if (end_ >= 0) ::close(end_);
}

model::Result<std::unique_ptr<HttpServer>> HttpServer::open(HttpSettings settings,
                                                            Handler handler) {
  if (settings.threads == 0 || settings.max_header == 0 || settings.max_connections == 0) {
    return model::fail(model::Errc::invalid_argument,
                       "threads, max_header and max_connections must be at least 1");
  }
  std::unique_ptr<HttpServer> server(new HttpServer(std::move(settings), std::move(handler)));
  server->end_ = ::eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  epoll_event event{};
  event.events = EPOLLIN;
  for (std::size_t i = 0; i < server->state_->settings.threads; ++i) {
    server->epolls_.push_back(::epoll_create1(EPOLL_CLOEXEC));
    if (::epoll_ctl(server->epolls_.back(), EPOLL_CTL_ADD, server->end_, &event) != 0) {
      return model::fail(model::Errc::unavailable,
                         "no descriptor is left for the HTTP server: " + last_error());
    }
  }
  if (auto listens = server->listen(); !listens) return model::fail(listens.error());
  return server;
}

model::Result<void> HttpServer::listen() {
  const auto& settings = state_->settings;
  const std::string port = std::to_string(settings.port);
  const auto cannot = [&](const std::string& why) {
    return model::fail(model::Errc::unavailable,
                       "cannot listen on " + settings.address + ":" + port + ": " + why);
  };
  addrinfo hints{};
  hints.ai_socktype = SOCK_STREAM;
  hints.ai_flags = AI_PASSIVE | AI_NUMERICSERV;
  addrinfo* found = nullptr;
  const int error = ::getaddrinfo(settings.address.c_str(), port.c_str(), &hints, &found);
  if (error != 0) return cannot(::gai_strerror(error));
  const std::unique_ptr<addrinfo, void (*)(addrinfo*)> place(found, ::freeaddrinfo);
  listener_ = ::socket(place->ai_family, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (listener_ < 0) return cannot(last_error());
  const int on = 1;
  ::setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  ::setsockopt(listener_, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);  // connections inherit it
  if (::bind(listener_, place->ai_addr, place->ai_addrlen) != 0 ||
      ::listen(listener_, backlog) != 0) {
    return cannot(last_error());
  }
  SocketName bound{};
  socklen_t size = sizeof bound;
  if (::getsockname(listener_, &bound.any, &size) != 0) return cannot(last_error());
  port_ = ntohs(bound.any.sa_family == AF_INET6 ? bound.v6.sin6_port : bound.v4.sin_port);
  return {};
}

std::size_t HttpServer::connections() const {
  const std::lock_guard lock(mutex_);
  return gates_.size();
}

AnswerCounts HttpServer::answer_counts() const {
  AnswerCounts counts;
  for (std::size_t at = 0; at < state_->answers.size(); ++at) {
    const std::uint64_t count = state_->answers[at].load(std::memory_order_relaxed);
    if (count != 0) counts.emplace_back(static_cast<int>(at) + 100, count);
  }
  return counts;
}

model::Result<void> HttpServer::start() {
  if (!threads_.empty()) return {};
  const auto& settings = state_->settings;
  try {
    for (std::size_t i = 0; i < epolls_.size(); ++i) {
      auto heartbeat =
          model::heartbeat_of(settings.heartbeats, settings.name + " " + std::to_string(i + 1));
      threads_.emplace_back([this, epoll = epolls_[i], heartbeat = std::move(heartbeat)]() mutable {
        react(epoll, std::move(heartbeat));
      });
    }
    threads_.emplace_back([this] { keep(); });
    return {};
  } catch (const std::exception& failure) {
    return model::fail(model::Errc::internal,
                       std::string("cannot start the HTTP server: ") + failure.what());
  }
}

bool HttpServer::drain(std::chrono::milliseconds limit) {
  state_->draining = true;
  make_round();
  std::unique_lock lock(mutex_);
  return emptied_.wait_for(lock, limit, [&] { return gates_.empty(); });
}

void HttpServer::stop() {
  state_->draining = true;
  stopping_ = true;
  ::eventfd_write(end_, 1);
  threads_.clear();
  decltype(gates_) left;
  {
    const std::lock_guard lock(mutex_);
    left.swap(gates_);
    by_address_.clear();
  }
  for (const auto& [key, gate] : left) gate->close();
}

// ---- The keeper

void HttpServer::keep() {
  const auto& settings = state_->settings;
  model::name_this_thread(settings.name + " keeper");
  auto heartbeat = model::heartbeat_of(settings.heartbeats, settings.name + " keeper");
  std::array<pollfd, 2> sources{pollfd{listener_, POLLIN, 0}, pollfd{end_, POLLIN, 0}};
  auto next_round = std::chrono::steady_clock::now() + round_;
  while (!stopping_) {
    heartbeat.beat();
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(next_round - std::chrono::steady_clock::now());
    const int timeout = static_cast<int>(std::max<std::int64_t>(left.count(), 0));
    if (::poll(sources.data(), sources.size(), timeout) > 0 && sources[0].revents != 0) {
      // Without a free descriptor the listener would be ready all the time.
      sources[0].fd = accept_waiting() ? listener_ : -1;
    }
    if (std::chrono::steady_clock::now() < next_round) continue;
    make_round();
    sources[0].fd = listener_;
    next_round = std::chrono::steady_clock::now() + round_;
  }
}

void HttpServer::make_round() {
  std::vector<std::shared_ptr<Gate>> gates;
  {
    const std::lock_guard lock(mutex_);
    gates.reserve(gates_.size());
    for (const auto& [key, gate] : gates_) gates.push_back(gate);
  }
  const auto now = std::chrono::steady_clock::now();
  for (const auto& gate : gates) gate->tick(now);
}

// False: no descriptor is left for a connection.
bool HttpServer::accept_waiting() {
  for (int i = 0; i < accepts_at_once; ++i) {
    SocketName peer{};
    socklen_t size = sizeof peer;
    const int descriptor = ::accept4(listener_, &peer.any, &size, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (descriptor >= 0) {
      const auto address = config::address_of(&peer.any);
      admit(descriptor, address ? text_of(*address) : std::string());
    } else if (errno == EMFILE || errno == ENFILE || errno == ENOBUFS || errno == ENOMEM) {
      return false;
    } else if (errno != EINTR && errno != ECONNABORTED) {
      return true;
    }
  }
  return true;
}

void HttpServer::admit(int descriptor, std::string peer) {
  const auto& settings = state_->settings;
  std::shared_ptr<Gate> gate;
  try {
    const bool counted = !is_trusted(peer, settings.trusted_proxies);
    const std::string address = counted ? counted_address(peer) : std::string();
    const int epoll = epolls_[accepted_++ % epolls_.size()];
    std::size_t beyond_all = 0;
    std::size_t beyond_one = 0;
    {
      const std::lock_guard lock(mutex_);
      const auto known = by_address_.find(address);
      const std::size_t of_one = known == by_address_.end() ? 0 : known->second;
      beyond_all = beyond(gates_.size() + 1, settings.max_connections);
      if (counted) beyond_one = beyond(of_one + 1, settings.max_connections_per_address);
      if (beyond_all > max_turned_away || beyond_one > max_turned_away_of_one) {
        ::close(descriptor);
        return;
      }
      gate = std::make_shared<Gate>(state_, epoll, descriptor, std::move(peer), address);
      gates_.emplace(gate.get(), gate);
      if (counted) ++by_address_[address];
    }
    if (beyond_all > 0) {
      gate->turn_away(503, "This server has no room for another connection.");
    } else if (beyond_one > 0) {
      gate->turn_away(429, "Too many connections are open from this address; close some.");
    } else if (state_->draining) {
      gate->turn_away(503, "This server is about to stop.");
    }
    if (!gate->watch()) forget(*gate);
  } catch (...) {
    // Out of memory. Nothing would watch the connection's time, so it ends here.
    if (gate) forget(*gate);
    if (!gate) ::close(descriptor);
    state_->defect("A connection could not be taken in");
  }
}

// ---- The reactors

void HttpServer::react(int epoll, model::Heartbeat heartbeat) {
  model::name_this_thread("http");
  std::vector<char> buffer(read_bytes);
  std::array<epoll_event, 128> events{};
  constexpr auto timeout = static_cast<int>(model::beat_interval.count());
  while (!stopping_) {
    model::fault_point("api.loop");
    heartbeat.beat();
    const int count = ::epoll_wait(epoll, events.data(), static_cast<int>(events.size()), timeout);
    for (int i = 0; i < count && !stopping_; ++i) {
      const auto& event = events[static_cast<std::size_t>(i)];
      // Only this thread ends the gates of its epoll set, so those of later events exist.
      if (auto* gate = static_cast<Gate*>(event.data.ptr)) {
        react_to(*gate, event.events, buffer);
      }
    }
  }
}

void HttpServer::react_to(Gate& gate, std::uint32_t events, std::span<char> buffer) {
  bool goes_on = false;
  try {
    goes_on = gate.ready((events & (EPOLLRDHUP | EPOLLHUP | EPOLLERR)) != 0, buffer);
  } catch (...) {
    state_->defect("A connection ran into an exception and was closed");
  }
  if (!goes_on) forget(gate);
}

void HttpServer::forget(Gate& gate) {
  gate.close();
  decltype(gates_)::node_type dropped;  // destroyed after the lock
  const std::lock_guard lock(mutex_);
  dropped = gates_.extract(&gate);
  if (dropped.empty()) return;
  const auto count = by_address_.find(gate.address());
  if (count != by_address_.end() && --count->second == 0) by_address_.erase(count);
  if (gates_.empty()) emptied_.notify_all();
}

}  // namespace conversed::api
