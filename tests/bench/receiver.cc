#include "tests/bench/receiver.h"

#include <arpa/inet.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <array>
#include <cstdio>
#include <cstdlib>
#include <vector>

namespace conversed::bench {
namespace {

constexpr std::string_view answer = "HTTP/1.1 204 No Content\r\n\r\n";

// The value of a header, in lower-case or usual spelling; empty if the head lacks it.
std::string_view header(std::string_view head, std::string_view name) {
  for (std::size_t line = head.find("\r\n"); line != std::string_view::npos;
       line = head.find("\r\n", line + 2)) {
    const auto text = head.substr(line + 2);
    if (text.size() < name.size() + 2 || text[name.size()] != ':') continue;
    bool same = true;
    for (std::size_t i = 0; i < name.size() && same; ++i) {
      same = (static_cast<unsigned char>(text[i]) | 0x20U) ==
             (static_cast<unsigned char>(name[i]) | 0x20U);
    }
    if (same) return text.substr(name.size() + 2, text.find("\r\n") - name.size() - 2);
  }
  return {};
}

void add(int epoll, int fd) {
  epoll_event event{};
  event.events = EPOLLIN;
  event.data.fd = fd;
  epoll_ctl(epoll, EPOLL_CTL_ADD, fd, &event);
}

}  // namespace

Receiver::Receiver(std::uint16_t port, OnPost on_post) : on_post_(std::move(on_post)) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof on);
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_port = htons(port);
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), sizeof address) != 0 ||
      listen(listener_, 512) != 0) {
    std::perror("receiver");
    std::exit(1);
  }
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  stop_event_ = eventfd(0, EFD_CLOEXEC);
  add(epoll_, listener_);
  add(epoll_, stop_event_);
  thread_ = std::jthread([this] { serve(); });
}

Receiver::~Receiver() {
  stop();
}

void Receiver::serve() {
  std::array<epoll_event, 128> events{};
  for (;;) {
    const int ready = epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), -1);
    for (int i = 0; i < ready; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == stop_event_) return;
      if (fd != listener_) {
        read_from(fd);
        continue;
      }
      const int accepted = accept4(listener_, nullptr, nullptr, SOCK_CLOEXEC);
      if (accepted < 0) continue;
      const int on = 1;
      setsockopt(accepted, IPPROTO_TCP, TCP_NODELAY, &on, sizeof on);
      add(epoll_, accepted);
    }
    {
      const std::lock_guard lock(mutex_);
      progress_ = true;
    }
    progressed_.notify_one();
  }
}

void Receiver::read_from(int fd) {
  std::array<char, 65536> buffer{};
  const auto got = recv(fd, buffer.data(), buffer.size(), MSG_DONTWAIT);
  if (got <= 0) {
    close(fd);
    received_.erase(fd);
    return;
  }
  std::string& text = received_[fd];
  text.append(buffer.data(), static_cast<std::size_t>(got));
  for (;;) {
    const auto end = text.find("\r\n\r\n");
    if (end == std::string::npos) return;
    const std::string_view head = std::string_view(text).substr(0, end + 2);
    const auto length =
        std::strtoul(std::string(header(head, "content-length")).c_str(), nullptr, 10);
    if (text.size() < end + 4 + length) return;
    on_post_(std::string(header(head, "webhook-id")),
             std::string_view(text).substr(end + 4, length));
    text.erase(0, end + 4 + length);
    if (send(fd, answer.data(), answer.size(), MSG_NOSIGNAL) < 0) return;
  }
}

bool Receiver::wait_for_progress(std::chrono::milliseconds at_most) {
  std::unique_lock lock(mutex_);
  const bool came = progressed_.wait_for(lock, at_most, [this] { return progress_; });
  progress_ = false;
  return came;
}

void Receiver::stop() {
  if (!thread_.joinable()) return;
  eventfd_write(stop_event_, 1);
  thread_.join();
  for (const auto& [fd, text] : received_) close(fd);
  for (const int fd : {listener_, epoll_, stop_event_}) close(fd);
}

}  // namespace conversed::bench
