// A client that writes raw bytes and frames answers as HTTP. Every wait is on the socket, with a
// time limit that only a defect reaches.
#pragma once

#include <arpa/inet.h>
#include <netinet/in.h>
#include <netinet/tcp.h>
#include <poll.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstdint>
#include <cstdlib>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

namespace conversed::api::test {

struct Answer {
  int status = 0;
  std::multimap<std::string, std::string> headers;  // names in lower case
  std::string body;

  [[nodiscard]] std::string header(const std::string& name) const {
    const auto at = headers.find(name);
    return at == headers.end() ? std::string() : at->second;
  }
};

class RawClient {
 public:
  explicit RawClient(std::uint16_t port, int receive_buffer = 0) {
    descriptor_ = ::socket(AF_INET, SOCK_STREAM | SOCK_CLOEXEC, 0);
    if (receive_buffer > 0) {
      ::setsockopt(descriptor_, SOL_SOCKET, SO_RCVBUF, &receive_buffer, sizeof receive_buffer);
    }
    const int one = 1;
    ::setsockopt(descriptor_, IPPROTO_TCP, TCP_NODELAY, &one, sizeof one);
    sockaddr_in address{};
    address.sin_family = AF_INET;
    address.sin_port = htons(port);
    address.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    connected_ =
        ::connect(descriptor_, reinterpret_cast<const sockaddr*>(&address), sizeof address) == 0;
  }
  ~RawClient() { close(); }
  RawClient(const RawClient&) = delete;
  RawClient& operator=(const RawClient&) = delete;

  [[nodiscard]] bool connected() const { return connected_; }

  // False if the connection is broken.
  bool send(std::string_view bytes) {
    while (!bytes.empty()) {
      const auto count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (count <= 0) return false;
      bytes.remove_prefix(static_cast<std::size_t>(count));
    }
    return true;
  }

  // Sends without waiting. Returns the count of bytes that the socket took.
  std::size_t send_at_once(std::string_view bytes) {
    const auto count = ::send(descriptor_, bytes.data(), bytes.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    return count > 0 ? static_cast<std::size_t>(count) : 0;
  }
  [[nodiscard]] bool writable_within(std::chrono::milliseconds limit) const {
    pollfd entry{descriptor_, POLLOUT, 0};
    return ::poll(&entry, 1, static_cast<int>(limit.count())) > 0;
  }

  void half_close() { ::shutdown(descriptor_, SHUT_WR); }
  // Ends the connection with a reset.
  void reset() {
    const linger hard{1, 0};
    ::setsockopt(descriptor_, SOL_SOCKET, SO_LINGER, &hard, sizeof hard);
    close();
  }
  void close() {
    if (descriptor_ >= 0) ::close(std::exchange(descriptor_, -1));
  }

  // The next whole answer, 100 (Continue) included; nothing if the stream ends first.
  std::optional<Answer> read_answer(bool to_head = false) {
    std::size_t end = 0;
    while ((end = input_.find("\r\n\r\n")) == std::string::npos) {
      if (!read_more()) return std::nullopt;
    }
    Answer answer = parse(input_.substr(0, end + 2));
    input_.erase(0, end + 4);
    const auto length = answer.header("content-length");
    const std::size_t size =
        to_head || length.empty() ? 0 : std::strtoul(length.c_str(), nullptr, 10);
    while (input_.size() < size) {
      if (!read_more()) return std::nullopt;
    }
    answer.body = input_.substr(0, size);
    input_.erase(0, size);
    return answer;
  }

  // True if the server closes without another byte.
  bool read_end() {
    if (!input_.empty()) return false;
    return !read_more() && input_.empty() && ended_;
  }

  std::string read_all() {
    while (read_more()) {
    }
    return std::exchange(input_, {});
  }

  // True if the socket has bytes to read now.
  [[nodiscard]] bool readable() const {
    pollfd entry{descriptor_, POLLIN, 0};
    return !input_.empty() || ::poll(&entry, 1, 0) > 0;
  }

 private:
  bool read_more() {
    pollfd entry{descriptor_, POLLIN, 0};
    if (::poll(&entry, 1, 20'000) <= 0) return false;
    char buffer[65536];
    const auto count = ::recv(descriptor_, buffer, sizeof buffer, 0);
    if (count <= 0) {
      ended_ = true;
      return false;
    }
    input_.append(buffer, static_cast<std::size_t>(count));
    return true;
  }

  static Answer parse(std::string_view head) {
    Answer answer;
    answer.status = std::atoi(std::string(head.substr(9, 3)).c_str());
    head.remove_prefix(head.find("\r\n") + 2);
    while (!head.empty()) {
      const auto end = head.find("\r\n");
      const auto line = head.substr(0, end);
      head.remove_prefix(end + 2);
      const auto colon = line.find(": ");
      std::string name(line.substr(0, colon));
      std::transform(name.begin(), name.end(), name.begin(),
                     [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
      answer.headers.emplace(name, std::string(line.substr(colon + 2)));
    }
    return answer;
  }

  int descriptor_ = -1;
  bool connected_ = false;
  bool ended_ = false;
  std::string input_;
};

}  // namespace conversed::api::test
