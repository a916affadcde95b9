#include "store/text/utf8.h"

#include <algorithm>

namespace conversed::text {
namespace {

constexpr char32_t replacement = 0xFFFD;

unsigned byte_at(std::string_view text, std::size_t at) {
  return static_cast<unsigned char>(text[at]);
}

bool is_continuation(std::string_view text, std::size_t at) {
  return at < text.size() && (byte_at(text, at) & 0xC0u) == 0x80u;
}

}  // namespace

CodePoint decode(std::string_view text, std::size_t at) {
  if (at >= text.size()) return {replacement, 0};
  const unsigned lead = byte_at(text, at);
  if (lead < 0x80) return {lead, 1};
  const auto bits = [&](std::size_t offset) -> char32_t {
    return byte_at(text, at + offset) & 0x3F;
  };
  if (lead >= 0xC2 && lead <= 0xDF && is_continuation(text, at + 1)) {
    return {((lead & 0x1Fu) << 6) | bits(1), 2};
  }
  if ((lead & 0xF0u) == 0xE0u && is_continuation(text, at + 1) && is_continuation(text, at + 2)) {
    const char32_t code = ((lead & 0x0Fu) << 12) | (bits(1) << 6) | bits(2);
    if (code >= 0x800) return {code, 3};
  }
  if (lead >= 0xF0 && lead <= 0xF4 && is_continuation(text, at + 1) &&
      is_continuation(text, at + 2) && is_continuation(text, at + 3)) {
    const char32_t code = ((lead & 0x07u) << 18) | (bits(1) << 12) | (bits(2) << 6) | bits(3);
    if (code >= 0x10000 && code <= 0x10FFFF) return {code, 4};
  }
  return {replacement, 1};
}

std::size_t sequence_length(std::string_view text, std::size_t at) {
  const auto [code, bytes] = decode(text, at);
  const bool is_surrogate = code >= 0xD800 && code <= 0xDFFF;
  return is_surrogate || (code == replacement && bytes == 1) ? 0 : bytes;
}

void append_code(std::string& out, char32_t code) {
  const auto add = [&](char32_t bits) { out.push_back(static_cast<char>(bits)); };
  if (code < 0x80) return add(code);
  if (code < 0x800) {
    add(0xC0u | (code >> 6));
  } else {
    if (code < 0x10000) {
      add(0xE0u | (code >> 12));
    } else {
      add(0xF0u | (code >> 18));
      add(0x80u | ((code >> 12) & 0x3Fu));
    }
    add(0x80u | ((code >> 6) & 0x3Fu));
  }
  add(0x80u | (code & 0x3Fu));
}

bool is_utf8(std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) return false;
    at += length;
  }
  return true;
}

std::string well_formed(std::string_view text) {
  std::string out;
  out.reserve(text.size());
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t length = sequence_length(text, at);
    if (length == 0) {
      append_code(out, 0xFFFD);
    } else {
      out.append(text, at, length);
    }
    at += std::max<std::size_t>(1, length);
  }
  return out;
}

std::string_view cut(std::string_view text, std::size_t bytes) {
  if (text.size() <= bytes) return text;
  while (bytes > 0 && is_continuation(text, bytes)) --bytes;
  return text.substr(0, bytes);
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](unsigned char byte) { return (byte & 0xC0U) != 0x80U; }));
}

}  // namespace conversed::text
