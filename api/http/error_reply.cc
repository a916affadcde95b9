#include "api/http/error_reply.h"

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "api/http/http_syntax.h"
#include "store/model/json.h"
#include "store/text/times.h"

namespace conversed::api {
namespace {

using model::Errc;

struct StatusRow {
  int status;
  std::string_view phrase;
  int code;  // in error bodies
};

// Section 7 of the API, then statuses from 408 to 505 that it does not name, then successes.
constexpr std::array status_rows{
    StatusRow{400, "Bad Request", 1000},
    StatusRow{401, "Unauthorized", 401},
    StatusRow{402, "Payment Required", 402},
    StatusRow{403, "Forbidden", 1000},
    StatusRow{404, "Not Found", 1000},
    StatusRow{405, "Method Not Allowed", 1000},
    StatusRow{409, "Conflict", 1004},
    StatusRow{413, "Payload Too Large", 1000},
    StatusRow{500, "Internal Server Error", 1000},
    StatusRow{501, "Not Implemented", 1009},
    StatusRow{502, "Bad Gateway", 1000},
    StatusRow{503, "Service Unavailable", 503},
    StatusRow{504, "Gateway Timeout", 1000},
    StatusRow{408, "Request Timeout", 1000},
    StatusRow{414, "URI Too Long", 1000},
    StatusRow{415, "Unsupported Media Type", 1000},
    StatusRow{417, "Expectation Failed", 1000},
    StatusRow{429, "Too Many Requests", 429},
    StatusRow{431, "Request Header Fields Too Large", 1000},
    StatusRow{505, "HTTP Version Not Supported", 1000},
    StatusRow{200, "OK", 0},
    StatusRow{201, "Created", 0},
    StatusRow{202, "Accepted", 0},
    StatusRow{204, "No Content", 0},
    StatusRow{302, "Found", 0},
    StatusRow{303, "See Other", 0},
    StatusRow{304, "Not Modified", 0},
};

struct ErrcRow {
  Errc code;
  int status;
};

constexpr std::array errc_rows{
    ErrcRow{Errc::invalid_argument, 400}, ErrcRow{Errc::unauthenticated, 401},
    ErrcRow{Errc::quota_exhausted, 402},  ErrcRow{Errc::permission_denied, 403},
    ErrcRow{Errc::not_found, 404},        ErrcRow{Errc::conflict, 409},
    ErrcRow{Errc::too_large, 413},        ErrcRow{Errc::too_many, 429},
    ErrcRow{Errc::internal, 500},         ErrcRow{Errc::not_supported, 501},
    ErrcRow{Errc::bad_upstream, 502},     ErrcRow{Errc::unavailable, 503},
    ErrcRow{Errc::timed_out, 504},
};

const StatusRow* find_status(int status) {
  const auto row = std::ranges::find(status_rows, status, &StatusRow::status);
  return row == status_rows.end() ? nullptr : row;
}

nlohmann::ordered_json problem_body(int status, std::string_view detail,
                                    const ExchangeContext& context,
                                    const nlohmann::json* details = nullptr) {
  const std::string type(reason_phrase(status));
  nlohmann::ordered_json body{{"type", type},
                              {"title", type.ends_with(" Error") ? type : type + " Error"},
                              {"status", status},
                              {"detail", detail},
                              {"instance", context.instance},
                              {"code", error_code(status)},
                              {"traceId", context.trace_id},
                              {"details", details ? *details : nlohmann::json::object()}};
  if (status == 404) body["logLevel"] = "error";
  return body;
}

nlohmann::ordered_json reduced_body(int status, std::string_view detail) {
  return {{"status", status},
          {"code", error_code(status)},
          {"type", reason_phrase(status)},
          {"detail", detail}};
}

// The OAuth error code (RFC 6749 §4.1.2.1, §5.2) of a status.
std::string_view oauth_code(int status) {
  switch (status) {
    case 401:
      return "invalid_client";
    case 403:
      return "access_denied";
    case 429:
    case 503:
      return "temporarily_unavailable";
    default:
      return status < 500 ? "invalid_request" : "server_error";
  }
}

// `challenge` is the header of a 401.
Response response_of(int status, const nlohmann::ordered_json& body, model::Timestamp now,
                     const char* challenge) {
  Response response{.status = status, .body = model::json_text(body)};
  if (status == 401) response.headers.emplace_back("WWW-Authenticate", challenge);
  // Published clients read a number of seconds as a date long past, so it is always a date.
  if (status == 429 || status == 503) {
    response.headers.emplace_back("Retry-After", http_date(now + default_retry_after));
  }
  return response;
}

}  // namespace

int status_of(Errc code) {
  const auto row = std::ranges::find(errc_rows, code, &ErrcRow::code);
  return row == errc_rows.end() ? 500 : row->status;
}

std::string_view reason_phrase(int status) {
  const auto* row = find_status(status);
  return row ? row->phrase : std::string_view("Unknown");
}

int error_code(int status) {
  const auto* row = find_status(status);
  return row ? row->code : 1000;
}

std::string reason_for_log(int status, std::string_view detail) {
  if (status >= 500) return std::string(detail);
  std::string word(reason_phrase(status));
  for (char& c : word) c = c == ' ' ? '_' : to_lower(c);
  return word;
}

std::string http_date(model::Timestamp time) {
  return text::utc_time(std::chrono::floor<std::chrono::seconds>(time),
                        "%a, %d %b %Y %H:%M:%S GMT");
}

Response error_response(int status, std::string_view detail, const ExchangeContext& context,
                        model::Timestamp now, ErrorShape shape, const nlohmann::json* details) {
  if (shape == ErrorShape::oauth) {
    return oauth_error_response(status, oauth_code(status), detail, context, now);
  }
  const auto body = shape == ErrorShape::reduced ? reduced_body(status, detail)
                                                 : problem_body(status, detail, context, details);
  Response response = response_of(status, body, now, R"(Bearer realm="conversed")");
  response.content_type = "application/problem+json";
  response.reason = reason_for_log(status, detail);
  return response;
}

Response oauth_error_response(int status, std::string_view error, std::string_view description,
                              const ExchangeContext& context, model::Timestamp now) {
  auto body = problem_body(status, description, context);
  body["error"] = error;
  body["error_description"] = description;
  // The clients of these routes authenticate themselves, not users.
  Response response = response_of(status, body, now, R"(Basic realm="conversed")");
  response.content_type = "application/json; charset=utf-8";
  response.reason = error;
  response.headers.emplace_back("Cache-Control", "no-store");
  response.headers.emplace_back("Pragma", "no-cache");
  return response;
}

Response error_response(const model::Error& error, const ExchangeContext& context,
                        model::Timestamp now, ErrorShape shape) {
  const std::string_view detail = error.code == Errc::internal
                                      ? std::string_view("The request could not be completed.")
                                      : std::string_view(error.message);
  Response response = error_response(status_of(error.code), detail, context, now, shape);
  if (error.code == Errc::internal) response.reason = error.message;
  return response;
}

}  // namespace conversed::api
