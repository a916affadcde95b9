#include "config/values.h"

#include <algorithm>

#include "config/address.h"
#include "store/text/ascii.h"
#include "store/text/quantity.h"

namespace conversed::config {
namespace {

bool is_host_label(std::string_view label) {
  return !label.empty() && label.size() <= 63 && label.front() != '-' && label.back() != '-' &&
         std::ranges::all_of(label, [](char c) {
           return text::is_digit(c) || text::is_letter(c) || c == '-' || c == '_';
         });
}

}  // namespace

bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  // `10.0.0.256` is a mistyped address, not a name.
  if (std::all_of(text.begin(), text.end(), [](char c) { return text::is_digit(c) || c == '.'; })) {
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
  if (!range || !text::parse_whole(text.substr(slash + 1))) return false;
  for (auto bit = static_cast<std::size_t>(range->bits); bit < 8 * range->base.size(); ++bit) {
    if ((range->base[bit / 8] >> (7 - bit % 8) & 1) != 0) return false;
  }
  return true;
}

bool is_host_and_port(std::string_view text) {
  const std::size_t colon = text.rfind(':');
  if (colon == std::string_view::npos) return false;
  const auto port = text::parse_whole(text.substr(colon + 1));
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
  if (text::trim(text).empty()) return parts;
  for (std::size_t begin = 0; begin <= text.size();) {
    const std::size_t end = std::min(text.find(',', begin), text.size());
    parts.emplace_back(text::trim(text.substr(begin, end - begin)));
    begin = end + 1;
  }
  return parts;
}

}  // namespace conversed::config
