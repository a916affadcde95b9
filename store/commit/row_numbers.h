#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>

// The numbers of rows: `id` of sessions and outputs, `n` of dead letters and schedules. Each shard
// numbers its rows from a base of its own, so a row keeps its number on any shard.
namespace conversed::store {

inline constexpr int bits_of_a_shards_numbers = 40;

// The shard's own numbers are higher than this one, up to `last_number`.
[[nodiscard]] constexpr std::int64_t base_of_numbers(std::size_t shard) {
  return static_cast<std::int64_t>(shard) << bits_of_a_shards_numbers;
}
// The last number of the shard that gave this one.
[[nodiscard]] constexpr std::int64_t last_number(std::int64_t number) {
  return number | (base_of_numbers(1) - 1);
}

// An SQL expression: the next `n` of the table. `numbers_from` and `numbers_to` in `meta` bound the
// shard's own numbers; rows of other shards do not count.
[[nodiscard]] inline std::string sql_of_next_number(std::string_view table) {
  return "(SELECT MAX(n) + 1 FROM (SELECT MAX(n) AS n FROM " + std::string(table) +
         " WHERE n <= COALESCE((SELECT value FROM meta WHERE name = 'numbers_to'),"
         " 9223372036854775807) UNION ALL SELECT value FROM meta WHERE name = 'numbers_from'"
         " UNION ALL SELECT 0) AS numbers)";
}

}  // namespace conversed::store
