#include "store/text/utf8.h"

#include <algorithm>

namespace conversed::text {

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
  const auto continues = [&](std::size_t at) { return (text[at] & 0xC0) == 0x80; };
  while (bytes > 0 && continues(bytes)) --bytes;
  return text.substr(0, bytes);
}

std::size_t count_characters(std::string_view text) {
  return static_cast<std::size_t>(
      std::ranges::count_if(text, [](unsigned char byte) { return (byte & 0xC0U) != 0x80U; }));
}

}  // namespace conversed::text
