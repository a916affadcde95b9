#include "api/percent.h"

#include <cstdint>

#include "store/text/utf8.h"

namespace conversed::api {
namespace {

int hex_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'f') return c - 'a' + 10;
  if (c >= 'A' && c <= 'F') return c - 'A' + 10;
  return -1;
}

std::optional<std::string> decode(std::string_view text, bool plus_is_space) {
  std::string decoded;
  decoded.reserve(text.size());
  bool all_ascii = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      if (text.size() - i < 3) return std::nullopt;
      const int high = hex_value(text[i + 1]);
      const int low = hex_value(text[i + 2]);
      if (high < 0 || low < 0) return std::nullopt;
      c = static_cast<char>(high * 16 + low);
      if (c == '\0') return std::nullopt;
      i += 2;
    } else if (c == '+' && plus_is_space) {
      c = ' ';
    }
    all_ascii = all_ascii && static_cast<unsigned char>(c) < 0x80;
    decoded.push_back(c);
  }
  if (!all_ascii && !text::is_utf8(decoded)) return std::nullopt;
  return decoded;
}

}  // namespace

std::optional<std::string> percent_decode_path(std::string_view text) {
  return decode(text, false);
}

std::optional<HeaderList> parse_query(std::string_view text) {
  HeaderList pairs;
  while (!text.empty()) {
    const auto end = text.find('&');
    const auto part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (part.empty()) continue;
    const auto equals = part.find('=');
    auto name = decode(part.substr(0, equals), true);
    auto value = equals == std::string_view::npos ? std::optional<std::string>(std::string())
                                                  : decode(part.substr(equals + 1), true);
    if (!name || !value) return std::nullopt;
    pairs.emplace_back(std::move(*name), std::move(*value));
  }
  return pairs;
}

std::string percent_encode(std::string_view text) {
  constexpr std::string_view digits = "0123456789ABCDEF";
  std::string encoded;
  for (const char c : text) {
    const bool alphanumeric =
        (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9');
    if (alphanumeric || c == '-' || c == '.' || c == '_' || c == '~') {
      encoded += c;
      continue;
    }
    const auto byte = static_cast<unsigned char>(c);
    encoded += '%';
    encoded += digits[byte >> 4U];
    encoded += digits[byte & 0xFU];
  }
  return encoded;
}

}  // namespace conversed::api
