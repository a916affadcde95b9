#pragma once

#include <libpq-fe.h>

#include <chrono>
#include <memory>
#include <string>
#include <string_view>

#include "store/sql/postgres_settings.h"
#include "store/sql/sql.h"

// One session of libpq with deadlines. For postgres*.cc alone.
namespace conversed::store {

struct ClearResult {
  void operator()(PGresult* result) const { PQclear(result); }
};
using PostgresResult = std::unique_ptr<PGresult, ClearResult>;

inline constexpr Oid int8_oid = 20;
inline constexpr Oid text_oid = 25;

// The error that a failed result stands for; its text is the SQLSTATE alone.
[[nodiscard]] SqlError postgres_error(const PGresult* result);

// One thread at a time. Throws SqlError.
class PostgresSession {
 public:
  // Connects. A reader's transactions can't write. If a writer can't have its place, the error
  // names the daemons that have it.
  PostgresSession(const PostgresSettings& settings, Connection::Role role);

  [[nodiscard]] PGconn* handle() const { return connection_.get(); }

  // Flushes the pipeline and returns the next result, or null behind the last one of a statement.
  // After an error the session can't be used any more.
  [[nodiscard]] PostgresResult next(std::chrono::steady_clock::time_point deadline);
  [[nodiscard]] std::chrono::steady_clock::time_point deadline() const;

  // As Driver::ask_meanwhile.
  void ask_meanwhile(const std::function<bool()>* go_on) noexcept { go_on_ = go_on; }

  // Runs statements, separated by ";", outside the pipeline mode.
  void script(std::string_view sql, std::chrono::steady_clock::time_point deadline);

 private:
  void take_place(PostgresSettings::Place place);
  [[nodiscard]] std::string living_daemons();

  struct Finish {
    void operator()(PGconn* connection) const { PQfinish(connection); }
  };
  std::unique_ptr<PGconn, Finish> connection_;
  std::chrono::milliseconds timeout_;
  const std::function<bool()>* go_on_ = nullptr;
};

// The error of a broken session: the last statement may have worked.
[[nodiscard]] SqlError connection_lost();

// The error of a server that did not answer within the time-out.
[[nodiscard]] SqlError server_silent();

}  // namespace conversed::store
