#pragma once

#include <cstdint>
#include <span>
#include <string_view>

namespace conversed::store {

// One step of the schema. `min_reader`: the oldest `schema_version` of a program that can still use
// the store after it; it rises only where a change is no mere addition.
struct Migration {
  std::int64_t version;
  std::int64_t min_reader;
  std::string_view sql;  // statements, each ended by ";" at a line's end
};

// In order, from version 1 without gaps. A version is the same schema in both dialects.
[[nodiscard]] std::span<const Migration> sqlite_steps();
[[nodiscard]] std::span<const Migration> postgres_steps();

}  // namespace conversed::store
