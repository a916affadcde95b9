#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>

#include "store/sql/postgres_settings.h"
#include "store/sql/sql.h"

// SQL over PostgreSQL 15, by libpq in pipeline mode: statements of `run` leave together with the
// next statement that answers. For database.cc, store/shards and tests.
//
// Texts may hold any character, which PostgreSQL's can't: NUL is stored as \x01\x01 and \x01 as
// \x01\x02, which keeps the order of texts. The schema compares by code points.
namespace conversed::store {

// A stored text as it was.
[[nodiscard]] std::string unescaped(std::string_view stored);

// Trying again does not help: the URL, or the database, has to be changed.
class PostgresUnusable : public SqlError {
 public:
  explicit PostgresUnusable(const std::string& why) : SqlError(Kind::failed, why, Effect::none) {}
};

// Opens a connection. It tells `pulse` of a silent server, and a reader sends nothing to a silent
// server: PostgresWatch finds it again. If its session broke outside a transaction, the connection
// opens a new one. Writers of one schema take turns, in any number of processes. Throws SqlError,
// of which PostgresUnusable is one. `later`: opens its first session when it is used.
enum class Connect : std::uint8_t { at_once, later };
[[nodiscard]] std::unique_ptr<Connection> open_postgres(const PostgresSettings& settings,
                                                        Connection::Role role,
                                                        std::shared_ptr<PostgresPulse> pulse,
                                                        Connect connect = Connect::at_once);

}  // namespace conversed::store
