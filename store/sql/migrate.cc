#include "store/sql/migrations.h"
#include "store/sql/sql.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::fail;
using model::Result;

// The version that steps have to follow; 0 if there is no schema. `conflict` if a program that
// knows `newest` can't use the store.
Result<std::int64_t> usable_version(Connection& connection, std::int64_t newest) {
  const auto version = stored_version(connection);
  if (!version) return 0;
  const auto min_reader = connection.number("SELECT MAX(min_reader) FROM schema_version");
  if (min_reader > newest) {
    return fail(Errc::conflict, "the store was written by a newer program: it needs version " +
                                    std::to_string(min_reader) + " of the schema, this one has " +
                                    std::to_string(newest));
  }
  return *version;
}

Result<void> take_step(Connection& connection, const Migration& migration, std::int64_t newest) {
  connection.begin();
  try {
    // Another daemon may have taken the step meanwhile.
    const auto current = usable_version(connection, newest);
    if (!current) {
      connection.rollback();
      return fail(current.error());
    }
    if (migration.version > *current) {
      connection.run(
          "CREATE TABLE IF NOT EXISTS schema_version "
          "(version BIGINT PRIMARY KEY, min_reader BIGINT NOT NULL)");
      connection.script(migration.sql);
      connection.run("INSERT INTO schema_version (version, min_reader) VALUES (:v, :r)",
                     migration.version, migration.min_reader);
    }
    connection.commit();
    return {};
  } catch (...) {
    connection.rollback();
    throw;
  }
}

}  // namespace

std::optional<std::int64_t> stored_version(Connection& connection) {
  const auto tables = connection.value<std::int64_t>(
      connection.dialect() == Dialect::sqlite
          ? "SELECT COUNT(*) FROM sqlite_master WHERE type = 'table' AND name = 'schema_version'"
          : "SELECT COUNT(*) FROM pg_tables WHERE schemaname = current_schema()"
            " AND tablename = 'schema_version'");
  if (tables.value_or(0) == 0) return std::nullopt;
  return connection.value<std::int64_t>("SELECT MAX(version) FROM schema_version");
}

Result<void> migrate(Connection& connection, std::span<const Migration> steps) {
  const auto newest = steps.back().version;
  const auto found = usable_version(connection, newest);
  if (!found) return fail(found.error());
  for (const Migration& migration : steps) {
    if (migration.version <= *found) continue;
    if (auto taken = take_step(connection, migration, newest); !taken) return taken;
  }
  return {};
}

}  // namespace conversed::store
