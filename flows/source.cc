#include "flows/source.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

namespace conversed::flows {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

tl::unexpected<Problems> refuse(std::string_view file, Place place, std::string message) {
  return tl::unexpected<Problems>({{std::string(file), place, "", std::move(message)}});
}

// The length of the UTF-8 sequence at the front of `text`, 0 if there is none (Unicode 15, table
// 3-7: no overlong forms, no surrogates, nothing above U+10FFFF).
std::size_t sequence_length(std::string_view text) {
  const auto byte = [&](std::size_t i) {
    return i < text.size() ? static_cast<std::uint8_t>(text[i]) : std::uint8_t{0};
  };
  const auto continues = [&](std::size_t i) { return (byte(i) & 0xC0) == 0x80; };
  const std::uint8_t lead = byte(0);
  if (lead < 0x80) return 1;
  if (lead >= 0xC2 && lead <= 0xDF) return continues(1) ? 2 : 0;
  if (lead >= 0xE0 && lead <= 0xEF) {
    if (lead == 0xE0 && byte(1) < 0xA0) return 0;
    if (lead == 0xED && byte(1) > 0x9F) return 0;
    return continues(1) && continues(2) ? 3 : 0;
  }
  if (lead >= 0xF0 && lead <= 0xF4) {
    if (lead == 0xF0 && byte(1) < 0x90) return 0;
    if (lead == 0xF4 && byte(1) > 0x8F) return 0;
    return continues(1) && continues(2) && continues(3) ? 4 : 0;
  }
  return 0;
}

// What both readers rely on. yaml-cpp would replace bad bytes, and takes U+0004 for the end.
tl::expected<void, Problems> check_characters(std::string_view text, std::string_view file) {
  Place place{1, 1};
  while (!text.empty()) {
    const std::size_t length = sequence_length(text);
    if (length == 0) return refuse(file, place, "the file is no valid UTF-8 from here on");
    const auto first = static_cast<std::uint8_t>(text.front());
    if ((first < 0x20 && first != '\t' && first != '\n' && first != '\r') || first == 0x7F) {
      return refuse(file, place, "a control character; write it as an escape in a quoted text");
    }
    if (first == '\n') {
      ++place.line;
      place.column = 0;
    }
    ++place.column;
    text.remove_prefix(length);
  }
  return {};
}

bool ends_with_json(std::string_view name) {
  constexpr std::string_view suffix = ".json";
  if (name.size() < suffix.size()) return false;
  name.remove_prefix(name.size() - suffix.size());
  return std::equal(name.begin(), name.end(), suffix.begin(), [](char a, char b) {
    return std::tolower(static_cast<unsigned char>(a)) == b;
  });
}

}  // namespace

bool is_utf8(std::string_view bytes) {
  while (!bytes.empty()) {
    const std::size_t length = sequence_length(bytes);
    if (length == 0) return false;
    bytes.remove_prefix(length);
  }
  return true;
}

Checked<Located> read_source(std::string_view text, std::string_view file_name,
                             const LoadLimits& limits) {
  if (text.size() > limits.max_bytes) {
    return refuse(file_name, {},
                  "the file has " + std::to_string(text.size()) + " bytes; at most " +
                      std::to_string(limits.max_bytes) + " are taken");
  }
  if (text.starts_with(byte_order_mark)) text.remove_prefix(byte_order_mark.size());
  if (auto good = check_characters(text, file_name); !good) {
    return tl::unexpected<Problems>(std::move(good.error()));
  }
  if (ends_with_json(file_name)) return read_json(text, file_name, limits);
  const auto first = text.find_first_not_of(" \t\r\n");
  if (first != std::string_view::npos && text[first] == '{') {
    // JSON escapes such as surrogate pairs mean nothing to YAML, so JSON comes first.
    if (auto json = read_json(text, file_name, limits)) return json;
  }
  return read_yaml(text, file_name, limits);
}

}  // namespace conversed::flows
