#include "daemon/call_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "daemon/webhook.h"
#include "store/model/json.h"

namespace conversed::daemon {
namespace {

using model::CallResult;
using model::Errc;
using model::fail;
using model::Result;

using Header = std::pair<std::string, std::string>;

// An Event wraps the body in two levels; some are left for where a Flow stores it.
constexpr std::size_t max_body_depth = model::max_json_depth - 8;

std::optional<std::string> text_member(const nlohmann::json& fields, const char* name) {
  const auto member = fields.find(name);
  if (member == fields.end() || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

std::optional<Header> header_from(const std::string& type, const nlohmann::json& fields) {
  if (type == "httpBearer") {
    const auto token = text_member(fields, "token");
    if (token) return Header{"Authorization", "Bearer " + *token};
  } else if (type == "httpBasic") {
    const auto user = text_member(fields, "username");
    const auto password = text_member(fields, "password");
    if (user && password)
      return Header{"Authorization", "Basic " + base64(*user + ":" + *password)};
  } else if (type == "httpHeader") {
    auto name = text_member(fields, "name");
    auto value = text_member(fields, "value");
    if (name && value) return Header{std::move(*name), std::move(*value)};
  }
  return std::nullopt;
}

// Names of header fields are compared without case (RFC 9110 §5.1).
bool same_name(std::string_view a, std::string_view b) {
  const auto lower = [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; };
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [&](char left, char right) { return lower(left) == lower(right); });
}

void put_header(std::vector<Header>& headers, Header header) {
  std::erase_if(headers, [&](const Header& other) { return same_name(other.first, header.first); });
  headers.push_back(std::move(header));
}

nlohmann::json body_of(const std::string& text) {
  if (auto parsed = model::parse_json(text, max_body_depth)) return std::move(*parsed);
  const auto valid =
      nlohmann::json(text).dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
  return nlohmann::json::parse(valid);
}

std::pair<std::string_view, std::string_view> explain(HttpError error) {
  switch (error) {
    case HttpError::timeout:
      return {"timeout", "the upstream did not answer in time"};
    case HttpError::egress_refused:
      return {"egress_refused", "egress.allow does not open the upstream's address"};
    case HttpError::too_large:
      return {"too_large", "the upstream's answer is too large"};
    case HttpError::invalid:
      return {"refused", "the request can't be sent: its method, URL or a header is not valid"};
    default:
      return {"refused", "the upstream could not be reached"};
  }
}

}  // namespace

Result<HttpRequest> call_request(const model::PendingCall& call,
                                 const store::ConnectionSecrets* connection,
                                 std::size_t max_response_bytes) {
  HttpRequest request;
  request.method = call.http->method;
  request.url = call.http->url;
  request.headers = call.http->headers;
  request.body = call.http->body;
  request.timeout = call.http->timeout;
  request.max_response_bytes = max_response_bytes;
  if (connection != nullptr) {
    const auto fields = nlohmann::json::parse(connection->fields, nullptr, false);
    auto header = fields.is_object() ? header_from(connection->type, fields) : std::nullopt;
    if (!header)
      return fail(Errc::permission_denied, "the Connection is not one for HTTP requests");
    put_header(request.headers, std::move(*header));
  }
  if (!call.http->idempotency_key.empty()) {
    put_header(request.headers, {"Idempotency-Key", call.http->idempotency_key});
  }
  if (!call.trace_id.empty()) {
    put_header(request.headers, {"traceparent", traceparent(call.trace_id)});
  }
  return request;
}

bool worth_retrying(const HttpOutcome& outcome) {
  if (outcome.error != HttpError::none) {
    return outcome.error == HttpError::timeout || outcome.error == HttpError::refused ||
           outcome.error == HttpError::overloaded;
  }
  const int status = outcome.status;
  if (status == 408 || status == 425 || status == 429) return true;
  return status >= 500 && status != 501 && status != 505;
}

CallResult call_result(const std::string& call_id, const HttpOutcome& outcome) {
  if (outcome.error != HttpError::none) {
    const auto [code, message] = explain(outcome.error);
    return failed_call(call_id, code, message);
  }
  CallResult result;
  result.call_id = call_id;
  result.status = outcome.status;
  result.body = body_of(outcome.body);
  if (outcome.status >= 400) {
    result.error_code = "status";
    result.error_message = "the upstream answered " + std::to_string(outcome.status);
  }
  return result;
}

CallResult failed_call(const std::string& call_id, std::string_view code,
                       std::string_view message) {
  CallResult result;
  result.call_id = call_id;
  result.error_code = code;
  result.error_message = message;
  return result;
}

std::string authority_of(std::string_view url) {
  const auto scheme = url.find("://");
  if (scheme != std::string_view::npos) url.remove_prefix(scheme + 3);
  url = url.substr(0, url.find_first_of("/?#"));
  std::string authority(url);
  for (char& c : authority) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return authority;
}

}  // namespace conversed::daemon
