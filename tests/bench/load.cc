#include "tests/bench/load.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <string_view>
#include <vector>

namespace conversed::bench {
namespace {

using Clock = std::chrono::steady_clock;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::exit(1);
}

int connect_to(std::uint16_t port) {
  const int fd = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  if (fd < 0) give_up("socket");
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (connect(fd, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0) give_up("connect");
  const int on = 1;
  setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
  return fd;
}

struct Connection {
  int fd = -1;
  std::string received;
  Clock::time_point sent_at;
};

// The length of the first whole answer in `text`, in bytes; 0 if it is incomplete.
std::size_t whole_answer(std::string_view text) {
  const auto end = text.find("\r\n\r\n");
  if (end == std::string_view::npos) return 0;
  std::size_t length = 0;
  for (const std::string_view name : {"Content-Length: ", "content-length: "}) {
    if (const auto at = text.substr(0, end).find(name); at != std::string_view::npos) {
      length = std::strtoul(text.data() + at + name.size(), nullptr, 10);
      break;
    }
  }
  const std::size_t total = end + 4 + length;
  return text.size() >= total ? total : 0;
}

class Load {
 public:
  explicit Load(const LoadSettings& settings) : settings_(settings) {}

  LoadResult run() {
    const int epoll = epoll_create1(EPOLL_CLOEXEC);
    connections_.resize(settings_.connections);
    const auto began = Clock::now();
    deadline_ =
        settings_.duration.count() > 0 ? began + settings_.duration : Clock::time_point::max();
    for (std::size_t i = 0; i < connections_.size(); ++i) {
      connections_[i].fd = connect_to(settings_.ports[i % settings_.ports.size()]);
      epoll_event event{};
      event.events = EPOLLIN;
      event.data.u64 = i;
      epoll_ctl(epoll, EPOLL_CTL_ADD, connections_[i].fd, &event);
    }
    for (auto& connection : connections_) send_next(connection);
    std::array<epoll_event, 256> events{};
    while (in_flight_ > 0) {
      const int ready = epoll_wait(epoll, events.data(), static_cast<int>(events.size()), 10'000);
      if (ready == 0) break;  // no answer for ten seconds: requests in flight count as refused
      for (int i = 0; i < ready; ++i) {
        take(connections_[events[static_cast<std::size_t>(i)].data.u64]);
      }
    }
    result_.refused += in_flight_;
    result_.took = Clock::now() - began;
    for (const auto& connection : connections_) {
      if (connection.fd >= 0) close(connection.fd);
    }
    close(epoll);
    return std::move(result_);
  }

 private:
  void send_next(Connection& connection) {
    const bool enough = settings_.requests > 0 && next_ >= settings_.requests;
    connection.sent_at = Clock::now();
    if (enough || connection.sent_at >= deadline_) return;
    const std::string body = settings_.body(next_++);
    std::string request = settings_.head;
    request += "Content-Length: " + std::to_string(body.size()) + "\r\n\r\n" + body;
    if (::send(connection.fd, request.data(), request.size(), MSG_NOSIGNAL) !=
        static_cast<ssize_t>(request.size())) {
      ++result_.refused;
      return;
    }
    ++in_flight_;
  }

  void take(Connection& connection) {
    std::array<char, 16384> buffer{};
    const auto got = recv(connection.fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
    if (got <= 0) {
      close(connection.fd);
      connection.fd = -1;
      ++result_.refused;
      --in_flight_;
      return;
    }
    connection.received.append(buffer.data(), static_cast<std::size_t>(got));
    const std::size_t size = whole_answer(connection.received);
    if (size == 0) return;
    if (connection.received.compare(9, 3, "200") == 0) {
      ++result_.answered;
      result_.latency.add(Clock::now() - connection.sent_at);
    } else {
      if (result_.refused == 0) std::fprintf(stderr, "refused: %s\n", connection.received.c_str());
      ++result_.refused;
    }
    connection.received.erase(0, size);
    --in_flight_;
    send_next(connection);
  }

  const LoadSettings& settings_;
  std::vector<Connection> connections_;
  Clock::time_point deadline_;
  std::uint64_t next_ = 0;
  std::uint64_t in_flight_ = 0;
  LoadResult result_;
};

}  // namespace

LoadResult run_load(const LoadSettings& settings) {
  return Load(settings).run();
}

}  // namespace conversed::bench
