#include "store/sqlite.h"

#include <soci/soci-config.h>
// Debian's SOCI offers conversions of Boost's types, in headers only; we use none, and so need no
// Boost to build.
#undef SOCI_HAVE_BOOST
#undef SOCI_HAVE_BOOST_DATE_TIME
#include <soci/soci.h>
#include <soci/sqlite3/soci-sqlite3.h>

#include <new>
#include <string>
#include <utility>
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
    throw sqlite_error(error.result());
  } catch (const soci::soci_error&) {
    throw sqlite_error(-1);
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

void add_functions(sqlite_api::sqlite3* handle, const GoOn* const& go_on) {
  const int result = sqlite_api::sqlite3_create_function_v2(
      handle, "folded_contains", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC, nullptr, folded_contains,
      nullptr, nullptr, nullptr);
  if (result != SQLITE_OK) throw sqlite_error(result);
  const int ranked = add_knowledge_rank(handle, go_on);
  if (ranked != SQLITE_OK) throw sqlite_error(ranked);
}

void note_nulls(std::vector<SqlSlot>& columns, const std::vector<soci::indicator>& indicators) {
  for (std::size_t i = 0; i < columns.size(); ++i) {
    columns[i].null = indicators[i] == soci::i_null;
    if (!columns[i].null) continue;
    columns[i].integer = 0;
    columns[i].text.clear();
  }
}

class SqliteStatement final : public Statement {
 public:
  SqliteStatement(soci::session& session, std::string_view sql,
                  std::span<const SqlType> parameter_types, std::span<const SqlType> column_types)
      : Statement(parameter_types, column_types),
        parameter_indicators_(parameter_types.size(), soci::i_ok),
        column_indicators_(column_types.size(), soci::i_ok),
        statement_(session) {
    guarded([&] {
      for (std::size_t i = 0; i < parameters().size(); ++i) {
        exchange(parameters()[i], [&](auto& value) {
          statement_.exchange(soci::use(value, parameter_indicators_[i]));
        });
      }
      for (std::size_t i = 0; i < columns().size(); ++i) {
        exchange(columns()[i], [&](auto& value) {
          statement_.exchange(soci::into(value, column_indicators_[i]));
        });
      }
      statement_.alloc();
      statement_.prepare(std::string(sql));
      statement_.define_and_bind();
    });
  }

  bool execute() override {
    for (std::size_t i = 0; i < parameters().size(); ++i) {
      parameter_indicators_[i] = parameters()[i].null ? soci::i_null : soci::i_ok;
    }
    const bool row = guarded([this] { return statement_.execute(true); });
    if (row) note_nulls(columns(), column_indicators_);
    return row && !columns().empty();
  }

  bool fetch() override {
    const bool row = guarded([this] { return statement_.fetch(); });
    if (row) note_nulls(columns(), column_indicators_);
    return row;
  }

  std::int64_t affected() override { return statement_.get_affected_rows(); }

  void reset() noexcept override { sqlite_api::sqlite3_reset(handle_of(statement_)); }

  void defer() override {
    const detail::ResetAtEnd reset{*this};
    execute();
  }

  void ask(const std::shared_ptr<SqlAnswer>& answer) override {
    const detail::ResetAtEnd reset{*this};
    answer->found = execute();
    if (answer->found) answer->columns = columns();
    answer->arrived = true;
  }

 private:
  template <typename F>
  static void exchange(Slot& slot, const F& with) {
    if (slot.type == SqlType::integer) {
      with(slot.integer);
    } else {
      with(slot.text);
    }
  }

  std::vector<soci::indicator> parameter_indicators_;
  std::vector<soci::indicator> column_indicators_;
  soci::statement statement_;  // holds addresses of all of the above
};

class SqliteDriver final : public Driver {
 public:
  SqliteDriver(const std::filesystem::path& file, std::chrono::milliseconds busy_timeout) {
    guarded([&] { session_.open(soci::sqlite3, "dbname=\"" + file.string() + "\""); });
    sqlite_api::sqlite3_busy_timeout(handle(), static_cast<int>(busy_timeout.count()));
    add_functions(handle(), go_on_);
  }

  [[nodiscard]] sqlite_api::sqlite3* handle() { return handle_of(session_); }

  std::unique_ptr<Statement> prepare(std::string_view sql, std::span<const SqlType> parameters,
                                     std::span<const SqlType> columns, Use) override {
    return std::make_unique<SqliteStatement>(session_, sql, parameters, columns);
  }

  void script(std::string_view sql) override {
    const std::string text(sql);
    const int result = sqlite_api::sqlite3_exec(handle(), text.c_str(), nullptr, nullptr, nullptr);
    if (result != SQLITE_OK) throw sqlite_error(result);
  }

  void ask_meanwhile(const std::function<bool()>* go_on) noexcept override {
    constexpr int steps_between_questions = 10'000;  // of SQLite's virtual machine
    go_on_ = go_on;
    const auto ask = [](void* asked) {
      return (*static_cast<const std::function<bool()>*>(asked))() ? 0 : 1;
    };
    auto* asked = const_cast<std::function<bool()>*>(go_on);  // SQLite's parameter has no const
    sqlite_api::sqlite3_progress_handler(handle(), go_on == nullptr ? 0 : steps_between_questions,
                                         go_on == nullptr ? nullptr : +ask, asked);
  }

  // IMMEDIATE: a transaction that writes asks for the lock at once, where waiting for it is safe.
  void begin() override { script("BEGIN IMMEDIATE"); }
  void begin_snapshot() override { script("BEGIN DEFERRED"); }
  void commit() override { script("COMMIT"); }
  void rollback() noexcept override {
    // A full disk may have ended the transaction already.
    if (sqlite_api::sqlite3_get_autocommit(handle()) != 0) return;
    sqlite_api::sqlite3_exec(handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  void settle() override {}  // nothing is ever put off
  [[nodiscard]] Dialect dialect() const override { return Dialect::sqlite; }
  [[nodiscard]] std::uint64_t round_trips() const override { return 0; }

 private:
  const GoOn* go_on_ = nullptr;  // functions that SQLite calls know it
  soci::session session_;
};

}  // namespace

SqlError sqlite_error(int code) {
  const int primary = code & 0xff;
  const bool wrote_nothing =
      primary == SQLITE_FULL || primary == SQLITE_BUSY || primary == SQLITE_LOCKED;
  return {blames_values(code) ? SqlError::Kind::refused : SqlError::Kind::failed,
          std::to_string(code) + " (" + sqlite_api::sqlite3_errstr(code) + ")",
          wrote_nothing ? SqlError::Effect::none : SqlError::Effect::uncertain};
}

std::unique_ptr<Connection> open_sqlite(const std::filesystem::path& file, Connection::Role role,
                                        std::chrono::milliseconds busy_timeout) {
  auto driver = std::make_unique<SqliteDriver>(file, busy_timeout);
  if (role == Connection::Role::writer) {
    // Foreign keys are checked here alone, where rows change. A checkpoint each 4,000 pages (16
    // MiB) keeps its share of a commit small. What is deleted is overwritten: users have a right to
    // it.
    driver->script(
        "PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
        "PRAGMA wal_autocheckpoint=4000; PRAGMA temp_store=MEMORY; PRAGMA secure_delete=ON;");
  } else {
    sqlite_api::sqlite3_db_config(driver->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    driver->script("PRAGMA wal_autocheckpoint=0; PRAGMA query_only=ON; PRAGMA temp_store=MEMORY;");
  }
  return std::make_unique<Connection>(std::move(driver));
}

}  // namespace conversed::store
