// The forms of words in a bundle: addresses, time zones.
#include <unicode/timezone.h>

#include <algorithm>
#include <memory>

#include "flows/fields.h"

namespace conversed::flows {
std::string list_of(std::span<const std::string_view> words) {
  std::string list;
  for (const auto word : words) {
    if (!list.empty()) list += ", ";
    list += word;
  }
  return list;
}

bool is_email(std::string_view text) {
  const auto at = text.find('@');
  if (at == std::string_view::npos || at == 0 || at + 1 == text.size()) return false;
  if (text.find('@', at + 1) != std::string_view::npos || text.size() > 254) return false;
  return std::none_of(text.begin(), text.end(), [](char c) {
    return (c >= 0 && c <= 0x20) || c == 0x7F || c == ',' || c == ';' || c == '<' || c == '>';
  });
}

bool is_time_zone(const std::string& name) {
  const auto id = icu::UnicodeString::fromUTF8(name);
  const std::unique_ptr<icu::TimeZone> zone(icu::TimeZone::createTimeZone(id));
  return zone != nullptr && *zone != icu::TimeZone::getUnknown();
}

std::size_t count_characters(std::string_view utf8) {
  return static_cast<std::size_t>(std::count_if(utf8.begin(), utf8.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

bool has_control_characters(std::string_view utf8) {
  return std::any_of(utf8.begin(), utf8.end(),
                     [](char c) { return (c >= 0 && c < 0x20) || c == 0x7F; });
}

}  // namespace conversed::flows
