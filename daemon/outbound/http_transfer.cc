#include "daemon/outbound/http_transfer.h"

#include <algorithm>
#include <charconv>
#include <chrono>
#include <cstdint>
#include <cstring>
#include <ctime>
#include <utility>

#include "api/http/http_syntax.h"
#include "store/model/url.h"

namespace conversed::daemon {
namespace {

constexpr std::chrono::seconds most_retry_after = std::chrono::years(10);
constexpr std::size_t max_kept_bytes = 64 * 1024;  // of a buffer, for the next exchange

// Headers that frame the message or the connection. The client sets them itself.
bool frames_message(std::string_view name) {
  for (const std::string_view own :
       {"Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "TE",
        "Trailer", "Upgrade", "Expect"}) {
    if (api::equals_ignoring_case(name, own)) return true;
  }
  return false;
}

bool has(const HttpRequest& request, std::string_view wanted) {
  for (const auto& [name, value] : request.headers) {
    if (api::equals_ignoring_case(name, wanted)) return true;
  }
  return false;
}

// Whether a body belongs to the method, even an empty one (RFC 9110 §8.6).
bool sends_body(const HttpRequest& request) {
  if (request.method == "HEAD") return false;
  return request.method == "POST" || request.method == "PUT" || request.method == "PATCH" ||
         !request.body.empty();
}

void wipe(std::string& text) {
  explicit_bzero(text.data(), text.size());
  text.clear();
}

// Seconds, or a date (RFC 9110 §10.2.3). None: neither of them, or a time that has passed.
std::optional<std::chrono::seconds> read_retry_after(std::string_view text) {
  text = api::trim(text);
  if (text.empty()) return std::nullopt;
  std::int64_t seconds = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), seconds);
  if (error == std::errc::result_out_of_range && api::is_digit(text.front())) {
    seconds = most_retry_after.count();
  } else if (error != std::errc() || end != text.data() + text.size()) {
    const auto date = curl_getdate(std::string(text).c_str(), nullptr);
    seconds = date < 0 ? 0 : static_cast<std::int64_t>(date) - std::time(nullptr);
  }
  if (seconds <= 0) return std::nullopt;
  return std::min(std::chrono::seconds(seconds), most_retry_after);
}

}  // namespace

bool HttpTransfer::prepare(HttpClient::Exchange exchange) {
  exchange_ = std::move(exchange);
  begun_ = std::chrono::steady_clock::now();
  const auto& request = exchange_.request;
  if (!api::is_token(request.method) || request.method == "CONNECT" ||
      !model::is_http_url(request.url) || model::has_dot_segment(request.url)) {
    return false;
  }
  const auto authority = request.url.find("://") + 3;
  origin_size_ = std::min(request.url.find_first_of("/?#", authority), request.url.size());
  return headers_are_valid();
}

bool HttpTransfer::headers_are_valid() const {
  for (const auto& [name, value] : exchange_.request.headers) {
    if (!api::is_token(name) || !api::is_field_text(value) || frames_message(name)) return false;
  }
  return true;
}

void HttpTransfer::use(std::unique_ptr<HttpConnection> connection, bool is_kept) {
  connection_ = std::move(connection);
  connection_->user = this;
  is_kept_ = is_kept;
}

std::unique_ptr<HttpConnection> HttpTransfer::take_connection() {
  if (connection_) connection_->user = nullptr;
  return std::move(connection_);
}

void HttpTransfer::write_request() {
  const auto& request = exchange_.request;
  const std::string& host = connection_->host_field();
  std::string_view target = url().substr(origin_size_);
  target = target.substr(0, target.find('#'));

  bytes_.clear();
  std::size_t bytes =
      128 + request.method.size() + url().size() + host.size() + request.body.size();
  for (const auto& [name, value] : request.headers) bytes += name.size() + value.size() + 4;
  bytes_.reserve(bytes);  // growing would leave unwiped copies behind
  const auto add = [this](std::string_view name, std::string_view value) {
    bytes_.append(name).append(": ").append(value).append("\r\n");
  };
  bytes_.append(request.method).append(target.starts_with('/') ? " " : " /").append(target);
  bytes_.append(" HTTP/1.1\r\n");
  if (!has(request, "Host")) add("Host", host);
  if (!has(request, "User-Agent")) add("User-Agent", "conversed");
  if (!has(request, "Accept")) add("Accept", "*/*");
  for (const auto& [name, value] : request.headers) add(name, value);
  if (sends_body(request)) add("Content-Length", std::to_string(request.body.size()));
  bytes_.append("\r\n");
  if (sends_body(request)) bytes_.append(request.body);
  unsent_ = bytes_;
  has_stopped_sending_ = false;
  reader_.begin(request.method == "HEAD", request.max_response_bytes);
}

void HttpTransfer::stop_sending() {
  unsent_ = {};
  has_stopped_sending_ = true;
}

void HttpTransfer::note_headers(Time now) {
  if (!headers_in_ && reader_.status() != 0) headers_in_ = now;
}

bool HttpTransfer::may_repeat() const {
  return is_kept_ && !reader_.has_begun();
}

bool HttpTransfer::status_is_enough() const {
  return headers_in_ && exchange_.request.wait_for_body;
}

HttpTransfer::Time HttpTransfer::due() const {
  const auto end = begun_ + exchange_.request.timeout;
  if (!status_is_enough()) return end;
  return std::min(end, *headers_in_ + *exchange_.request.wait_for_body);
}

HttpOutcome HttpTransfer::outcome(HttpError error, Time now) {
  HttpOutcome outcome;
  outcome.error = status_is_enough() ? HttpError::none : error;
  outcome.took = std::chrono::duration_cast<std::chrono::microseconds>(now - begun_);
  if (outcome.error == HttpError::none || outcome.error == HttpError::too_large) {
    outcome.status = reader_.status();
  }
  if (outcome.error != HttpError::none) return outcome;
  outcome.body = std::move(reader_.body());
  outcome.retry_after = read_retry_after(reader_.retry_after());
  return outcome;
}

HttpClient::Callback HttpTransfer::release() {
  connection_.reset();
  wipe(bytes_);
  if (bytes_.capacity() > max_kept_bytes) bytes_ = {};
  unsent_ = {};
  for (auto& header : exchange_.request.headers) wipe(header.second);
  auto callback = std::move(exchange_.callback);
  exchange_ = {};
  reader_.begin(false, 0);
  headers_in_.reset();
  has_unread = false;
  return callback;
}

}  // namespace conversed::daemon
