#include "api/http/client_address.h"

#include <arpa/inet.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <vector>

#include "api/http/http_syntax.h"

namespace conversed::api {
namespace {

// Some proxies add the port: 192.0.2.7:4711, [2001:db8::7]:4711.
std::string_view without_port(std::string_view hop) {
  if (hop.starts_with('[')) {
    const auto end = hop.find(']');
    return end == std::string_view::npos ? hop : hop.substr(1, end - 1);
  }
  const auto colon = hop.find(':');
  return colon != std::string_view::npos && hop.find(':', colon + 1) == std::string_view::npos
             ? hop.substr(0, colon)
             : hop;
}

}  // namespace

std::string text_of(const config::Address& address) {
  std::array<char, INET6_ADDRSTRLEN> text{};
  if (config::is_mapped(address)) {
    inet_ntop(AF_INET, address.data() + 12, text.data(), text.size());
  } else {
    inet_ntop(AF_INET6, address.data(), text.data(), text.size());
  }
  return text.data();
}

bool is_trusted(std::string_view peer, std::span<const config::AddressRange> trusted) {
  if (trusted.empty()) return false;
  const auto address = config::parse_address(peer);
  return address && config::in_any(trusted, *address);
}

std::string forwarded_client(const std::string& peer, const HeaderList& headers,
                             std::span<const config::AddressRange> trusted) {
  std::vector<std::string_view> hops;
  for (const auto& [name, value] : headers) {
    if (name != "x-forwarded-for") continue;
    for (std::string_view rest = value;;) {
      const auto comma = rest.find(',');
      hops.push_back(trim(rest.substr(0, comma)));
      if (comma == std::string_view::npos) break;
      rest.remove_prefix(comma + 1);
    }
  }
  std::string client = peer;
  for (auto hop = hops.rbegin(); hop != hops.rend(); ++hop) {
    const auto address = config::parse_address(without_port(*hop));
    if (!address) break;
    client = text_of(*address);
    if (!config::in_any(trusted, *address)) break;
  }
  return client;
}

std::string counted_address(std::string_view peer) {
  auto address = config::parse_address(peer);
  if (!address) return std::string(peer);
  if (config::is_mapped(*address)) return text_of(*address);
  std::fill(address->begin() + 8, address->end(), std::uint8_t{0});
  return text_of(*address) + "/64";
}

}  // namespace conversed::api
