#include "store/model/trace.h"

#include <algorithm>
#include <cstddef>
#include <cstdint>

#include "store/model/hex.h"
#include "store/model/ids.h"
#include "store/model/keyed_hash.h"

namespace conversed::model {
namespace {

constexpr std::size_t length_of_version_00 = 55;

bool is_hex(std::string_view text) {
  return text.find_first_not_of("0123456789abcdef") == std::string_view::npos;
}

bool all_zero(std::string_view text) {
  return text.find_first_not_of('0') == std::string_view::npos;
}

// A key of a tracestate, or the part before or behind its `@`.
bool is_key(std::string_view text, std::size_t longest, std::string_view first) {
  return !text.empty() && text.size() <= longest && first.find(text[0]) != std::string_view::npos &&
         text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789_-*/") ==
             std::string_view::npos;
}

bool is_tracestate_member(std::string_view member) {
  constexpr std::string_view letters = "abcdefghijklmnopqrstuvwxyz";
  constexpr std::string_view letters_and_digits = "abcdefghijklmnopqrstuvwxyz0123456789";
  const auto equals = member.find('=');
  if (equals == std::string_view::npos) return false;
  const auto key = member.substr(0, equals);
  const auto value = member.substr(equals + 1);
  const auto at = key.find('@');
  const bool good_key = at == std::string_view::npos
                            ? is_key(key, 256, letters)
                            : is_key(key.substr(0, at), 241, letters_and_digits) &&
                                  is_key(key.substr(at + 1), 14, letters);
  return good_key && !value.empty() && value.size() <= 256 &&
         std::ranges::all_of(value, [](char c) { return c >= ' ' && c <= '~' && c != '='; });
}

}  // namespace

bool is_trace_id(std::string_view text) {
  return text.size() == 32 && is_hex(text) && !all_zero(text);
}

std::string trace_id_of(std::string_view text) {
  return is_trace_id(text) ? std::string(text) : new_trace_id();
}

std::optional<Trace> parse_traceparent(std::string_view header) {
  if (header.size() < length_of_version_00) return std::nullopt;
  if (header[2] != '-' || header[35] != '-' || header[52] != '-') return std::nullopt;
  const auto version = header.substr(0, 2);
  const auto trace_id = header.substr(3, 32);
  const auto parent_id = header.substr(36, 16);
  const auto flags = header.substr(53, 2);
  if (!is_hex(version) || version == "ff" || !is_trace_id(trace_id)) return std::nullopt;
  if (!is_hex(parent_id) || all_zero(parent_id) || !is_hex(flags)) return std::nullopt;
  if (header.size() > length_of_version_00 &&
      (version == "00" || header[length_of_version_00] != '-')) {
    return std::nullopt;
  }
  const bool sampled = std::string_view("13579bdf").find(flags[1]) != std::string_view::npos;
  return Trace{
      .trace_id = std::string(trace_id), .parent_id = std::string(parent_id), .sampled = sampled};
}

std::string make_traceparent(std::string_view trace_id, std::string_view span_id, bool sampled) {
  std::string header;
  header.reserve(length_of_version_00);
  header.append("00-").append(trace_id).append("-").append(span_id).append(sampled ? "-01" : "-00");
  return header;
}

bool is_tracestate(std::string_view text) {
  constexpr std::size_t longest = 512;
  constexpr std::size_t most_members = 32;
  if (text.size() > longest) return false;
  std::size_t members = 0;
  while (!text.empty()) {
    const auto comma = std::min(text.find(','), text.size());
    auto member = text.substr(0, comma);
    text.remove_prefix(std::min(comma + 1, text.size()));
    const auto first = member.find_first_not_of(" \t");
    if (first == std::string_view::npos) continue;  // a member may be empty
    member = member.substr(first, member.find_last_not_of(" \t") - first + 1);
    if (!is_tracestate_member(member) || ++members > most_members) return false;
  }
  return members > 0;
}

bool in_sample(std::string_view trace_id, double share) {
  constexpr std::size_t digits = 14;           // the last 56 bits are random
  constexpr double all = 72057594037927936.0;  // 2 to the power of 56
  std::uint64_t random = 0;
  for (const char c : trace_id.substr(trace_id.size() - std::min(digits, trace_id.size()))) {
    random = random << 4U | static_cast<std::uint64_t>(std::max(hex_value(c), 0));
  }
  return static_cast<double>(random) >= (1 - share) * all;
}

std::string new_span_id() {
  std::string span = random_hex(8);
  while (all_zero(span)) span = random_hex(8);
  return span;
}

std::string new_event_id(Timestamp now, bool sampled) {
  std::string id = new_id(now);
  while (is_sampled(id) != sampled) id = new_id(now);
  return id;
}

bool is_sampled(std::string_view event_id) {
  if (event_id.size() < id_length) return true;  // another program's
  const char last = event_id[id_length - 1];
  return last < '0' || last > '9';
}

std::string span_of_event(std::string_view event_id) {
  const std::uint64_t hash = sip_hash(event_id, {}) | 1U;  // not zero
  std::string span;
  for (int shift = 56; shift >= 0; shift -= 8) {
    append_hex(span, static_cast<std::uint8_t>(hash >> shift));
  }
  return span;
}

}  // namespace conversed::model
