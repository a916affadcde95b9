#pragma once

#include <curl/curl.h>

#include <chrono>
#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "daemon/outbound/egress.h"
#include "daemon/outbound/http_client.h"

namespace conversed::daemon {

// One exchange on one of libcurl's easy handles. The next exchange reuses it. Only http_client.cc
// includes this. One thread.
class HttpTransfer {
 public:
  // `close_socket` and `close_data` are called when a connection ends.
  HttpTransfer(curl_closesocket_callback close_socket, void* close_data);
  ~HttpTransfer();
  HttpTransfer(const HttpTransfer&) = delete;
  HttpTransfer& operator=(const HttpTransfer&) = delete;

  // Takes the exchange and prepares the handle for it. False if the request is invalid; `release`
  // still returns the callback.
  [[nodiscard]] bool prepare(HttpClient::Exchange exchange, EgressInForce egress);

  // The outcome of the exchange. `code` is libcurl's result.
  [[nodiscard]] HttpOutcome outcome(CURLcode code);

  // When to end the exchange although the body goes on. None: wait for the whole body.
  [[nodiscard]] std::optional<std::chrono::steady_clock::time_point> cut_off() const;

  [[nodiscard]] std::chrono::steady_clock::time_point begun() const { return begun_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return exchange_.request.timeout; }

  // Ends the exchange, wipes its secrets and returns its callback.
  [[nodiscard]] HttpClient::Callback release();

  [[nodiscard]] CURL* easy() const { return easy_; }

 private:
  static std::size_t on_header(char* data, std::size_t size, std::size_t count, void* self);
  static std::size_t on_body(char* data, std::size_t size, std::size_t count, void* self);
  static curl_socket_t on_socket(void* self, curlsocktype purpose, curl_sockaddr* address);
  [[nodiscard]] bool set_headers();
  void set_method();
  void set_connections();
  [[nodiscard]] bool status_is_enough() const;
  [[nodiscard]] HttpError error_of(CURLcode code) const;

  EgressInForce egress_;
  CURL* const easy_;
  std::vector<curl_slist> headers_;  // libcurl's list, into `header_lines_`
  std::string header_lines_;         // each ends with NUL
  HttpClient::Exchange exchange_;
  std::chrono::steady_clock::time_point begun_{};
  std::string response_;
  std::size_t header_bytes_ = 0;  // of all answers and trailers, interim answers included
  // When the headers of the final answer ended.
  std::optional<std::chrono::steady_clock::time_point> headers_in_;
  bool too_large_ = false;
  bool egress_refused_ = false;
};

}  // namespace conversed::daemon
