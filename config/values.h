#pragma once

// Checks the forms of settings' texts. All functions are pure and thread-safe.

#include <string>
#include <string_view>
#include <vector>

namespace conversed::config {

// Letters, digits, hyphens and dots, at most 253 characters; never all digits and dots.
[[nodiscard]] bool is_host_name(std::string_view text);
[[nodiscard]] bool is_ip_address(std::string_view text);
// An address and a prefix length whose remaining bits are zero: `10.0.0.0/8`, not `10.0.0.1/8`.
[[nodiscard]] bool is_cidr(std::string_view text);
// host:port, [IPv6]:port; the port is 1 to 65535.
[[nodiscard]] bool is_host_and_port(std::string_view text);

// The parts between commas, without blanks around them. An empty text has no parts.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

}  // namespace conversed::config
