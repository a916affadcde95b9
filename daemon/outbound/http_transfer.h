#pragma once

#include <chrono>
#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "daemon/outbound/answer_reader.h"
#include "daemon/outbound/http_client.h"
#include "daemon/outbound/http_connection.h"

namespace conversed::daemon {

// One exchange: its request as bytes, its connection and its answer. The next exchange reuses the
// memory. Only http_client.cc includes this. One thread.
class HttpTransfer {
 public:
  using Time = HttpClient::Time;

  // Takes the exchange. False if its request is invalid; `release` still returns the callback.
  [[nodiscard]] bool prepare(HttpClient::Exchange exchange);

  // The URL up to its path.
  [[nodiscard]] std::string_view origin() const { return url().substr(0, origin_size_); }

  // Takes a connection. `is_kept`: it has served an exchange before.
  void use(std::unique_ptr<HttpConnection> connection, bool is_kept);
  // None if the request was invalid.
  [[nodiscard]] HttpConnection* connection() const { return connection_.get(); }
  [[nodiscard]] std::unique_ptr<HttpConnection> take_connection();

  // Writes the request for the connection's host.
  void write_request();
  // The rest of the request, from which `HttpConnection::send` takes.
  [[nodiscard]] std::string_view& unsent() { return unsent_; }
  // The connection takes no more bytes. The answer may have come before.
  void stop_sending();
  [[nodiscard]] bool has_stopped_sending() const { return has_stopped_sending_; }

  [[nodiscard]] AnswerReader& reader() { return reader_; }
  // For HttpClient: the connection may have more bytes, which wait for its next turn.
  bool has_unread = false;
  // To be called after each read: notes when the headers of the final answer came.
  void note_headers(Time now);

  // Whether the exchange may begin anew on a new connection: the other end closed a kept one before
  // an answer came, as it may at any time (RFC 9112 §9.3.1).
  [[nodiscard]] bool may_repeat() const;

  // The outcome at this time. If the status is enough, there is no error.
  [[nodiscard]] HttpOutcome outcome(HttpError error, Time now);

  [[nodiscard]] Time begun() const { return begun_; }
  [[nodiscard]] std::chrono::milliseconds timeout() const { return exchange_.request.timeout; }
  // When to end the exchange: its time has passed, or the status is enough and the body is late.
  [[nodiscard]] Time due() const;

  // Ends the exchange, wipes its secrets and returns its callback.
  [[nodiscard]] HttpClient::Callback release();

 private:
  [[nodiscard]] std::string_view url() const { return exchange_.request.url; }
  [[nodiscard]] bool headers_are_valid() const;
  [[nodiscard]] bool status_is_enough() const;

  HttpClient::Exchange exchange_;
  std::size_t origin_size_ = 0;
  Time begun_{};
  std::unique_ptr<HttpConnection> connection_;
  bool is_kept_ = false;
  std::string bytes_;        // of the request
  std::string_view unsent_;  // a part of `bytes_`
  bool has_stopped_sending_ = false;
  AnswerReader reader_;
  std::optional<Time> headers_in_;  // when the headers of the final answer came
};

}  // namespace conversed::daemon
