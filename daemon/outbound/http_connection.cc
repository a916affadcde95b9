#include "daemon/outbound/http_connection.h"

#include <sys/socket.h>

#include <algorithm>
#include <cerrno>
#include <new>
#include <utility>

namespace conversed::daemon {
namespace {

constexpr long connect_timeout_ms = 5000;  // or the request's own, if that is shorter
constexpr long dns_cache_s = 60;

// A part of the URL; empty if there is none.
std::string part_of(CURLU* url, CURLUPart part, unsigned flags) {
  char* text = nullptr;
  if (curl_url_get(url, part, &text, flags) != CURLUE_OK) return {};
  std::string copy(text);
  curl_free(text);
  return copy;
}

}  // namespace

HttpConnection::HttpConnection(const HttpConnectionSetup& setup, std::string origin, Policy policy)
    : setup_(setup),
      origin_(std::move(origin)),
      policy_(std::move(policy)),
      is_tls_(origin_.starts_with("https:")),
      easy_(curl_easy_init()) {
  if (easy_ == nullptr) throw std::bad_alloc();
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_CONNECT_ONLY, 1L);
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_PROXY, "");
  curl_easy_setopt(easy_, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy_, CURLOPT_DNS_CACHE_TIMEOUT, dns_cache_s);
  // A name server that does not answer must not block the thread after the time-out.
  curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETFUNCTION, &HttpConnection::on_socket);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETFUNCTION, setup.close_socket);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETDATA, setup.close_data);
  curl_easy_setopt(easy_, CURLOPT_SHARE, setup.sessions);
  if (!setup.authorities.empty()) {
    curl_easy_setopt(easy_, CURLOPT_CAINFO, setup.authorities.c_str());
  }
}

HttpConnection::~HttpConnection() {
  if (is_added_) curl_multi_remove_handle(setup_.multi, easy_);
  curl_easy_cleanup(easy_);
}

bool HttpConnection::connect(std::chrono::milliseconds timeout) {
  if (!read_origin() || curl_easy_setopt(easy_, CURLOPT_URL, origin_.c_str()) != CURLE_OK) {
    return false;
  }
  const auto most = std::clamp<long>(static_cast<long>(timeout.count()), 1, connect_timeout_ms);
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, most);
  is_added_ = curl_multi_add_handle(setup_.multi, easy_) == CURLM_OK;
  return is_added_;
}

bool HttpConnection::read_origin() {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> url(curl_url(), curl_url_cleanup);
  if (!url || curl_url_set(url.get(), CURLUPART_URL, origin_.c_str(), 0) != CURLUE_OK) return false;
  host_ = part_of(url.get(), CURLUPART_HOST, 0);
  host_field_ = host_;
  const auto port = part_of(url.get(), CURLUPART_PORT, CURLU_NO_DEFAULT_PORT);
  if (!port.empty()) host_field_.append(":").append(port);
  return !host_.empty();
}

bool HttpConnection::take_over() {
  curl_socket_t active = CURL_SOCKET_BAD;
  if (curl_easy_getinfo(easy_, CURLINFO_ACTIVESOCKET, &active) != CURLE_OK) return false;
  // libcurl closes connections that have ended or are old, unless they are in use. The first read
  // puts this one in use. There is nothing to read yet: an answer before the request has no
  // exchange.
  char byte = 0;
  std::size_t count = 0;
  if (curl_easy_recv(easy_, &byte, 1, &count) != CURLE_AGAIN) return false;
  socket_ = active;
  return true;
}

HttpError HttpConnection::error_of(CURLcode code) const {
  switch (code) {
    case CURLE_OPERATION_TIMEDOUT:
      return HttpError::timeout;
    case CURLE_URL_MALFORMAT:
    case CURLE_UNSUPPORTED_PROTOCOL:
    case CURLE_LOGIN_DENIED:
      return HttpError::invalid;
    default:
      return egress_refused_ ? HttpError::egress_refused : HttpError::refused;
  }
}

HttpConnection::Io HttpConnection::send(std::string_view& bytes) const {
  while (!bytes.empty()) {
    std::size_t count = 0;
    if (is_tls_) {
      const auto code = curl_easy_send(easy_, bytes.data(), bytes.size(), &count);
      if (code != CURLE_OK) return code == CURLE_AGAIN ? Io::blocked : Io::broken;
    } else {
      // libcurl would search its connections for this one.
      const auto sent = ::send(socket_, bytes.data(), bytes.size(), MSG_NOSIGNAL);
      if (sent < 0 && errno == EINTR) continue;
      if (sent < 0) return errno == EAGAIN ? Io::blocked : Io::broken;
      count = static_cast<std::size_t>(sent);
    }
    bytes.remove_prefix(count);
  }
  return Io::done;
}

HttpConnection::Io HttpConnection::receive(std::span<char> room, std::size_t& count) const {
  if (is_tls_) {
    const auto code = curl_easy_recv(easy_, room.data(), room.size(), &count);
    if (code == CURLE_OK) return Io::done;
    return code == CURLE_AGAIN ? Io::blocked : Io::broken;
  }
  auto received = ::recv(socket_, room.data(), room.size(), 0);
  while (received < 0 && errno == EINTR) received = ::recv(socket_, room.data(), room.size(), 0);
  if (received < 0) return errno == EAGAIN ? Io::blocked : Io::broken;
  count = static_cast<std::size_t>(received);
  return Io::done;
}

curl_socket_t HttpConnection::on_socket(void* self, curlsocktype purpose, curl_sockaddr* address) {
  auto& connection = *static_cast<HttpConnection*>(self);
  if (purpose != CURLSOCKTYPE_IPCXN ||
      !connection.policy_->allows(connection.host_, &address->addr)) {
    connection.egress_refused_ = true;
    return CURL_SOCKET_BAD;
  }
  return ::socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                  address->protocol);
}

}  // namespace conversed::daemon
