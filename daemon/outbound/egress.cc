#include "daemon/outbound/egress.h"

#include <ifaddrs.h>

#include <algorithm>
#include <cerrno>
#include <memory>
#include <optional>
#include <span>
#include <system_error>
#include <utility>

#include "api/http/http_syntax.h"
#include "config/values.h"
#include "daemon/ops/logging.h"

namespace conversed::daemon {
namespace {

using config::Address;
using config::AddressRange;
using config::in_any;
using config::is_mapped;
using config::mapped;

// The IANA special-purpose registries of IPv4 and IPv6, and multicast.
constexpr const char* closed_v4[] = {
    "0.0.0.0/8",        // "this network"
    "10.0.0.0/8",       // private
    "100.64.0.0/10",    // carrier-grade NAT
    "127.0.0.0/8",      // loopback
    "169.254.0.0/16",   // link-local, metadata services
    "172.16.0.0/12",    // private
    "192.0.0.0/24",     // protocol assignments
    "192.0.2.0/24",     // documentation
    "192.88.99.0/24",   // 6to4 relays, deprecated
    "192.168.0.0/16",   // private
    "198.18.0.0/15",    // benchmarking
    "198.51.100.0/24",  // documentation
    "203.0.113.0/24",   // documentation
    "224.0.0.0/4",      // multicast
    "240.0.0.0/4",      // reserved, broadcast
};
// The global unicast space of IPv6, 2000::/3, is open except for these ranges. For an address that
// embeds an IPv4 address, that address has been checked before.
constexpr const char* closed_v6[] = {
    "2001::/23",      // protocol assignments, Teredo, ORCHID
    "2001:db8::/32",  // documentation
    "3fff::/20",      // documentation
};

// NAT64 (well-known and local), IPv4-translated and IPv4-compatible addresses end with the IPv4
// address.
constexpr const char* translating_v6[] = {"64:ff9b::/96", "64:ff9b:1::/48", "::ffff:0:0:0/96",
                                          "::/96"};

std::vector<AddressRange> compile(std::span<const char* const> ranges) {
  std::vector<AddressRange> compiled;
  for (const char* range : ranges) compiled.push_back(*AddressRange::parse(range));
  return compiled;
}

// The IPv4 address inside an IPv6 one, in mapped form.
std::optional<Address> embedded_v4(const Address& address) {
  const auto at = [&](std::size_t offset) {
    return mapped(std::span<const std::uint8_t, 4>(address.data() + offset, 4));
  };
  static const auto nat64 = compile(translating_v6);
  static const auto six_to_four = *AddressRange::parse("2002::/16");
  if (in_any(nat64, address)) return at(12);
  if (six_to_four.contains(address)) return at(2);
  return std::nullopt;
}

bool is_public(const Address& address) {
  static const auto v4 = compile(closed_v4);
  static const auto v6 = compile(closed_v6);
  if (is_mapped(address)) return !in_any(v4, address);
  static const auto global_unicast = *AddressRange::parse("2000::/3");
  static const auto well_known_nat64 = *AddressRange::parse("64:ff9b::/96");
  if (well_known_nat64.contains(address)) return true;  // `allows` then checks its IPv4 address
  return global_unicast.contains(address) && !in_any(v6, address);
}

bool is_of_this_machine(const Address& address) {
  static OwnAddresses own(std::chrono::seconds(1));
  return own.contains(address);
}

// Lower case, without the brackets of an IPv6 literal and a trailing dot.
std::string folded(std::string_view host) {
  if (host.starts_with('[') && host.ends_with(']')) host = host.substr(1, host.size() - 2);
  if (host.ends_with('.')) host.remove_suffix(1);
  return api::lower_case(host);
}

}  // namespace

void OwnAddresses::read_interfaces(Known& known) {
  known.read_at = std::chrono::steady_clock::now();
  ifaddrs* list = nullptr;
  if (::getifaddrs(&list) != 0) {
    if (!std::exchange(known.warned, true)) {
      log::warn(
          "the machine's own addresses can't be read, so calls to this machine's own public "
          "addresses are not refused",
          {{"error", std::error_code(errno, std::system_category()).message()}});
    }
    return;
  }
  const std::unique_ptr<ifaddrs, void (*)(ifaddrs*)> owned(list, ::freeifaddrs);
  known.addresses.clear();
  for (const ifaddrs* entry = list; entry != nullptr; entry = entry->ifa_next) {
    if (const auto address = config::address_of(entry->ifa_addr)) known.addresses.insert(*address);
  }
}

OwnAddresses::OwnAddresses(std::chrono::milliseconds good_for) : good_for_(good_for) {}

bool OwnAddresses::contains(const config::Address& address) {
  return known_.with([&](Known& known) {
    const bool is_fresh =
        known.read_at && std::chrono::steady_clock::now() - *known.read_at < good_for_;
    if (!is_fresh) read_interfaces(known);
    return known.addresses.contains(address);
  });
}

model::Result<Egress> Egress::create(const std::vector<std::string>& allow, IsOwn is_own) {
  Egress egress;
  egress.is_own_ = is_own ? std::move(is_own) : IsOwn(is_of_this_machine);
  for (const auto& entry : allow) {
    if (const auto range = AddressRange::parse(entry)) {
      egress.ranges_.push_back(*range);
      continue;
    }
    if (auto host = folded(entry); config::is_host_name(host)) {
      egress.hosts_.insert(std::move(host));
      continue;
    }
    return model::fail(model::Errc::invalid_argument,
                       "egress.allow: \"" + entry + "\" is neither a CIDR range nor a host name");
  }
  return egress;
}

bool Egress::allows(std::string_view host, const Address& address) const {
  if (hosts_.contains(folded(host))) return true;
  static const auto compatible = *AddressRange::parse("::/96");
  const auto in_ranges = [this](const Address& which) { return in_any(ranges_, which); };
  const auto judge = [&](const Address& which) {
    return in_ranges(which) || (is_public(which) && !is_own_(which));
  };
  if (!judge(address)) return false;
  const auto inner = embedded_v4(address);
  // The IPv6 loopback, which a range may open, embeds no meaningful IPv4 address.
  if (!inner || (in_ranges(address) && compatible.contains(address))) return true;
  return judge(*inner);
}

bool Egress::allows(std::string_view host, const sockaddr* address) const {
  const auto parsed = config::address_of(address);
  return parsed && allows(host, *parsed);
}

}  // namespace conversed::daemon
