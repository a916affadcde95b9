#include "daemon/egress.h"

#include <arpa/inet.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <algorithm>
#include <charconv>
#include <cstring>
#include <optional>
#include <span>
#include <utility>

namespace conversed::daemon {
namespace {

using Address = std::array<std::uint8_t, 16>;

constexpr std::array<std::uint8_t, 12> mapped_prefix{0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0xff, 0xff};

Address mapped(std::span<const std::uint8_t, 4> v4) {
  Address address{};
  std::copy(mapped_prefix.begin(), mapped_prefix.end(), address.begin());
  std::copy(v4.begin(), v4.end(), address.begin() + 12);
  return address;
}

bool is_mapped(const Address& address) {
  return std::equal(mapped_prefix.begin(), mapped_prefix.end(), address.begin());
}

struct Text {
  Address address{};
  int width = 128;  // 32 for IPv4
};

std::optional<Text> parse_address(const std::string& text) {
  Text parsed;
  std::array<std::uint8_t, 4> v4{};
  if (inet_pton(AF_INET, text.c_str(), v4.data()) == 1) {
    return Text{mapped(v4), 32};
  }
  if (inet_pton(AF_INET6, text.c_str(), parsed.address.data()) == 1) return parsed;
  return std::nullopt;
}

bool within(const Address& address, const Address& base, int bits) {
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

struct Block {
  const char* base;
  int bits;  // of the family
};

// The IANA special-purpose registries of IPv4 and IPv6, and multicast.
constexpr Block closed_v4[] = {
    {"0.0.0.0", 8},        // "this network"
    {"10.0.0.0", 8},       // private
    {"100.64.0.0", 10},    // carrier-grade NAT
    {"127.0.0.0", 8},      // loopback
    {"169.254.0.0", 16},   // link-local, metadata services
    {"172.16.0.0", 12},    // private
    {"192.0.0.0", 24},     // protocol assignments
    {"192.0.2.0", 24},     // documentation
    {"192.88.99.0", 24},   // 6to4 relays, deprecated
    {"192.168.0.0", 16},   // private
    {"198.18.0.0", 15},    // benchmarking
    {"198.51.100.0", 24},  // documentation
    {"203.0.113.0", 24},   // documentation
    {"224.0.0.0", 4},      // multicast
    {"240.0.0.0", 4},      // reserved, broadcast
};
// Of IPv6 only the global unicast space 2000::/3 is open, but for these. What embeds an IPv4
// address is judged by that one before it comes here.
constexpr Block closed_v6[] = {
    {"2001::", 23},      // protocol assignments, Teredo, ORCHID
    {"2001:db8::", 32},  // documentation
    {"3fff::", 20},      // documentation
};

std::vector<std::pair<Address, int>> compile(std::span<const Block> blocks) {
  std::vector<std::pair<Address, int>> ranges;
  for (const auto& block : blocks) {
    const auto base = parse_address(block.base);
    ranges.emplace_back(base->address, block.bits + 128 - base->width);
  }
  return ranges;
}

bool in_any(const std::vector<std::pair<Address, int>>& ranges, const Address& address) {
  return std::any_of(ranges.begin(), ranges.end(),
                     [&](const auto& range) { return within(address, range.first, range.second); });
}

// The IPv4 address inside an IPv6 one, in mapped form.
std::optional<Address> embedded_v4(const Address& address) {
  const auto at = [&](std::size_t offset) {
    return mapped(std::span<const std::uint8_t, 4>(address.data() + offset, 4));
  };
  static const Address nat64 = parse_address("64:ff9b::")->address;
  static const Address local_nat64 = parse_address("64:ff9b:1::")->address;
  static const Address translated = parse_address("::ffff:0:0:0")->address;
  static const Address six_to_four = parse_address("2002::")->address;
  if (within(address, nat64, 96) || within(address, local_nat64, 48) ||
      within(address, translated, 96) || within(address, Address{}, 96)) {
    return at(12);
  }
  if (within(address, six_to_four, 16)) return at(2);
  return std::nullopt;
}

bool is_public(const Address& address) {
  static const auto v4 = compile(closed_v4);
  static const auto v6 = compile(closed_v6);
  if (is_mapped(address)) return !in_any(v4, address);
  static const Address global_unicast = parse_address("2000::")->address;
  static const Address well_known_nat64 = parse_address("64:ff9b::")->address;
  if (within(address, well_known_nat64, 96)) return true;  // if what it embeds is
  return within(address, global_unicast, 3) && !in_any(v6, address);
}

// Lower case, without the brackets of an IPv6 literal and a trailing dot.
std::string folded(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.ends_with('.')) host.remove_suffix(1);
  std::string text(host);
  for (char& c : text) {
    if (c >= 'A' && c <= 'Z') c = static_cast<char>(c + ('a' - 'A'));
  }
  return text;
}

bool is_host_name(std::string_view text) {
  if (text.empty() || text.size() > 253) return false;
  // A name that ends in a number would be read as an address (URL Standard, "ends in a number").
  const auto last = text.substr(text.find_last_of('.') + 1);
  if (last.find_first_not_of("0123456789") == std::string_view::npos) return false;
  return text.find_first_not_of("abcdefghijklmnopqrstuvwxyz0123456789-._") ==
             std::string_view::npos &&
         text.find("..") == std::string_view::npos && text.front() != '.' && text.front() != '-';
}

std::optional<int> parse_bits(std::string_view text, int width) {
  int bits = -1;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), bits);
  if (error != std::errc() || end != text.data() + text.size() || bits < 0 || bits > width) {
    return std::nullopt;
  }
  return bits;
}

}  // namespace

model::Result<Egress> Egress::create(const std::vector<std::string>& allow) {
  Egress egress;
  for (const auto& entry : allow) {
    const auto slash = entry.find('/');
    const auto address = parse_address(entry.substr(0, slash));
    if (address) {
      const auto bits = slash == std::string::npos
                            ? address->width
                            : parse_bits(std::string_view(entry).substr(slash + 1), address->width);
      if (bits) {
        egress.ranges_.push_back({address->address, *bits + 128 - address->width});
        continue;
      }
    } else if (auto host = folded(entry); slash == std::string::npos && is_host_name(host)) {
      egress.hosts_.insert(std::move(host));
      continue;
    }
    return model::fail(model::Errc::invalid_argument,
                       "egress.allow: \"" + entry + "\" is neither a CIDR range nor a host name");
  }
  return egress;
}

bool Egress::open(std::string_view host, const Address& address) const {
  if (hosts_.contains(folded(host))) return true;
  const auto in_ranges = [this](const Address& which) {
    return std::any_of(ranges_.begin(), ranges_.end(),
                       [&](const Range& range) { return within(which, range.base, range.bits); });
  };
  const auto judge = [&](const Address& which) { return in_ranges(which) || is_public(which); };
  if (!judge(address)) return false;
  const auto inner = embedded_v4(address);
  // An IPv6 loopback that a range opens embeds no IPv4 address that could mean anything.
  if (!inner || (in_ranges(address) && within(address, Address{}, 96))) return true;
  return judge(*inner);
}

bool Egress::allows(std::string_view host, const sockaddr* address) const {
  if (address == nullptr) return false;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof(v4));
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
    return open(host, mapped(bytes));
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof(v6));
    Address bytes{};
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return open(host, bytes);
  }
  return false;
}

bool Egress::allows(std::string_view host, const std::string& address) const {
  const auto parsed = parse_address(address);
  return parsed && open(host, parsed->address);
}

}  // namespace conversed::daemon
