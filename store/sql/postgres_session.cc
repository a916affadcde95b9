#include "store/sql/postgres_session.h"

#include <poll.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>

#include "store/sql/postgres.h"

namespace conversed::store {
namespace {

using Clock = std::chrono::steady_clock;

// The server reports its own time-outs as errors. The client gives up a little later, so that such
// an error can still arrive.
constexpr std::chrono::milliseconds grace{2'000};

// The classes of SQLSTATE that blame the values: data, constraints, and limits of size.
bool blames_values(std::string_view state) {
  const auto of_class = [&](std::string_view name) { return state.substr(0, 2) == name; };
  return of_class("22") || of_class("23") || of_class("54");
}

constexpr std::chrono::milliseconds between_questions{200};

std::string one_line(std::string_view text) {
  std::string line(text.substr(0, 500));
  std::replace(line.begin(), line.end(), '\n', ' ');
  while (line.ends_with(' ')) line.pop_back();
  return line;
}

void check_url(const std::string& url) {
  // libpq's complaint would quote the URL, and with it the password.
  PQconninfoOption* options = PQconninfoParse(url.c_str(), nullptr);
  if (options == nullptr) {
    throw PostgresUnusable("(store.postgres.url is not a connection string of libpq)");
  }
  PQconninfoFree(options);
}

// An "@", "/" or ":" in a password that is not quoted makes a part of it the host, the port or the
// name of the database, which libpq's messages name.
bool is_well_quoted(const PGconn* connection) {
  const auto tells = [](const char* part, std::string_view never) {
    return part != nullptr && std::string_view(part).find_first_of(never) != std::string_view::npos;
  };
  const char* port = PQport(connection);
  const bool numbers = port == nullptr || std::string_view(port).find_first_not_of("0123456789,") ==
                                              std::string_view::npos;
  return numbers && !tells(PQhost(connection), "@") && !tells(PQdb(connection), "@/?");
}

std::string settings_of_session(const PostgresSettings& settings, Connection::Role role) {
  const auto limit = std::to_string(settings.timeout.count());
  // A daemon that hangs inside a transaction keeps all others waiting: the server ends it.
  return "SET statement_timeout = " + limit +
         "; SET lock_timeout = " + std::to_string(settings.turn_timeout.count()) +
         "; SET idle_in_transaction_session_timeout = " + limit +
         "; SET default_transaction_isolation = 'read committed'"
         // Compilation takes longer than statements do.
         "; SET jit = off"
         // Statements find rows by indexes, also in tables that were empty when the server made
         // their plan: a queue is often empty, and full a moment later.
         "; SET enable_seqscan = off; SET default_transaction_read_only = " +
         (role == Connection::Role::reader ? "on"
                                           // Each row is looked up once.
                                           : "off; SET enable_memoize = off") +
         // If a daemon's machine is gone, the daemon must not keep its place. No effect on sockets
         // of the same machine.
         "; SET tcp_keepalives_idle = 5; SET tcp_keepalives_interval = 2"
         "; SET tcp_keepalives_count = 3; SET tcp_user_timeout = " +
         limit +
         // A commit is acknowledged only after the server has flushed it.
         "; SELECT set_config('synchronous_commit', 'on', false)"
         " WHERE current_setting('synchronous_commit') = 'off'";
}

}  // namespace

SqlError connection_lost() {
  return {SqlError::Kind::failed, "(the connection is lost)", SqlError::Effect::uncertain};
}

SqlError server_silent() {
  return {SqlError::Kind::failed, "(the server does not answer)", SqlError::Effect::silent};
}

SqlError postgres_error(const PGresult* result) {
  const char* found = PQresultErrorField(result, PG_DIAG_SQLSTATE);
  if (found == nullptr) return connection_lost();
  const std::string_view state(found);
  constexpr std::string_view query_canceled = "57014";
  if (state == query_canceled) {
    return {SqlError::Kind::too_long, std::string(state), SqlError::Effect::none};
  }
  // A shutdown, and "statement completion unknown".
  const bool uncertain = state.starts_with("08") || state.starts_with("57P") || state == "40003";
  return {blames_values(state) ? SqlError::Kind::refused : SqlError::Kind::failed,
          std::string(state), uncertain ? SqlError::Effect::uncertain : SqlError::Effect::none};
}

PostgresSession::PostgresSession(const PostgresSettings& settings, Connection::Role role)
    : timeout_(settings.timeout) {
  check_url(settings.url);
  const auto limit_ms = std::to_string(settings.timeout.count());
  const auto limit_s = std::to_string(
      std::max<std::int64_t>(2, std::chrono::ceil<std::chrono::seconds>(settings.timeout).count()));
  // The URL overrides parameters before it.
  const std::array<const char*, 10> names{"application_name",     "connect_timeout",
                                          "target_session_attrs", "tcp_user_timeout",
                                          "keepalives_idle",      "keepalives_interval",
                                          "keepalives_count",     "dbname",
                                          "client_encoding",      nullptr};
  const std::array<const char*, 10> values{
      "conversed", limit_s.c_str(),      "read-write", limit_ms.c_str(), "5", "2",
      "3",         settings.url.c_str(), "UTF8",       nullptr};
  const auto begun = Clock::now();
  connection_.reset(PQconnectdbParams(names.data(), values.data(), 1));
  if (PQstatus(handle()) != CONNECTION_OK) {
    if (Clock::now() - begun >= settings.timeout) throw server_silent();
    const std::string why =
        is_well_quoted(handle())
            ? one_line(PQerrorMessage(handle()))
            : "there is no connection; is store.postgres.url right? In its user and password write"
              " : / ? # [ ] @ % as %XX";
    throw SqlError(SqlError::Kind::failed, '(' + why + ')', SqlError::Effect::none);
  }
  const char* encoding = PQparameterStatus(handle(), "server_encoding");
  if (encoding == nullptr || std::string_view(encoding) != "UTF8") {
    throw PostgresUnusable("(the database must be made with ENCODING 'UTF8')");
  }
  // Notices ("already exists, skipping") would go to the standard error stream.
  PQsetNoticeReceiver(
      handle(), [](void*, const PGresult*) {}, nullptr);
  if (PQsetnonblocking(handle(), 1) != 0) throw connection_lost();
  script(settings_of_session(settings, role), deadline());
  if (role == Connection::Role::writer) take_place(settings.place);
}

// Takes the daemon's place: a lock that the server holds until the session ends in any way. Waits
// for it up to `lock_timeout`, since the server may notice late that a process is gone.
void PostgresSession::take_place(PostgresSettings::Place place) {
  if (place == PostgresSettings::Place::none) return;
  const bool shared = place == PostgresSettings::Place::shared;
  const std::string sql = std::string("SELECT pg_advisory_lock") + (shared ? "_shared" : "") +
                          "(hashtext('conversed daemon'), hashtext(current_schema()))";
  constexpr std::string_view lock_not_available = "55P03";
  if (PQsendQuery(handle(), sql.c_str()) == 0) throw connection_lost();
  PostgresResult failed;
  while (auto result = next(deadline())) {
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK && !failed) failed = std::move(result);
  }
  if (!failed) return;
  const char* state = PQresultErrorField(failed.get(), PG_DIAG_SQLSTATE);
  if (state == nullptr || state != lock_not_available) throw postgres_error(failed.get());
  throw SqlError(SqlError::Kind::failed,
                 shared ? "(a command that needs all daemons stopped is at work on the store)"
                        : "(daemons use the store; stop them first" + living_daemons() + ")",
                 SqlError::Effect::none);
}

// ": " and the names of the living daemons, for an error message; empty if there is none.
std::string PostgresSession::living_daemons() {
  const char* sql =
      "SELECT string_agg(id, ', ' ORDER BY id) FROM daemons"
      " WHERE seen_at > extract(epoch FROM clock_timestamp()) * 1000 - 10000";
  if (PQsendQuery(handle(), sql) == 0) throw connection_lost();
  std::string names;
  while (auto result = next(deadline())) {
    if (PQresultStatus(result.get()) != PGRES_TUPLES_OK || PQntuples(result.get()) == 0) continue;
    names = one_line(PQgetvalue(result.get(), 0, 0));
  }
  return names.empty() ? names : ": " + names;
}

Clock::time_point PostgresSession::deadline() const {
  return Clock::now() + timeout_ + grace;
}

PostgresResult PostgresSession::next(Clock::time_point deadline) {
  for (;;) {
    const int unsent = PQflush(handle());
    if (unsent < 0) throw connection_lost();
    if (PQisBusy(handle()) == 0) {
      PostgresResult result(PQgetResult(handle()));
      // A session that breaks reports it by a result, after which there is nothing more to come.
      if (PQstatus(handle()) != CONNECTION_OK) throw connection_lost();
      return result;
    }
    auto left = std::chrono::ceil<std::chrono::milliseconds>(deadline - Clock::now());
    if (left.count() <= 0) throw server_silent();
    if (go_on_ != nullptr) {
      // The session is lost, since its statement still runs. Nobody repeats the statement.
      if (!(*go_on_)()) {
        throw SqlError(SqlError::Kind::failed, "(the caller waits no longer)",
                       SqlError::Effect::none);
      }
      left = std::min(left, between_questions);
    }
    pollfd wanted{.fd = PQsocket(handle()),
                  .events = static_cast<short>(unsent > 0 ? POLLIN | POLLOUT : POLLIN),
                  .revents = 0};
    const int ready =
        ::poll(&wanted, 1, static_cast<int>(std::min<std::int64_t>(left.count(), 1'000'000)));
    if (ready < 0 && errno != EINTR) throw connection_lost();
    if ((wanted.revents & (POLLIN | POLLERR | POLLHUP)) != 0 && PQconsumeInput(handle()) == 0) {
      throw connection_lost();
    }
  }
}

void PostgresSession::script(std::string_view sql, Clock::time_point deadline) {
  if (PQsendQuery(handle(), std::string(sql).c_str()) == 0) throw connection_lost();
  PostgresResult failed;
  while (auto result = next(deadline)) {
    if (PQresultStatus(result.get()) == PGRES_FATAL_ERROR && !failed) failed = std::move(result);
  }
  if (failed) throw postgres_error(failed.get());
}

}  // namespace conversed::store
