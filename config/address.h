#pragma once

#include <array>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

struct sockaddr;

namespace conversed::config {

// An IP address in network byte order. An IPv4 address is in its mapped form, ::ffff:a.b.c.d, so
// that both notations are equal.
using Address = std::array<std::uint8_t, 16>;

[[nodiscard]] Address mapped(std::span<const std::uint8_t, 4> v4);
[[nodiscard]] bool is_mapped(const Address& address);

// Parses `192.0.2.7` or `2001:db8::7`. Refuses a port, brackets and a zone.
[[nodiscard]] std::optional<Address> parse_address(std::string_view text);

// The IP address of a socket's address. Nothing for null and other families.
[[nodiscard]] std::optional<Address> address_of(const sockaddr* address);

// All addresses whose first `bits` are those of `base`. Immutable.
struct AddressRange {
  Address base{};
  int bits = 0;  // of the mapped form, 0 to 128

  // Parses `10.0.0.0/8`, or a single address.
  [[nodiscard]] static std::optional<AddressRange> parse(std::string_view text);
  [[nodiscard]] bool contains(const Address& address) const;
};

[[nodiscard]] bool in_any(std::span<const AddressRange> ranges, const Address& address);

}  // namespace conversed::config
