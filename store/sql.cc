#include "store/sql.h"

#include <soci/soci-config.h>
// Debian's SOCI offers conversions of Boost's types, in headers only; we use none, and so need no
// Boost to build.
#undef SOCI_HAVE_BOOST
#undef SOCI_HAVE_BOOST_DATE_TIME
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <functional>
#include <new>
#include <stdexcept>
#include <unordered_map>
#include <vector>

#include "store/fold.h"
#include "store/fts_rank.h"

namespace conversed::store {
namespace {

// SQLite's primary result codes that blame the values, not the disk.
bool blames_values(int code) {
  switch (code & 0xff) {
    case SQLITE_CONSTRAINT:
    case SQLITE_TOOBIG:
    case SQLITE_MISMATCH:
    case SQLITE_RANGE:
      return true;
    default:
      return false;
  }
}

// SQLite's own handles behind SOCI's objects. SOCI keeps the type information of its classes to
// itself, so that the sanitizer's check of their dynamic type could not be linked.
__attribute__((no_sanitize("vptr"))) sqlite_api::sqlite3* handle_of(soci::session& session) {
  return static_cast<soci::sqlite3_session_backend*>(session.get_backend())->conn_;
}
__attribute__((no_sanitize("vptr"))) sqlite_api::sqlite3_stmt* handle_of(
    soci::statement& statement) {
  return static_cast<soci::sqlite3_statement_backend*>(statement.get_backend())->stmt_;
}

// Runs what may throw SOCI's exceptions, whose texts hold SQL and values, and throws ours.
template <typename F>
decltype(auto) guarded(F&& work) {
  try {
    return work();
  } catch (const soci::sqlite3_soci_error& error) {
    throw SqlError(blames_values(error.result()) ? SqlError::Kind::refused : SqlError::Kind::failed,
                   error.result());
  } catch (const soci::soci_error&) {
    throw SqlError(SqlError::Kind::failed, -1);
  }
}

std::string_view text_of(sqlite_api::sqlite3_value* value) {
  // The text first: asking for it may change the encoding, and with it the length.
  const auto* text = sqlite_api::sqlite3_value_text(value);
  const auto bytes = static_cast<std::size_t>(sqlite_api::sqlite3_value_bytes(value));
  return text == nullptr ? std::string_view()
                         : std::string_view(reinterpret_cast<const char*>(text), bytes);
}

// folded_contains(text, needle) for SQL. C calls it, so nothing may be thrown.
void folded_contains(sqlite_api::sqlite3_context* context, int,
                     sqlite_api::sqlite3_value** values) noexcept {
  try {
    const bool found = fold_case(text_of(values[0])).find(text_of(values[1])) != std::string::npos;
    sqlite_api::sqlite3_result_int(context, found ? 1 : 0);
  } catch (const std::bad_alloc&) {
    sqlite_api::sqlite3_result_error_nomem(context);
  }
}

void add_functions(sqlite_api::sqlite3* handle, const Deadline& deadline) {
  const int result = sqlite_api::sqlite3_create_function_v2(
      handle, "folded_contains", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, folded_contains,
      nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) throw SqlError(SqlError::Kind::failed, result);
  const int ranked = add_knowledge_rank(handle, deadline);
  if (ranked != SQLITE_OK) throw SqlError(SqlError::Kind::failed, ranked);
}

}  // namespace

bool SqlError::uncertain() const {
  const int primary = code_ & 0xff;
  return primary != SQLITE_FULL && primary != SQLITE_BUSY && primary != SQLITE_LOCKED;
}

bool SqlError::timed_out() const {
  return (code_ & 0xff) == SQLITE_INTERRUPT;
}

struct Statement::Impl {
  explicit Impl(soci::session& session) : statement(session) {}

  // Declared before the statement, which holds their addresses; never resized after the set-up.
  std::vector<Slot> parameters;
  std::vector<Slot> columns;
  std::vector<soci::indicator> parameter_indicators;
  std::vector<soci::indicator> column_indicators;
  soci::statement statement;
};

Statement::Statement(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Statement::~Statement() = default;

Statement::Slot& Statement::parameter(std::size_t i) {
  return impl_->parameters[i];
}
Statement::Slot& Statement::column(std::size_t i) {
  return impl_->columns[i];
}

namespace {

void note_nulls(std::vector<Statement::Slot>& columns,
                const std::vector<soci::indicator>& indicators) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].null = indicators[i] == soci::i_null;
    if (!columns[i].null) continue;
    columns[i].integer = 0;
    columns[i].text.clear();
  }
}

}  // namespace

bool Statement::execute() {
  for (std::size_t i = 0; i < impl_->parameters.size(); ++i) {
    impl_->parameter_indicators[i] = impl_->parameters[i].null ? soci::i_null : soci::i_ok;
  }
  const bool row = guarded([this] { return impl_->statement.execute(true); });
  if (row) note_nulls(impl_->columns, impl_->column_indicators);
  return row && !impl_->columns.empty();
}

bool Statement::fetch() {
  const bool row = guarded([this] { return impl_->statement.fetch(); });
  if (row) note_nulls(impl_->columns, impl_->column_indicators);
  return row;
}

std::int64_t Statement::affected() {
  return impl_->statement.get_affected_rows();
}

void Statement::reset() noexcept {
  sqlite_api::sqlite3_reset(handle_of(impl_->statement));
}

struct Connection::Impl {
  struct Hash {
    using is_transparent = void;
    std::size_t operator()(std::string_view text) const {
      return std::hash<std::string_view>()(text);
    }
  };

  Deadline deadline;  // of TimeLimit; SQLite's functions read it
  soci::session session;
  // After the session: statements have to be gone before it is closed.
  std::unordered_map<std::string, std::unique_ptr<Statement>, Hash, std::equal_to<>> statements;

  [[nodiscard]] sqlite_api::sqlite3* handle() { return handle_of(session); }
};

Connection::Connection(std::unique_ptr<Impl> impl) : impl_(std::move(impl)) {}
Connection::~Connection() = default;

std::unique_ptr<Connection> Connection::open(const std::filesystem::path& file, Role role,
                                             std::chrono::milliseconds busy_timeout) {
  auto impl = std::make_unique<Impl>();
  guarded([&] { impl->session.open(soci::sqlite3, "dbname=\"" + file.string() + "\""); });
  auto* handle = impl->handle();
  sqlite_api::sqlite3_busy_timeout(handle, static_cast<int>(busy_timeout.count()));
  add_functions(handle, impl->deadline);
  std::unique_ptr<Connection> connection(new Connection(std::move(impl)));
  if (role == Role::writer) {
    // Foreign keys are checked here alone, where rows change. A checkpoint each 4,000 pages (16
    // MiB) keeps its share of a commit small. What is deleted is overwritten: users have a right to
    // it.
    connection->script(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
        "PRAGMA wal_autocheckpoint=4000; PRAGMA temp_store=MEMORY; PRAGMA secure_delete=ON;");
  } else {
    sqlite_api::sqlite3_db_config(handle, SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    connection->script(
        "PRAGMA wal_autocheckpoint=0; PRAGMA query_only=ON; PRAGMA temp_store=MEMORY;");
  }
  return connection;
}

Statement& Connection::prepared(std::string_view sql, const SqlType* parameters,
                                std::size_t parameter_count, const SqlType* columns,
                                std::size_t column_count) {
  if (auto known = impl_->statements.find(sql); known != impl_->statements.end()) {
    return *known->second;
  }
  auto statement = prepare(sql, parameters, parameter_count, columns, column_count);
  return *impl_->statements.emplace(std::string(sql), std::move(statement)).first->second;
}

std::unique_ptr<Statement> Connection::prepare(std::string_view sql, const SqlType* parameters,
                                               std::size_t parameter_count, const SqlType* columns,
                                               std::size_t column_count) {
  auto made = std::make_unique<Statement::Impl>(impl_->session);
  const auto lay_out = [](auto& slots, auto& indicators, const SqlType* types, std::size_t count) {
    indicators.assign(count, soci::i_ok);
    slots.resize(count);
    for (std::size_t i = 0; i < count; ++i) slots[i].type = types[i];
  };
  lay_out(made->parameters, made->parameter_indicators, parameters, parameter_count);
  lay_out(made->columns, made->column_indicators, columns, column_count);
  guarded([&] {
    auto& statement = made->statement;
    for (std::size_t i = 0; i < parameter_count; ++i) {
      auto& slot = made->parameters[i];
      auto& indicator = made->parameter_indicators[i];
      if (slot.type == SqlType::integer) {
        statement.exchange(soci::use(slot.integer, indicator));
      } else {
        statement.exchange(soci::use(slot.text, indicator));
      }
    }
    for (std::size_t i = 0; i < column_count; ++i) {
      auto& slot = made->columns[i];
      auto& indicator = made->column_indicators[i];
      if (slot.type == SqlType::integer) {
        statement.exchange(soci::into(slot.integer, indicator));
      } else {
        statement.exchange(soci::into(slot.text, indicator));
      }
    }
    statement.alloc();
    statement.prepare(std::string(sql));
    statement.define_and_bind();
  });
  return std::make_unique<Statement>(std::move(made));
}

void Connection::rows_once(const std::function<void(std::vector<SqlValue>&&)>& each,
                           std::string_view sql, const std::vector<SqlValue>& in,
                           const std::vector<SqlType>& out) {
  std::vector<SqlType> types;
  types.reserve(in.size());
  for (const auto& value : in) {
    types.push_back(std::holds_alternative<std::int64_t>(value) ? SqlType::integer : SqlType::text);
  }
  const auto statement = prepare(sql, types.data(), types.size(), out.data(), out.size());
  for (std::size_t i = 0; i < in.size(); ++i) {
    std::visit([&](const auto& value) { detail::put(statement->parameter(i), value); }, in[i]);
  }
  for (bool more = statement->execute(); more; more = statement->fetch()) {
    std::vector<SqlValue> row;
    row.reserve(out.size());
    for (std::size_t i = 0; i < out.size(); ++i) {
      Statement::Slot& slot = statement->column(i);
      if (out[i] == SqlType::integer) {
        row.emplace_back(detail::take<std::int64_t>(slot));
      } else {
        row.emplace_back(detail::take<std::string>(slot));
      }
    }
    each(std::move(row));
  }
}

Connection::TimeLimit::TimeLimit(Connection& connection, std::chrono::milliseconds most)
    : connection_(connection) {
  constexpr int steps = 1000;  // of SQLite's machine, between two looks at the clock
  Deadline& deadline = connection.impl_->deadline;
  deadline = std::chrono::steady_clock::now() + most;
  sqlite_api::sqlite3_progress_handler(
      connection.impl_->handle(), steps,
      [](void* until) { return is_over(*static_cast<const Deadline*>(until)) ? 1 : 0; }, &deadline);
}
Connection::TimeLimit::~TimeLimit() {
  sqlite_api::sqlite3_progress_handler(connection_.impl_->handle(), 0, nullptr, nullptr);
  connection_.impl_->deadline.reset();
}

void Connection::script(std::string_view sql) {
  const std::string text(sql);
  const int result =
      sqlite_api::sqlite3_exec(impl_->handle(), text.c_str(), nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) {
    throw SqlError(blames_values(result) ? SqlError::Kind::refused : SqlError::Kind::failed,
                   result);
  }
}

// IMMEDIATE: a transaction that writes asks for the lock at once, where waiting for it is safe.
void Connection::begin() {
  run("BEGIN IMMEDIATE");
}
void Connection::begin_snapshot() {
  run("BEGIN DEFERRED");
}
void Connection::commit() {
  run("COMMIT");
}
void Connection::rollback() noexcept {
  // A full disk may have ended the transaction already.
  if (sqlite_api::sqlite3_get_autocommit(impl_->handle()) != 0) return;
  sqlite_api::sqlite3_exec(impl_->handle(), "ROLLBACK", nullptr, nullptr, nullptr);
}
void Connection::savepoint() {
  run("SAVEPOINT work");
}
void Connection::release_savepoint() {
  run("RELEASE work");
}
void Connection::rollback_to_savepoint() {
  run("ROLLBACK TO work");
  run("RELEASE work");
}

model::Error to_error(const SqlError& error) {
  if (error.kind() == SqlError::Kind::refused) {
    return {model::Errc::conflict, "the store refuses these values"};
  }
  if (error.timed_out()) return {model::Errc::timed_out, "the store takes too long"};
  return {model::Errc::unavailable, "the store can't be used at the moment"};
}

}  // namespace conversed::store
