#pragma once

#include <chrono>
#include <optional>
#include <set>

#include "config/address.h"
#include "store/runtime/guarded.h"

struct sockaddr;

namespace conversed::daemon {

// The IP address of a socket's address; nothing for other families and null.
[[nodiscard]] std::optional<config::Address> address_of(const sockaddr* address);

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

}  // namespace conversed::daemon
