#include "api/http/response_writer.h"

#include <algorithm>
#include <chrono>

#include "api/http/error_reply.h"

namespace conversed::api {
namespace {

// Pages of any site may call the API and read these headers.
constexpr std::string_view cors_headers =
    "Access-Control-Allow-Origin: *\r\n"
    "Access-Control-Expose-Headers: traceparent, X-Trace-Id, X-Inject-Id, X-Next-Cursor, "
    "X-Previous-Cursor, X-Total-Count, Link, Location, Allow, Preference-Applied, Retry-After, "
    "WWW-Authenticate\r\n";

// Most answers are private and current. An answer that may be cached sets its own header.
constexpr std::string_view no_store = "Cache-Control: no-store\r\n";
constexpr std::string_view no_sniff = "X-Content-Type-Options: nosniff\r\n";

// A line break in a value could add headers or whole answers, so it becomes a space.
void append_field_text(std::string& out, std::string_view text) {
  const auto start = static_cast<std::ptrdiff_t>(out.size());
  out.append(text);
  std::replace_if(
      out.begin() + start, out.end(),
      [](char c) { return (static_cast<unsigned char>(c) < 0x20 && c != '\t') || c == 0x7F; }, ' ');
}

void append_header(std::string& out, std::string_view name, std::string_view value) {
  append_field_text(out, name);
  out.append(": ");
  append_field_text(out, value);
  out.append("\r\n");
}

void append_date(std::string& out, model::Timestamp now) {
  thread_local std::chrono::sys_seconds second{};
  thread_local std::string line;
  const auto current = std::chrono::floor<std::chrono::seconds>(now);
  if (line.empty() || current != second) {
    second = current;
    line = "Date: " + http_date(now) + "\r\n";
  }
  out.append(line);
}

}  // namespace

void write_response(std::string& out, const Response& response, const AnswerFraming& framing,
                    model::Timestamp now) {
  const bool bodiless = response.status == 204 || response.status == 304;
  out.append("HTTP/1.1 ");
  out.append(std::to_string(response.status));
  out.append(" ").append(reason_phrase(response.status)).append("\r\n");
  if (!response.content_type.empty()) append_header(out, "Content-Type", response.content_type);
  bool says_how_to_cache = false;
  for (const auto& [name, value] : response.headers) {
    append_header(out, name, value);
    says_how_to_cache = says_how_to_cache || name == "Cache-Control";
  }
  if (!says_how_to_cache) out.append(no_store);
  out.append(no_sniff);
  if (!bodiless) {
    out.append("Content-Length: ").append(std::to_string(response.body.size())).append("\r\n");
  }
  if (framing.cors) out.append(cors_headers);
  out.append("traceparent: ").append(framing.traceparent);
  out.append("\r\nX-Trace-Id: ").append(framing.trace_id).append("\r\n");
  append_date(out, now);
  if (!framing.keep_alive) {
    out.append("Connection: close\r\n");
  } else if (framing.http_1_0) {
    out.append("Connection: keep-alive\r\n");
  }
  out.append("\r\n");
  if (!bodiless && !framing.head) out.append(response.body);
}

}  // namespace conversed::api
