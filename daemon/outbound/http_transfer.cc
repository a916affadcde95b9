#include "daemon/outbound/http_transfer.h"

#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>
#include <memory>
#include <new>
#include <string_view>
#include <utility>

#include "api/http/http_syntax.h"
#include "store/model/url.h"

namespace conversed::daemon {
namespace {

constexpr long connect_timeout_ms = 5000;  // or the request's own, if that is shorter
constexpr long dns_cache_s = 60;
// libcurl keeps all headers, without a limit.
constexpr std::size_t max_header_bytes = 64 * 1024;

// Headers that frame the message or the connection. The client sets them itself.
bool frames_message(std::string_view name) {
  for (const std::string_view own :
       {"Content-Length", "Transfer-Encoding", "Connection", "Keep-Alive", "Proxy-Connection", "TE",
        "Trailer", "Upgrade", "Expect"}) {
    if (api::equals_ignoring_case(name, own)) return true;
  }
  return false;
}

void wipe(std::string& text) {
  explicit_bzero(text.data(), text.size());
  text.clear();
}

// The URL's host as libcurl reads it.
std::string host_of(const std::string& url) {
  const std::unique_ptr<CURLU, void (*)(CURLU*)> parsed(curl_url(), curl_url_cleanup);
  char* host = nullptr;
  if (!parsed || curl_url_set(parsed.get(), CURLUPART_URL, url.c_str(), 0) != CURLUE_OK ||
      curl_url_get(parsed.get(), CURLUPART_HOST, &host, 0) != CURLUE_OK) {
    return {};
  }
  std::string text(host);
  curl_free(host);
  return text;
}

}  // namespace

HttpTransfer::HttpTransfer(curl_closesocket_callback close_socket, void* close_data)
    : easy_(curl_easy_init()) {
  if (easy_ == nullptr) throw std::bad_alloc();
  curl_easy_setopt(easy_, CURLOPT_PRIVATE, this);
  curl_easy_setopt(easy_, CURLOPT_NOSIGNAL, 1L);
  curl_easy_setopt(easy_, CURLOPT_PROTOCOLS_STR, "http,https");
  curl_easy_setopt(easy_, CURLOPT_FOLLOWLOCATION, 0L);
  curl_easy_setopt(easy_, CURLOPT_PROXY, "");
  curl_easy_setopt(easy_, CURLOPT_DISALLOW_USERNAME_IN_URL, 1L);
  // Sends the path unchanged, as it was checked. libcurl would remove `..` from it.
  curl_easy_setopt(easy_, CURLOPT_PATH_AS_IS, 1L);
  curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYPEER, 1L);
  curl_easy_setopt(easy_, CURLOPT_SSL_VERIFYHOST, 2L);
  curl_easy_setopt(easy_, CURLOPT_HTTP_VERSION, static_cast<long>(CURL_HTTP_VERSION_1_1));
  curl_easy_setopt(easy_, CURLOPT_USERAGENT, "conversed");
  curl_easy_setopt(easy_, CURLOPT_TCP_KEEPALIVE, 1L);
  curl_easy_setopt(easy_, CURLOPT_DNS_CACHE_TIMEOUT, dns_cache_s);
  // A name server that does not answer must not block the thread after the time-out.
  curl_easy_setopt(easy_, CURLOPT_QUICK_EXIT, 1L);
  curl_easy_setopt(easy_, CURLOPT_HEADERFUNCTION, &HttpTransfer::on_header);
  curl_easy_setopt(easy_, CURLOPT_HEADERDATA, this);
  curl_easy_setopt(easy_, CURLOPT_WRITEFUNCTION, &HttpTransfer::on_body);
  curl_easy_setopt(easy_, CURLOPT_WRITEDATA, this);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETFUNCTION, &HttpTransfer::on_socket);
  curl_easy_setopt(easy_, CURLOPT_OPENSOCKETDATA, this);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETFUNCTION, close_socket);
  curl_easy_setopt(easy_, CURLOPT_CLOSESOCKETDATA, close_data);
}

HttpTransfer::~HttpTransfer() {
  curl_easy_cleanup(easy_);
}

bool HttpTransfer::prepare(HttpClient::Exchange exchange, EgressInForce egress) {
  exchange_ = std::move(exchange);
  begun_ = std::chrono::steady_clock::now();
  egress_ = std::move(egress);
  const auto& request = exchange_.request;
  const bool method_known = api::is_token(request.method) && request.method != "CONNECT";
  if (!method_known || request.url.find('\0') != std::string::npos ||
      model::has_dot_segment(request.url) || !set_headers() ||
      curl_easy_setopt(easy_, CURLOPT_URL, request.url.c_str()) != CURLE_OK) {
    return false;
  }
  set_method();
  set_connections();
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, headers_.data());
  const auto timeout = std::max<long>(1, static_cast<long>(request.timeout.count()));
  curl_easy_setopt(easy_, CURLOPT_TIMEOUT_MS, timeout);
  curl_easy_setopt(easy_, CURLOPT_CONNECTTIMEOUT_MS, std::min(timeout, connect_timeout_ms));
  return true;
}

// A connection of an earlier policy must not be reused, since the policy is checked when a
// connection is made. libcurl counts ages in whole seconds, so some younger connections may be
// closed as well.
void HttpTransfer::set_connections() {
  if (!egress_.since) return;
  using std::chrono::seconds;
  const auto age =
      std::chrono::floor<seconds>(std::chrono::steady_clock::now() - *egress_.since).count();
  curl_easy_setopt(easy_, CURLOPT_FRESH_CONNECT, age < 2 ? 1L : 0L);
  curl_easy_setopt(easy_, CURLOPT_MAXLIFETIME_CONN, std::max<long>(1, age - 1));
}

// Builds libcurl's list of headers in one buffer, which the next exchange reuses.
bool HttpTransfer::set_headers() {
  const auto& headers = exchange_.request.headers;
  std::size_t bytes = 32;
  for (const auto& header : headers) bytes += header.first.size() + header.second.size() + 3;
  header_lines_.reserve(bytes);  // growing would move the lines and leave unwiped copies behind
  const auto add = [this](std::string_view name, std::string_view colon, std::string_view value) {
    headers_.push_back({header_lines_.data() + header_lines_.size(), nullptr});
    header_lines_.append(name).append(colon).append(value).append(1, '\0');
  };
  bool has_type = false;
  for (const auto& [name, value] : headers) {
    if (!api::is_token(name) || !api::is_field_text(value) || frames_message(name)) return false;
    has_type = has_type || api::equals_ignoring_case(name, "Content-Type");
    // For libcurl "Name:" removes a header and "Name;" sends an empty one.
    add(name, value.empty() ? ";" : ": ", value);
  }
  // Removes headers that libcurl would add.
  if (!has_type) add("Content-Type", ":", "");
  add("Expect", ":", "");
  for (std::size_t i = 1; i < headers_.size(); ++i) headers_[i - 1].next = &headers_[i];
  return true;
}

void HttpTransfer::set_method() {
  const auto& request = exchange_.request;
  const bool sends_body = request.method == "POST" || request.method == "PUT" ||
                          request.method == "PATCH" || !request.body.empty();
  const char* custom = nullptr;
  if (request.method == "HEAD") {
    curl_easy_setopt(easy_, CURLOPT_NOBODY, 1L);
  } else if (sends_body) {
    curl_easy_setopt(easy_, CURLOPT_POST, 1L);
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, request.body.data());
    curl_easy_setopt(easy_, CURLOPT_POSTFIELDSIZE_LARGE,
                     static_cast<curl_off_t>(request.body.size()));
    if (request.method != "POST") custom = request.method.c_str();
  } else {
    curl_easy_setopt(easy_, CURLOPT_HTTPGET, 1L);
    if (request.method != "GET") custom = request.method.c_str();
  }
  curl_easy_setopt(easy_, CURLOPT_CUSTOMREQUEST, custom);
}

HttpOutcome HttpTransfer::outcome(CURLcode code) {
  HttpOutcome outcome;
  outcome.error = error_of(code);
  long status = 0;
  curl_easy_getinfo(easy_, CURLINFO_RESPONSE_CODE, &status);
  curl_off_t took = 0;
  curl_easy_getinfo(easy_, CURLINFO_TOTAL_TIME_T, &took);
  outcome.took = std::chrono::microseconds(took);
  if (outcome.error == HttpError::none || outcome.error == HttpError::too_large) {
    outcome.status = static_cast<int>(status);
  }
  if (outcome.error != HttpError::none) return outcome;
  outcome.body = std::move(response_);
  curl_off_t retry_after = 0;
  curl_easy_getinfo(easy_, CURLINFO_RETRY_AFTER, &retry_after);
  if (retry_after > 0) outcome.retry_after = std::chrono::seconds(retry_after);
  return outcome;
}

bool HttpTransfer::status_is_enough() const {
  return headers_in_ && exchange_.request.wait_for_body;
}

std::optional<std::chrono::steady_clock::time_point> HttpTransfer::cut_off() const {
  if (!status_is_enough()) return std::nullopt;
  return *headers_in_ + *exchange_.request.wait_for_body;
}

HttpError HttpTransfer::error_of(CURLcode code) const {
  if (status_is_enough()) return HttpError::none;
  if (too_large_) return HttpError::too_large;
  switch (code) {
    case CURLE_OK:
      return HttpError::none;
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

HttpClient::Callback HttpTransfer::release() {
  curl_easy_setopt(easy_, CURLOPT_HTTPHEADER, nullptr);
  curl_easy_setopt(easy_, CURLOPT_POSTFIELDS, nullptr);
  wipe(header_lines_);
  headers_.clear();
  for (auto& header : exchange_.request.headers) wipe(header.second);
  auto callback = std::move(exchange_.callback);
  exchange_ = {};
  response_ = {};
  header_bytes_ = 0;
  headers_in_.reset();
  too_large_ = false;
  egress_refused_ = false;
  return callback;
}

// libcurl also calls this for the lines of trailers and of interim answers (1xx).
std::size_t HttpTransfer::on_header(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  const std::size_t bytes = size * count;
  transfer.header_bytes_ += bytes;
  if (transfer.header_bytes_ > max_header_bytes) {
    transfer.too_large_ = true;
    return 0;
  }
  const std::string_view line(data, bytes);
  if (transfer.headers_in_ || (line != "\r\n" && line != "\n")) return bytes;
  long status = 0;
  curl_easy_getinfo(transfer.easy_, CURLINFO_RESPONSE_CODE, &status);
  if (status >= 200) transfer.headers_in_ = std::chrono::steady_clock::now();
  return bytes;
}

std::size_t HttpTransfer::on_body(char* data, std::size_t size, std::size_t count, void* self) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  const std::size_t bytes = size * count;
  if (transfer.response_.size() + bytes > transfer.exchange_.request.max_response_bytes) {
    transfer.too_large_ = true;
    return CURL_WRITEFUNC_ERROR;
  }
  transfer.response_.append(data, bytes);
  return bytes;
}

curl_socket_t HttpTransfer::on_socket(void* self, curlsocktype purpose, curl_sockaddr* address) {
  auto& transfer = *static_cast<HttpTransfer*>(self);
  if (purpose != CURLSOCKTYPE_IPCXN ||
      !transfer.egress_.policy->allows(host_of(transfer.exchange_.request.url), &address->addr)) {
    transfer.egress_refused_ = true;
    return CURL_SOCKET_BAD;
  }
  return socket(address->family, address->socktype | SOCK_CLOEXEC | SOCK_NONBLOCK,
                address->protocol);
}

}  // namespace conversed::daemon
