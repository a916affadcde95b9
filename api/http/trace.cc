#include "api/http/trace.h"

#include "api/http/http_syntax.h"
#include "store/model/ids.h"

namespace conversed::api {
namespace {

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool all_zero(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

constexpr std::size_t length_of_version_00 = 55;

}  // namespace

std::optional<Trace> parse_traceparent(std::string_view header) {
  if (header.size() < length_of_version_00) return std::nullopt;
  if (header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
  const auto version = header.substr(0, 2);
  const auto trace_id = header.substr(3, 32);
  const auto parent_id = header.substr(36, 16);
  const auto flags = header.substr(53, 2);
  if (!is_hex(version) || version == "ff") return std::nullopt;
  if (!is_hex(trace_id) || all_zero(trace_id)) return std::nullopt;
  if (!is_hex(parent_id) || all_zero(parent_id)) return std::nullopt;
  if (!is_hex(flags)) return std::nullopt;
  if (header.size() > length_of_version_00 &&
      (version == "00" || header[length_of_version_00] != '-')) {
    return std::nullopt;
  }
  return Trace{.trace_id = std::string(trace_id), .sampled = (hex_value(flags[1]) & 1) != 0};
}

std::string make_traceparent(std::string_view trace_id, bool sampled) {
  std::string span = model::random_hex(8);
  while (all_zero(span)) span = model::random_hex(8);
  std::string header;
  header.reserve(length_of_version_00);
  header.append("00-").append(trace_id).append("-").append(span).append(sampled ? "-01" : "-00");
  return header;
}

}  // namespace conversed::api
