#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <span>
#include <string>
#include <string_view>

#include "daemon/outbound/egress.h"
#include "daemon/outbound/http_client.h"

namespace conversed::daemon {

class HttpTransfer;

// Shared by the connections of one HttpClient.
struct HttpConnectionSetup {
  CURLM* multi = nullptr;
  CURLSH* sessions = nullptr;                        // of TLS
  std::string authorities;                           // HttpClientSettings::authorities
  curl_closesocket_callback close_socket = nullptr;  // called when a connection ends
  void* close_data = nullptr;
};

// A connection to a server. libcurl resolves the name, connects and does TLS
// (CURLOPT_CONNECT_ONLY). libcurl does not speak HTTP here: that would take most of a delivery's
// time. Only http_client.cc and http_transfer.* include this. One thread.
class HttpConnection {
 public:
  using Policy = std::shared_ptr<const Egress>;
  enum class Io : std::uint8_t {
    done,     // some bytes at least; none: the other end has closed
    blocked,  // wait for the socket
    broken,
  };

  // `origin`: the URL up to its path. `setup` must outlive the connection.
  HttpConnection(const HttpConnectionSetup& setup, std::string origin, Policy policy);
  // Closes the connection.
  ~HttpConnection();
  HttpConnection(const HttpConnection&) = delete;
  HttpConnection& operator=(const HttpConnection&) = delete;

  // Begins to connect. libcurl's message tells the end. False: the origin is invalid.
  [[nodiscard]] bool connect(std::chrono::milliseconds timeout);
  // Takes the connection over from libcurl, which has connected. False: it is broken.
  [[nodiscard]] bool take_over();
  // Why libcurl could not connect.
  [[nodiscard]] HttpError error_of(CURLcode code) const;

  [[nodiscard]] bool serves(std::string_view origin, const Policy& policy) const {
    return origin_ == origin && policy_ == policy;
  }
  // The value of the header Host (RFC 9110 §7.2), once `connect` has begun.
  [[nodiscard]] const std::string& host_field() const { return host_field_; }
  // -1 until `take_over`.
  [[nodiscard]] int socket() const { return socket_; }
  // The socket may be quiet although TLS holds bytes: read until `blocked`.
  [[nodiscard]] bool is_tls() const { return is_tls_; }

  // Sends from the front of `bytes`, and removes from it what was sent.
  [[nodiscard]] Io send(std::string_view& bytes) const;
  // Reads up to `room` and sets `count`.
  [[nodiscard]] Io receive(std::span<char> room, std::size_t& count) const;

  // For HttpClient: whose exchange the connection serves, null for none; and since when none.
  HttpTransfer* user = nullptr;
  std::chrono::steady_clock::time_point idle_since{};

 private:
  static curl_socket_t on_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  [[nodiscard]] bool read_origin();

  const HttpConnectionSetup& setup_;
  const std::string origin_;
  const Policy policy_;
  const bool is_tls_;
  CURL* const easy_;
  std::string host_;  // as libcurl reads it
  std::string host_field_;
  int socket_ = -1;
  bool is_added_ = false;
  bool egress_refused_ = false;
};

}  // namespace conversed::daemon
