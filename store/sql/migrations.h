#pragma once

#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

#include "store/model/result.h"

namespace conversed::store {

class Connection;

// One step of the schema. `min_reader` is the oldest `schema_version` of a program that can use the
// store after this step. Within a major version a step only adds; `min_reader` rises where that is
// impossible, and older programs then refuse the store.
// Kept by: MigrationTest.OlderProgramIsRefusedOnceMinReaderIsAboveItsVersion.
struct Migration {
  std::int64_t version;
  std::int64_t min_reader;
  std::string_view sql;  // statements, each ended by ";" at a line's end
};

// In order, from version 1 without gaps. A version is the same schema in both dialects.
[[nodiscard]] std::span<const Migration> sqlite_steps();
[[nodiscard]] std::span<const Migration> postgres_steps();

// The version of the schema that the connection finds. None if there is no schema.
[[nodiscard]] std::optional<std::int64_t> stored_version(Connection& connection);

// Takes the missing steps, each in a transaction of its own; other daemons wait meanwhile. Writes
// nothing if no step is missing: a start must not depend on a store that can be written. `conflict`
// if the store needs a newer program.
[[nodiscard]] model::Result<void> migrate(Connection& connection, std::span<const Migration> steps);

}  // namespace conversed::store
