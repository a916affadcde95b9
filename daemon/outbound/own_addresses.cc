#include "daemon/outbound/own_addresses.h"

#include <ifaddrs.h>
#include <netinet/in.h>
#include <sys/socket.h>

#include <array>
#include <cerrno>
#include <cstring>
#include <memory>
#include <system_error>
#include <utility>

#include "daemon/ops/logging.h"

namespace conversed::daemon {

using SteadyClock = std::chrono::steady_clock;

void OwnAddresses::read_interfaces(Known& known) {
  known.read_at = SteadyClock::now();
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
    if (const auto address = address_of(entry->ifa_addr)) known.addresses.insert(*address);
  }
}

std::optional<config::Address> address_of(const sockaddr* address) {
  if (address == nullptr) return std::nullopt;
  if (address->sa_family == AF_INET) {
    sockaddr_in v4{};
    std::memcpy(&v4, address, sizeof(v4));
    std::array<std::uint8_t, 4> bytes{};
    std::memcpy(bytes.data(), &v4.sin_addr, bytes.size());
    return config::mapped(bytes);
  }
  if (address->sa_family == AF_INET6) {
    sockaddr_in6 v6{};
    std::memcpy(&v6, address, sizeof(v6));
    config::Address bytes{};
    std::memcpy(bytes.data(), &v6.sin6_addr, bytes.size());
    return bytes;
  }
  return std::nullopt;
}

OwnAddresses::OwnAddresses(std::chrono::milliseconds good_for) : good_for_(good_for) {}

bool OwnAddresses::contains(const config::Address& address) {
  return known_.with([&](Known& known) {
    const bool is_fresh = known.read_at && SteadyClock::now() - *known.read_at < good_for_;
    if (!is_fresh) read_interfaces(known);
    return known.addresses.contains(address);
  });
}

}  // namespace conversed::daemon
