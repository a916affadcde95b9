#pragma once

// The texts of settings' values, parsed and written. All functions are pure and thread-safe. A
// parser gives nullopt for a text that is not exactly of the form.

#include <chrono>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

namespace conversed::config {

// Decimal digits without sign, spaces or leading zeros: `010` is ten to some YAML readers, eight to
// others.
[[nodiscard]] std::optional<std::uint64_t> parse_whole(std::string_view text);

// A whole number and one of ms, s, m, h, d, without space: `500ms`, `10s`, `5m`, `2h`, `3d`.
[[nodiscard]] std::optional<std::chrono::milliseconds> parse_duration(std::string_view text);

// A whole number of bytes, or of KiB, MiB or GiB: `65536`, `64KiB`.
[[nodiscard]] std::optional<std::uint64_t> parse_size(std::string_view text);

// In the largest unit that divides it: 90 s is `90s`, 120 s is `2m`. The duration is not negative.
[[nodiscard]] std::string duration_text(std::chrono::milliseconds duration);
[[nodiscard]] std::string size_text(std::uint64_t bytes);

// Letters, digits, hyphens and dots, at most 253 characters; never all digits and dots.
[[nodiscard]] bool is_host_name(std::string_view text);
[[nodiscard]] bool is_ip_address(std::string_view text);
// An address and a prefix length whose remaining bits are zero: `10.0.0.0/8`, not `10.0.0.1/8`.
[[nodiscard]] bool is_cidr(std::string_view text);
// host:port, [IPv6]:port; the port is 1 to 65535.
[[nodiscard]] bool is_host_and_port(std::string_view text);

// The parts between commas, without the blanks around them; an empty text has none.
[[nodiscard]] std::vector<std::string> split_list(std::string_view text);

// In double quotes, control characters and quotes escaped, cut after 60 bytes at a character's
// border.
[[nodiscard]] std::string in_quotes(std::string_view text);

// The number of single-character edits (insert, delete, replace, swap of neighbours) between two
// texts. Takes time and memory of the product of their lengths: give it keys, not files.
[[nodiscard]] std::size_t edit_distance(std::string_view a, std::string_view b);

}  // namespace conversed::config
