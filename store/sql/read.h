#pragma once

#include <nlohmann/json.hpp>
#include <utility>

#include "store/model/result.h"
#include "store/sql/as_result.h"
#include "store/sql/database.h"
#include "store/sql/sql.h"

// For .cc files of store/ only.
namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;

// Runs `work(Connection&)`, which returns a Result, a value or nothing, and turns exceptions into
// errors.
template <typename F>
[[nodiscard]] auto with_errors(Connection& connection, F&& work)
    -> AsResult<std::invoke_result_t<F, Connection&>> {
  try {
    return returned(std::forward<F>(work), connection);
  } catch (const SqlError& error) {
    return fail(to_error(error));
  } catch (const DamagedData& error) {
    return fail(Errc::internal, error.what());
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::internal, "stored data has another shape than expected");
  }
}

// The same on a reader's connection.
template <typename F>
[[nodiscard]] auto read(Database& database, F&& work) {
  const auto lease = database.reader();
  return with_errors(*lease, std::forward<F>(work));
}

// Reads by one statement.
template <typename Make, typename... In>
[[nodiscard]] auto read_all(Database& database, const Make& make, std::string_view sql,
                            const In&... in) {
  return read(database, [&](Connection& connection) { return connection.all(make, sql, in...); });
}
template <typename Make, typename... In>
[[nodiscard]] auto read_first(Database& database, const Make& make, std::string_view sql,
                              const In&... in) {
  return read(database, [&](Connection& connection) { return connection.first(make, sql, in...); });
}
template <typename... In>
[[nodiscard]] Result<std::int64_t> read_number(Database& database, std::string_view sql,
                                               const In&... in) {
  return read(database, [&](Connection& connection) { return connection.number(sql, in...); });
}
// The number of rows of a statement, at most `most`.
template <typename... In>
[[nodiscard]] Result<std::int64_t> read_count(Database& database, std::int64_t most,
                                              std::string_view rows, const In&... in) {
  const auto sql = "SELECT COUNT(*) FROM (" + std::string(rows) + " LIMIT :most) AS counted";
  return read_number(database, sql, in..., most);
}
template <typename... In>
[[nodiscard]] Result<bool> read_exists(Database& database, std::string_view sql, const In&... in) {
  return read(database, [&](Connection& connection) { return connection.exists(sql, in...); });
}

// As `read`; `timed_out` if it takes longer than `most`.
template <typename F>
[[nodiscard]] auto read_within(Database& database, std::chrono::milliseconds most, F&& work) {
  const auto until = std::chrono::steady_clock::now() + most;
  auto done = read(database, [&](Connection& connection) {
    const Connection::TimeLimit limit(connection, until);
    return std::forward<F>(work)(connection);
  });
  if (!done && done.error().code == Errc::unavailable &&
      std::chrono::steady_clock::now() >= until) {
    done = fail(Errc::timed_out, "the store takes too long");
  }
  return done;
}

// As `read`; `work` reads one snapshot.
template <typename F>
[[nodiscard]] auto read_snapshot(Database& database, F&& work) {
  class Snapshot {
   public:
    explicit Snapshot(Connection& connection) : connection_(connection) {
      connection_.begin_snapshot();
    }
    Snapshot(const Snapshot&) = delete;
    Snapshot& operator=(const Snapshot&) = delete;
    ~Snapshot() { connection_.rollback(); }

   private:
    Connection& connection_;
  };
  return read(database, [&](Connection& connection) {
    const Snapshot snapshot(connection);
    return work(connection);
  });
}

// As `read`, for work of several statements. In SQLite they read one snapshot, since a commit
// between two of them would empty the connection's cache.
template <typename F>
[[nodiscard]] auto read_together(Database& database, F&& work) {
  return database.dialect() == Dialect::sqlite ? read_snapshot(database, work)
                                               : read(database, work);
}

}  // namespace conversed::store
