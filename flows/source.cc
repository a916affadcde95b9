#include "flows/source.h"

#include <algorithm>
#include <cctype>
#include <cstdint>
#include <utility>

#include "store/text/utf8.h"

namespace conversed::flows {
namespace {

constexpr std::string_view byte_order_mark = "\xEF\xBB\xBF";

tl::unexpected<Problems> refuse(std::string_view file, Place place, std::string message) {
  return tl::unexpected<Problems>({{std::string(file), place, "", std::move(message)}});
}

// What both readers rely on. yaml-cpp would replace bad bytes, and takes U+0004 for the end.
tl::expected<void, Problems> check_characters(std::string_view text, std::string_view file) {
  Place place{1, 1};
  while (!text.empty()) {
    const std::size_t length = text::sequence_length(text, 0);
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
