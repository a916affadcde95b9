#include "store/text/terminal.h"

#include <unicode/uchar.h>

#include <algorithm>
#include <array>

#include "store/model/hex.h"
#include "store/text/utf8.h"

namespace conversed::text {
namespace {

bool acts_on_terminals(char32_t code, Lines lines) {
  if (code == '\n' || code == '\t') return lines == Lines::one;
  return code < 0x20 || (code >= 0x7F && code < 0xA0) ||  // C0, delete, C1
         (code >= 0x2028 && code <= 0x202E) ||            // separators, embeddings, overrides
         (code >= 0x2066 && code <= 0x2069) ||            // isolates
         code == 0xFEFF;                                  // byte order mark
}

std::size_t columns_of(char32_t code) {
  const auto point = static_cast<UChar32>(code);
  constexpr auto combining = U_GC_MN_MASK | U_GC_ME_MASK | U_GC_CF_MASK;
  // Vowels and final consonants of Hangul join the syllable before them.
  const bool joins = code >= 0x1160 && code <= 0x11FF;
  if (joins || (U_GET_GC_MASK(point) & combining) != 0) return 0;
  const int kind = u_getIntPropertyValue(point, UCHAR_EAST_ASIAN_WIDTH);
  return kind == U_EA_WIDE || kind == U_EA_FULLWIDTH ? 2 : 1;
}

// The bytes of the longest beginning that takes at most `columns`, marks at its end included.
std::size_t fitting(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  while (at < text.size()) {
    const auto [code, bytes] = decode(text, at);
    const std::size_t wide = columns_of(code);
    if (wide > columns) break;
    columns -= wide;
    at += bytes;
  }
  return at;
}

}  // namespace

std::string shown(std::string_view text, Lines lines) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    const char32_t code = decode(text, at).code;
    if (length == 0) {
      append_code(out, 0xFFFD);
    } else if (!acts_on_terminals(code, lines)) {
      out.append(text, at, length);
    } else if (code == '\n') {
      out += "\\n";
    } else if (code == '\t') {
      out += "\\t";
    } else {
      out += "\\u" + model::hex(std::array{static_cast<std::uint8_t>(code >> 8),
                                           static_cast<std::uint8_t>(code)});
    }
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t longest = 60;
  const auto beginning = cut(text, longest);
  std::string out = "\"";
  for (const char c : beginning) {
    if (c == '"' || c == '\\') out += '\\';
    out += c;
  }
  return shown(out, Lines::one) + (beginning.size() < text.size() ? "...\"" : "\"");
}

std::size_t width(std::string_view text) {
  std::size_t columns = 0;
  for (std::size_t at = 0; at < text.size();) {
    const auto [code, bytes] = decode(text, at);
    columns += columns_of(code);
    at += bytes;
  }
  return columns;
}

std::string shortened(std::string_view text, std::size_t columns) {
  if (fitting(text, columns) == text.size()) return std::string(text);
  if (columns == 0) return {};
  return std::string(text.substr(0, fitting(text, columns - 1))) + "…";
}

}  // namespace conversed::text
