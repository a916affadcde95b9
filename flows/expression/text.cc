#include "flows/expression/text.h"

#include <unicode/locid.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>

#include <algorithm>
#include <cstdint>

namespace conversed::flows::expression {
namespace {

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool is_high(char32_t code) {
  return code >= 0xD800 && code <= 0xDBFF;
}
bool is_low(char32_t code) {
  return code >= 0xDC00 && code <= 0xDFFF;
}
bool is_surrogate(char32_t code) {
  return code >= 0xD800 && code <= 0xDFFF;
}

char32_t join(char32_t high, char32_t low) {
  return 0x10000 + ((high - 0xD800) << 10) + (low - 0xDC00);
}

// The surrogate at the end of the text, or 0.
char32_t last_surrogate(std::string_view text) {
  if (text.size() < 3 || byte_at(text, text.size() - 3) != 0xED) return 0;
  const char32_t code = decode(text, text.size() - 3).code;
  return is_surrogate(code) ? code : 0;
}

char16_t high_of(char32_t code) {
  return static_cast<char16_t>(0xD800 + ((code - 0x10000) >> 10));
}
char16_t low_of(char32_t code) {
  return static_cast<char16_t>(0xDC00 + ((code - 0x10000) & 0x3FF));
}

// The place of a unit: its character's first byte, and whether it is a pair's second half.
struct Place {
  std::size_t byte;
  bool second_half;
};

Place place_of(std::string_view text, std::size_t index) {
  std::size_t at = 0;
  while (index > 0 && at < text.size()) {
    const CodePoint point = decode(text, at);
    if (point.code >= 0x10000) {
      if (index == 1) return {at, true};
      --index;
    }
    --index;
    at += point.bytes;
  }
  return {at, false};
}

using CaseMap = icu::UnicodeString& (icu::UnicodeString::*)(const icu::Locale& locale);
// `first`: the first of the 26 ASCII letters that change.
std::string map_case(std::string_view text, char first, CaseMap map) {
  if (is_ascii(text)) {
    std::string mapped(text);
    for (char& c : mapped) c = c >= first && c < first + 26 ? static_cast<char>(c ^ 0x20) : c;
    return mapped;
  }
  const std::u16string units = to_utf16(text);
  icu::UnicodeString mapped(units.data(), static_cast<std::int32_t>(units.size()));
  (mapped.*map)(icu::Locale::getRoot());
  return from_utf16({mapped.getBuffer(), static_cast<std::size_t>(mapped.length())});
}

}  // namespace

bool is_ascii(std::string_view text) {
  unsigned bits = 0;
  for (const char c : text) bits |= static_cast<unsigned char>(c);
  return bits < 0x80;
}

std::size_t unit_length(std::string_view text) {
  if (is_ascii(text)) return text.size();
  std::size_t units = 0;
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    units += point.code >= 0x10000 ? 2 : 1;
    at += point.bytes;
  }
  return units;
}

void append_text(std::string& out, std::string_view piece) {
  if (const char32_t high = last_surrogate(out); is_high(high)) {
    if (const CodePoint low = decode(piece, 0); is_low(low.code)) {
      out.resize(out.size() - 3);
      append_code(out, join(high, low.code));
      piece.remove_prefix(low.bytes);
    }
  }
  out.append(piece);
}

std::string_view slice_units(std::string_view text, std::size_t from, std::size_t to,
                             std::string& storage) {
  if (from >= to) return {};
  if (is_ascii(text)) return text.substr(from, to - from);
  const Place begin = place_of(text, from);
  const std::string_view rest = text.substr(begin.byte);
  const Place end = place_of(rest, to - from + (begin.second_half ? 1 : 0));
  if (!begin.second_half && !end.second_half) return rest.substr(0, end.byte);
  storage.clear();
  std::size_t whole_from = 0;
  if (begin.second_half) {
    const CodePoint first = decode(rest, 0);
    append_code(storage, low_of(first.code));
    whole_from = first.bytes;
  }
  if (end.byte > whole_from) storage.append(rest.substr(whole_from, end.byte - whole_from));
  if (end.second_half) append_code(storage, high_of(decode(rest, end.byte).code));
  return storage;
}

char16_t unit_at(std::string_view text, std::size_t index) {
  if (is_ascii(text)) return static_cast<char16_t>(byte_at(text, index));
  const Place place = place_of(text, index);
  const char32_t code = decode(text, place.byte).code;
  if (code < 0x10000) return static_cast<char16_t>(code);
  return place.second_half ? low_of(code) : high_of(code);
}

std::size_t byte_of_unit(std::string_view text, std::size_t index) {
  if (is_ascii(text)) return std::min(index, text.size());
  const Place place = place_of(text, index);
  return place.second_half ? place.byte + decode(text, place.byte).bytes : place.byte;
}

int compare_units(std::string_view left, std::string_view right) {
  const std::size_t shared = std::min(left.size(), right.size());
  std::size_t at = 0;
  while (at < shared && left[at] == right[at]) ++at;
  if (at == shared) {
    return left.size() == right.size() ? 0 : (left.size() < right.size() ? -1 : 1);
  }
  const unsigned a = byte_at(left, at);
  const unsigned b = byte_at(right, at);
  // Bytes order like units, except for code points above the surrogates (lead bytes EE, EF)
  // compared with pairs (F0 and up) and halves of pairs (ED).
  if (a < 0xED || b < 0xED) return a < b ? -1 : 1;
  const char32_t x = decode(left, at).code;
  const char32_t y = decode(right, at).code;
  const char16_t first_x = x < 0x10000 ? static_cast<char16_t>(x) : high_of(x);
  const char16_t first_y = y < 0x10000 ? static_cast<char16_t>(y) : high_of(y);
  if (first_x != first_y) return first_x < first_y ? -1 : 1;
  return x < y ? -1 : 1;
}

std::u16string to_utf16(std::string_view text) {
  std::u16string units;
  units.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const CodePoint point = decode(text, at);
    if (point.code < 0x10000) {
      units.push_back(static_cast<char16_t>(point.code));
    } else {
      units.push_back(high_of(point.code));
      units.push_back(low_of(point.code));
    }
    at += point.bytes;
  }
  return units;
}

std::string from_utf16(std::u16string_view units) {
  std::string text;
  text.reserve(units.size());
  for (std::size_t at = 0; at < units.size(); ++at) {
    if (is_high(units[at]) && at + 1 < units.size() && is_low(units[at + 1])) {
      append_code(text, join(units[at], units[at + 1]));
      ++at;
    } else {
      append_code(text, units[at]);
    }
  }
  return text;
}

std::string to_upper(std::string_view text) {
  return map_case(text, 'a', &icu::UnicodeString::toUpper);
}

std::string to_lower(std::string_view text) {
  return map_case(text, 'A', &icu::UnicodeString::toLower);
}

bool is_space(char32_t code) {
  if (code < 0x80) return code == ' ' || (code >= 0x09 && code <= 0x0D);
  return code == 0xFEFF || (code != 0x85 && u_isUWhiteSpace(static_cast<UChar32>(code)) != 0);
}

std::string_view trim_start(std::string_view text) {
  while (!text.empty()) {
    const CodePoint point = decode(text, 0);
    if (!is_space(point.code)) break;
    text.remove_prefix(point.bytes);
  }
  return text;
}

std::string_view trim_end(std::string_view text) {
  while (!text.empty()) {
    std::size_t at = text.size() - 1;
    while (at > 0 && (byte_at(text, at) & 0xC0u) == 0x80u && text.size() - at < 4) --at;
    const CodePoint point = decode(text, at);
    if (point.bytes != text.size() - at || !is_space(point.code)) break;
    text.remove_suffix(point.bytes);
  }
  return text;
}

std::string_view trim(std::string_view text) {
  return trim_end(trim_start(text));
}

bool begins_name(char32_t code) {
  if (code < 0x80) {
    return (code >= 'a' && code <= 'z') || (code >= 'A' && code <= 'Z') || code == '_' ||
           code == '$';
  }
  return u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_ID_START) != 0;
}

bool continues_name(char32_t code) {
  if (code < 0x80) return begins_name(code) || (code >= '0' && code <= '9');
  return code == 0x200C || code == 0x200D ||
         u_hasBinaryProperty(static_cast<UChar32>(code), UCHAR_ID_CONTINUE) != 0;
}

std::string scrub(std::string_view text) {
  std::string out(text);
  // The replacement takes three bytes, like the surrogate.
  for (std::size_t at = out.find('\xED'); at != std::string::npos; at = out.find('\xED', at + 1)) {
    if (is_surrogate(decode(out, at).code)) out.replace(at, 3, "\xEF\xBF\xBD");
  }
  return out;
}

}  // namespace conversed::flows::expression
