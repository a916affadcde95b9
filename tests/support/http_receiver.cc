#include "tests/support/http_receiver.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <sys/epoll.h>
#include <sys/eventfd.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <cstdlib>
#include <optional>

namespace conversed::tests {
namespace {

using SteadyClock = std::chrono::steady_clock;

[[noreturn]] void give_up(const char* what) {
  std::perror(what);
  std::abort();
}

std::string lower(std::string_view text) {
  std::string folded(text);
  std::transform(folded.begin(), folded.end(), folded.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return folded;
}

// Takes one whole request off the front of `in`; none while it is incomplete.
std::optional<HttpReceiver::Request> next_request(std::string& in) {
  const auto head_end = in.find("\r\n\r\n");
  if (head_end == std::string::npos) return std::nullopt;
  HttpReceiver::Request request;
  std::string_view head = std::string_view(in).substr(0, head_end + 2);
  std::size_t length = 0;
  for (bool first = true; !head.empty(); first = false) {
    const auto end = head.find("\r\n");
    const auto line = head.substr(0, end);
    head.remove_prefix(end + 2);
    if (first) {
      const auto space = line.find(' ');
      request.method = line.substr(0, space);
      request.target = line.substr(space + 1, line.rfind(' ') - space - 1);
      continue;
    }
    const auto colon = line.find(':');
    auto value = line.substr(colon + 1);
    value.remove_prefix(std::min(value.find_first_not_of(' '), value.size()));
    auto name = lower(line.substr(0, colon));
    if (name == "content-length") {
      std::from_chars(value.data(), value.data() + value.size(), length);
    }
    request.headers.emplace(std::move(name), value);
  }
  const auto whole = head_end + 4 + length;
  if (in.size() < whole) return std::nullopt;
  request.body = in.substr(head_end + 4, length);
  in.erase(0, whole);
  return request;
}

std::string serialize(const HttpReceiver::Answer& answer, bool with_body) {
  if (!answer.raw.empty()) return answer.raw;
  std::string bytes = "HTTP/1.1 " + std::to_string(answer.status) +
                      " Told So\r\nContent-Length: " + std::to_string(answer.body.size()) + "\r\n";
  for (const auto& [name, value] : answer.headers) bytes += name + ": " + value + "\r\n";
  bytes += "\r\n";
  if (with_body) bytes += answer.body;
  return bytes;
}

}  // namespace

HttpReceiver::HttpReceiver(Handler handler, Recording recording, std::uint16_t port)
    : recording_(recording), handler_(std::make_shared<const Handler>(std::move(handler))) {
  listener_ = socket(AF_INET, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  const int on = 1;
  setsockopt(listener_, SOL_SOCKET, SO_REUSEADDR, &on, sizeof(on));
  sockaddr_in address{};
  address.sin_family = AF_INET;
  address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
  address.sin_port = htons(port);
  socklen_t size = sizeof(address);
  if (bind(listener_, reinterpret_cast<sockaddr*>(&address), size) != 0 ||
      listen(listener_, 1024) != 0 ||
      getsockname(listener_, reinterpret_cast<sockaddr*>(&address), &size) != 0) {
    give_up("HttpReceiver");
  }
  port_ = ntohs(address.sin_port);
  epoll_ = epoll_create1(EPOLL_CLOEXEC);
  wake_ = eventfd(0, EFD_CLOEXEC | EFD_NONBLOCK);
  for (const int fd : {listener_, wake_}) {
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    if (epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event) != 0) give_up("HttpReceiver");
  }
  thread_ = std::thread([this] { run(); });
}

HttpReceiver::~HttpReceiver() {
  stop_.store(true);
  eventfd_write(wake_, 1);
  thread_.join();
  for (const auto& [fd, connection] : open_) close(fd);
  for (const int fd : {listener_, epoll_, wake_}) close(fd);
}

std::string HttpReceiver::url(std::string_view path) const {
  return "http://127.0.0.1:" + std::to_string(port_) + std::string(path);
}

void HttpReceiver::set_handler(Handler handler) {
  const std::lock_guard lock(mutex_);
  handler_ = std::make_shared<const Handler>(std::move(handler));
}

bool HttpReceiver::wait_for(std::size_t count, std::chrono::milliseconds timeout) const {
  std::unique_lock lock(mutex_);
  return arrived_.wait_for(lock, timeout, [&] { return count_.load() >= count; });
}

std::vector<HttpReceiver::Request> HttpReceiver::requests() const {
  const std::lock_guard lock(mutex_);
  return requests_;
}

void HttpReceiver::run() {
  std::array<epoll_event, 128> events;
  while (!stop_.load()) {
    const int timeout_ms = send_delayed();
    const int count =
        epoll_wait(epoll_, events.data(), static_cast<int>(events.size()), timeout_ms);
    for (int i = 0; i < count; ++i) {
      const int fd = events[static_cast<std::size_t>(i)].data.fd;
      if (fd == wake_) return;
      if (fd == listener_) {
        accept_all();
      } else if ((events[static_cast<std::size_t>(i)].events & EPOLLOUT) != 0) {
        const auto found = open_.find(fd);
        if (found != open_.end()) flush(fd, found->second);
      } else if (open_.contains(fd)) {
        read_from(fd);
      }
    }
  }
}

void HttpReceiver::accept_all() {
  for (;;) {
    const int fd = accept4(listener_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
    if (fd < 0) return;
    const int on = 1;
    setsockopt(fd, IPPROTO_TCP, TCP_NODELAY, &on, sizeof(on));
    epoll_event event{};
    event.events = EPOLLIN;
    event.data.fd = fd;
    epoll_ctl(epoll_, EPOLL_CTL_ADD, fd, &event);
    open_[fd].serial = connections_.fetch_add(1) + 1;
  }
}

void HttpReceiver::read_from(int fd) {
  std::array<char, 65536> buffer;
  const auto got = read(fd, buffer.data(), buffer.size());
  if (got <= 0) {
    drop(fd);
    return;
  }
  open_.at(fd).in.append(buffer.data(), static_cast<std::size_t>(got));
  handle_input(fd);
}

void HttpReceiver::handle_input(int fd) {
  for (;;) {
    const auto found = open_.find(fd);
    if (found == open_.end() || found->second.waits) return;
    auto request = next_request(found->second.in);
    if (!request) return;
    request->connection = found->second.serial;
    respond(fd, found->second, std::move(*request));
  }
}

void HttpReceiver::respond(int fd, Connection& connection, Request request) {
  std::shared_ptr<const Handler> handler;
  {
    const std::lock_guard lock(mutex_);
    handler = handler_;
  }
  const Answer answer = *handler ? (*handler)(request) : Answer{};
  const bool with_body = request.method != "HEAD";
  {
    const std::lock_guard lock(mutex_);
    if (recording_ == Recording::on) requests_.push_back(std::move(request));
    count_.fetch_add(1);
  }
  arrived_.notify_all();
  if (answer.then == Then::close) {
    if (!answer.raw.empty()) send(fd, answer.raw.data(), answer.raw.size(), MSG_NOSIGNAL);
    drop(fd);
    return;
  }
  connection.waits = answer.then == Then::silence || answer.delay.count() > 0;
  if (answer.then == Then::silence) return;
  std::string bytes = serialize(answer, with_body);
  if (connection.waits) {
    delayed_.emplace(SteadyClock::now() + answer.delay,
                     Delayed{fd, connection.serial, std::move(bytes)});
    return;
  }
  connection.out += bytes;
  flush(fd, connection);
}

void HttpReceiver::flush(int fd, Connection& connection) {
  const auto sent = send(fd, connection.out.data(), connection.out.size(), MSG_NOSIGNAL);
  if (sent > 0) connection.out.erase(0, static_cast<std::size_t>(sent));
  if (sent < 0 && errno != EAGAIN) {
    drop(fd);
    return;
  }
  epoll_event event{};
  event.events = connection.out.empty() ? EPOLLIN : EPOLLIN | EPOLLOUT;
  event.data.fd = fd;
  if (!connection.out.empty() || sent == 0) epoll_ctl(epoll_, EPOLL_CTL_MOD, fd, &event);
}

int HttpReceiver::send_delayed() {
  while (!delayed_.empty()) {
    const auto first = delayed_.begin();
    const auto left =
        std::chrono::ceil<std::chrono::milliseconds>(first->first - SteadyClock::now());
    if (left.count() > 0) return static_cast<int>(left.count());
    const Delayed due = std::move(first->second);
    delayed_.erase(first);
    const auto found = open_.find(due.fd);
    if (found == open_.end() || found->second.serial != due.serial) continue;
    found->second.waits = false;
    found->second.out += due.bytes;
    flush(due.fd, found->second);
    handle_input(due.fd);
  }
  return -1;
}

void HttpReceiver::drop(int fd) {
  close(fd);
  open_.erase(fd);
}

}  // namespace conversed::tests
