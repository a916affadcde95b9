#include "config/address.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <string>

namespace conversed::config {
namespace {

constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

struct Text {
  Address address{};
  int width = 128;  // 32 for the IPv4 notation
};

std::optional<Text> parse(std::string_view text) {
  if (text.find('\0') != std::string_view::npos) return std::nullopt;
  const std::string terminated(text);
  std::array<std::uint8_t, 4> v4{};
  if (inet_pton(AF_INET, terminated.c_str(), v4.data()) == 1) return Text{mapped(v4), 32};
  Text parsed;
  if (inet_pton(AF_INET6, terminated.c_str(), parsed.address.data()) == 1) return parsed;
  return std::nullopt;
}

}  // namespace

Address mapped(std::span<const std::uint8_t, 4> v4) {
  Address address{};
  std::copy(mapped_prefix.begin(), mapped_prefix.end(), address.begin());
  std::copy(v4.begin(), v4.end(), address.begin() + 12);
  return address;
}

bool is_mapped(const Address& address) {
  return std::equal(mapped_prefix.begin(), mapped_prefix.end(), address.begin());
}

std::optional<Address> parse_address(std::string_view text) {
  const auto parsed = parse(text);
  if (!parsed) return std::nullopt;
  return parsed->address;
}

std::optional<Address> address_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof(v4));
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
    return mapped(bytes);
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof(v6));
    Address bytes{};
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return bytes;
  }
  return std::nullopt;
}

std::optional<AddressRange> AddressRange::parse(std::string_view text) {
  const auto slash = text.find('/');
  const auto base = config::parse(text.substr(0, slash));
  if (!base) return std::nullopt;
  int bits = base->width;
  if (slash != std::string_view::npos) {
    const auto digits = text.substr(slash + 1);
    const auto [end, error] = std::from_chars(digits.data(), digits.data() + digits.size(), bits);
    if (error != std::errc() || end != digits.data() + digits.size() || bits < 0 ||
        bits > base->width) {
      return std::nullopt;
    }
  }
  return AddressRange{base->address, bits + 128 - base->width};
}

bool AddressRange::contains(const Address& address) const {
  const auto whole = static_cast<std::size_t>(bits / 8);
  if (!std::equal(base.begin(), base.begin() + static_cast<std::ptrdiff_t>(whole),
                  address.begin())) {
    return false;
  }
  const int rest = bits % 8;
  if (rest == 0) return true;
  const int mask = 0xff << (8 - rest) & 0xff;
  return (address[whole] & mask) == (base[whole] & mask);
}

bool in_any(std::span<const AddressRange> ranges, const Address& address) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const AddressRange& range) { return range.contains(address); });
}

}  // namespace conversed::config
