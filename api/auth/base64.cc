#include "api/auth/base64.h"

#include <array>

namespace conversed::api {
namespace {

constexpr std::string_view letters =
    "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789";

int value_of(char c, Base64 alphabet) {
  if (c >= 'A' && c <= 'Z') return c - 'A';
  if (c >= 'a' && c <= 'z') return c - 'a' + 26;
  if (c >= '0' && c <= '9') return c - '0' + 52;
  if (c == (alphabet == Base64::url ? '-' : '+')) return 62;
  if (c == (alphabet == Base64::url ? '_' : '/')) return 63;
  return -1;
}

char digit(std::uint32_t value, Base64 alphabet) {
  if (value < letters.size()) return letters[value];
  if (alphabet == Base64::url) return value == 62 ? '-' : '_';
  return value == 62 ? '+' : '/';
}

}  // namespace

std::optional<std::string> decode_base64(std::string_view text, Base64 alphabet) {
  if (alphabet == Base64::standard) {
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  }
  if (text.size() % 4 == 1) return std::nullopt;
  std::string bytes;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : text) {
    const int value = value_of(c, alphabet);
    if (value < 0) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(value);
    held += 6;
    if (held < 8) continue;
    held -= 8;
    bytes.push_back(static_cast<char>((bits >> held) & 0xFF));
  }
  // Bits that belong to no byte would make one text of many.
  if (alphabet == Base64::url && (bits & ((1U << held) - 1)) != 0) return std::nullopt;
  return bytes;
}

std::string encode_base64(std::string_view bytes, Base64 alphabet) {
  std::string text;
  std::uint32_t bits = 0;
  int held = 0;
  for (const char c : bytes) {
    bits = (bits << 8) | static_cast<unsigned char>(c);
    for (held += 8; held >= 6; held -= 6) text += digit((bits >> (held - 6)) & 0x3F, alphabet);
  }
  if (held > 0) text += digit((bits << (6 - held)) & 0x3F, alphabet);
  if (alphabet == Base64::standard) text.append((4 - text.size() % 4) % 4, '=');
  return text;
}

}  // namespace conversed::api
