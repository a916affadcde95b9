#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "config/address.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

struct sockaddr;

namespace conversed::daemon {

// The addresses that this machine's interfaces have. Thread-safe.
class OwnAddresses {
 public:
  // The interfaces are read again after `good_for`.
  explicit OwnAddresses(std::chrono::milliseconds good_for);

  [[nodiscard]] bool contains(const config::Address& address);

 private:
  struct Known {
    std::set<config::Address> addresses;
    std::optional<std::chrono::steady_clock::time_point> read_at;
    bool warned = false;
  };
  static void read_interfaces(Known& known);

  const std::chrono::milliseconds good_for_;
  model::Guarded<Known> known_;
};

// The addresses that the daemon may connect to for Flows, webhooks and all other URLs of users.
// Public unicast addresses are open. Everything else (loopback, private, link-local with the
// clouds' metadata addresses, carrier-grade NAT, unique local, multicast, documentation, reserved,
// unspecified, and all addresses of this machine's own interfaces) is closed unless `egress.allow`
// opens it: by a range, or by a host name, whose addresses are then open for requests to that name
// only. If an IPv6 address embeds an IPv4 address (mapped, compatible, NAT64, 6to4), both must be
// open.
//
// HttpClient checks the resolved address when it connects. So a name that resolves to another
// address later does not open that address. Immutable, hence thread-safe.
class Egress {
 public:
  // `allow`: CIDR ranges ("10.0.0.0/8", "fd00::/8"), addresses and host names, the latter compared
  // without case and a trailing dot. `invalid_argument`, with the entry, for anything else.
  // `is_own` tells whether an address belongs to this machine. Empty: OwnAddresses tells.
  using IsOwn = std::function<bool(const config::Address&)>;
  [[nodiscard]] static model::Result<Egress> create(const std::vector<std::string>& allow,
                                                    IsOwn is_own = {});

  // `host` is the URL's host as written there; a null or foreign family is closed.
  [[nodiscard]] bool allows(std::string_view host, const sockaddr* address) const;

  [[nodiscard]] bool allows(std::string_view host, const config::Address& address) const;

 private:
  Egress() = default;

  IsOwn is_own_;
  std::vector<config::AddressRange> ranges_;
  std::set<std::string, std::less<>> hosts_;
};

}  // namespace conversed::daemon
