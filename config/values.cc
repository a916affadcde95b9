#include "config/values.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "config/address.h"

namespace conversed::config {
namespace {

struct Unit {
  std::string_view name;
  std::uint64_t factor;
};

// Largest first, as `text_in` needs.
constexpr std::array<Unit, 5> duration_units{
    {{"d", 86'400'000}, {"h", 3'600'000}, {"m", 60'000}, {"s", 1000}, {"ms", 1}}};
constexpr std::array<Unit, 4> size_units{
    {{"GiB", 1U << 30U}, {"MiB", 1U << 20U}, {"KiB", 1U << 10U}, {"", 1}}};

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}
bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
}

// The number times its unit, in the smallest unit, at most `max`.
template <std::size_t n>
std::optional<std::uint64_t> parse_with_unit(std::string_view text,
                                             const std::array<Unit, n>& units, std::uint64_t max) {
  const auto* digits_end = std::find_if_not(text.begin(), text.end(), is_digit);
  const auto digits = static_cast<std::size_t>(digits_end - text.begin());
  const auto number = parse_whole(text.substr(0, digits));
  if (!number) return std::nullopt;
  const std::string_view name = text.substr(digits);
  for (const Unit& unit : units) {
    if (unit.name != name) continue;
    if (*number > max / unit.factor) return std::nullopt;
    return *number * unit.factor;
  }
  return std::nullopt;
}

template <std::size_t n>
std::string text_in(std::uint64_t value, const std::array<Unit, n>& units) {
  for (const Unit& unit : units) {
    if (value != 0 && value % unit.factor == 0) {
      return std::to_string(value / unit.factor) + std::string(unit.name);
    }
  }
  return "0" + std::string(units.back().name);
}

bool is_host_label(std::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::all_of(label.begin(), label.end(),
                     [](char c) { return is_digit(c) || is_letter(c) || c == '-' || c == '_'; });
}

std::string_view trimmed(std::string_view text) {
  const std::size_t first = text.find_first_not_of(" \t");
  if (first == std::string_view::npos) return {};
  return text.substr(first, text.find_last_not_of(" \t") - first + 1);
}

}  // namespace

std::optional<std::uint64_t> parse_whole(std::string_view text) {
  if (text.empty() || !is_digit(text.front())) return std::nullopt;
  if (text.size() > 1 && text.front() == '0') return std::nullopt;
  std::uint64_t value = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), value);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return value;
}

std::optional<std::chrono::milliseconds> parse_duration(std::string_view text) {
  using Count = std::chrono::milliseconds::rep;
  const auto ms = parse_with_unit(text, duration_units,
                                  static_cast<std::uint64_t>(std::numeric_limits<Count>::max()));
  if (!ms) return std::nullopt;
  return std::chrono::milliseconds(static_cast<Count>(*ms));
}

std::optional<std::uint64_t> parse_size(std::string_view text) {
  return parse_with_unit(text, size_units, std::numeric_limits<std::uint64_t>::max());
}

std::string duration_text(std::chrono::milliseconds duration) {
  const auto ms = static_cast<std::uint64_t>(duration.count());
  return ms == 0 ? "0s" : text_in(ms, duration_units);
}

std::string size_text(std::uint64_t bytes) {
  return text_in(bytes, size_units);
}

bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  // `10.0.0.256` is a slip, not a name.
  if (std::all_of(text.begin(), text.end(), [](char c) { return is_digit(c) || c == '.'; })) {
    return false;
  }
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find('.', begin), text.size());
    if (!is_host_label(text.substr(begin, end - begin))) return false;
    begin = end + 1;
  }
  return true;
}

bool is_ip_address(std::string_view text) {
  return parse_address(text).has_value();
}

bool is_cidr(std::string_view text) {
  const std::size_t slash = text.find('/');
  if (slash == std::string_view::npos) return false;
  const auto range = AddressRange::parse(text);
  if (!range || !parse_whole(text.substr(slash + 1))) return false;
  for (auto bit = static_cast<std::size_t>(range->bits); bit < 8 * range->base.size(); ++bit) {
    if ((range->base[bit / 8] >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const auto port = parse_whole(text.substr(colon + 1));
  if (!port || *port == 0 || *port > 65535) return false;
  const std::string_view host = text.substr(0, colon);
  if (host.size() > 2 && host.front() == '[' && host.back() == ']') {
    const std::string_view inside = host.substr(1, host.size() - 2);
    return inside.find(':') != std::string_view::npos && is_ip_address(inside);
  }
  return is_host_name(host) || (host.find(':') == std::string_view::npos && is_ip_address(host));
}

std::vector<std::string> split_list(std::string_view text) {
  std::vector<std::string> parts;
  if (trimmed(text).empty()) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(trimmed(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

std::string in_quotes(std::string_view text) {
  constexpr std::size_t max_shown = 60;
  constexpr std::string_view hex = "0123456789abcdef";
  std::string_view shown = text;
  if (text.size() > max_shown) {
    std::size_t cut = max_shown;
    while (cut > 0 && (static_cast<unsigned char>(text[cut]) & 0xC0U) == 0x80U) --cut;
    shown = text.substr(0, cut);
  }
  std::string out = "\"";
  for (const char c : shown) {
    const auto byte = static_cast<unsigned char>(c);
    if (c == '"' || c == '\\') {
      out += '\\';
      out += c;
    } else if (byte < 0x20 || byte == 0x7F) {
      out += "\\x";
      out += hex[byte >> 4U];
      out += hex[byte & 0xFU];
    } else {
      out += c;
    }
  }
  return out + (shown.size() < text.size() ? "...\"" : "\"");
}

std::size_t edit_distance(std::string_view a, std::string_view b) {
  const std::size_t width = b.size() + 1;
  std::vector<std::size_t> cost((a.size() + 1) * width);
  const auto at = [&](std::size_t i, std::size_t j) -> std::size_t& { return cost[i * width + j]; };
  for (std::size_t i = 0; i <= a.size(); ++i) at(i, 0) = i;
  for (std::size_t j = 0; j <= b.size(); ++j) at(0, j) = j;
  for (std::size_t i = 1; i <= a.size(); ++i) {
    for (std::size_t j = 1; j <= b.size(); ++j) {
      const std::size_t replaced = at(i - 1, j - 1) + (a[i - 1] == b[j - 1] ? 0 : 1);
      at(i, j) = std::min({at(i - 1, j) + 1, at(i, j - 1) + 1, replaced});
      if (i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1]) {
        at(i, j) = std::min(at(i, j), at(i - 2, j - 2) + 1);
      }
    }
  }
  return at(a.size(), b.size());
}

}  // namespace conversed::config
