#include "api/http/percent.h"

#include <algorithm>
#include <cstdint>

#include "api/http/http_syntax.h"
#include "store/model/hex.h"
#include "store/text/utf8.h"

namespace conversed::api {
namespace {

constexpr std::string_view encoded_slash = "%2F";
constexpr std::string_view encoded_percent = "%25";

// The byte of the "%XX" at the front of the text. Nothing if the escape is broken or means NUL.
std::optional<char> escaped_byte(std::string_view text) {
  if (text.size() < 3) return std::nullopt;
  const int high = model::hex_value(text[1]);
  const int low = model::hex_value(text[2]);
  if (high < 0 || low < 0 || high + low == 0) return std::nullopt;
  return static_cast<char>(high * 16 + low);
}

enum class Part : std::uint8_t { path, query };

std::optional<std::string> decode(std::string_view text, Part part) {
  std::string decoded;
  decoded.reserve(text.size());
  bool all_ascii = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    char c = text[i];
    if (c == '%') {
      const auto byte = escaped_byte(text.substr(i));
      if (!byte) return std::nullopt;
      c = *byte;
      i += 2;
      if (part == Part::path && (c == '/' || c == '%')) {
        decoded.append(c == '/' ? encoded_slash : encoded_percent);
        continue;
      }
    } else if (c == '+' && part == Part::query) {
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
  return decode(text, Part::path);
}

std::string percent_decode_segment(std::string_view segment) {
  std::string decoded;
  while (true) {
    const auto at = segment.find('%');
    decoded.append(segment.substr(0, at));
    if (at == std::string_view::npos) return decoded;
    decoded += segment.substr(at).starts_with(encoded_slash) ? '/' : '%';
    segment.remove_prefix(std::min(at + encoded_slash.size(), segment.size()));
  }
}

std::optional<HeaderList> parse_query(std::string_view text) {
  HeaderList pairs;
  while (!text.empty()) {
    const auto end = text.find('&');
    const auto part = text.substr(0, end);
    text = end == std::string_view::npos ? std::string_view() : text.substr(end + 1);
    if (part.empty()) continue;
    const auto equals = part.find('=');
    auto name = decode(part.substr(0, equals), Part::query);
    auto value = equals == std::string_view::npos ? std::optional<std::string>(std::string())
                                                  : decode(part.substr(equals + 1), Part::query);
    if (!name || !value) return std::nullopt;
    pairs.emplace_back(std::move(*name), std::move(*value));
  }
  return pairs;
}

}  // namespace conversed::api
