#include "store/sql/sqlite.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <iterator>
#include <new>
#include <string>
#include <utility>

#include "store/sql/fold.h"
#include "store/sql/fts_rank.h"
#include "store/sql/gathering_vfs.h"
#include "store/sql/page_cache.h"

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

// False for codes after which a COMMIT has certainly not worked.
bool may_have_written(int code) {
  const int primary = code & 0xff;
  return primary != SQLITE_FULL && primary != SQLITE_BUSY && primary != SQLITE_LOCKED;
}

void check(int code) {
  if (code != SQLITE_OK) throw SqliteError(code);
}

std::string_view text_of(sqlite3_value* value) {
  // The text first: asking for it may change the encoding, and with it the length.
  const auto* text = sqlite3_value_text(value);
  const auto bytes = static_cast<std::size_t>(sqlite3_value_bytes(value));
  return text == nullptr ? std::string_view()
                         : std::string_view(reinterpret_cast<const char*>(text), bytes);
}

// folded_contains(text, needle) for SQL. C calls it, so nothing may be thrown.
void folded_contains(sqlite3_context* context, int, sqlite3_value** values) noexcept {
  try {
    const bool found = fold_case(text_of(values[0])).find(text_of(values[1])) != std::string::npos;
    sqlite3_result_int(context, found ? 1 : 0);
  } catch (const std::bad_alloc&) {
    sqlite3_result_error_nomem(context);
  }
}

void add_functions(sqlite3* handle, const GoOn* const& go_on) {
  check(sqlite3_create_function_v2(handle, "folded_contains", 2, SQLITE_UTF8 | SQLITE_DETERMINISTIC,
                                   nullptr, folded_contains, nullptr, nullptr, nullptr));
  check(add_knowledge_rank(handle, go_on));
}

// SQLite gives its WAL the mode of the database, so the file is made before SQLite opens it. If it
// can't be made, SQLite says why.
void make_private(const std::filesystem::path& file) {
  const int descriptor = ::open(file.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (descriptor >= 0) ::close(descriptor);
}

// Bound texts are not copied: a slot stays as it is until `reset`.
class SqliteStatement final : public Statement {
 public:
  SqliteStatement(sqlite3* handle, std::string_view sql, std::span<const SqlType> parameter_types,
                  std::span<const SqlType> column_types, Driver::Use use)
      : Statement(parameter_types, column_types) {
    const unsigned flags = use == Driver::Use::many ? SQLITE_PREPARE_PERSISTENT : 0;
    check(sqlite3_prepare_v3(handle, sql.data(), static_cast<int>(sql.size()), flags, &statement_,
                             nullptr));
  }
  ~SqliteStatement() override { sqlite3_finalize(statement_); }
  SqliteStatement(const SqliteStatement&) = delete;
  SqliteStatement& operator=(const SqliteStatement&) = delete;

  bool execute() override {
    sqlite3_reset(statement_);  // returns the result of the last step again
    int position = 0;
    for (const SqlSlot& slot : parameters()) check(bind(++position, slot));
    return fetch() && !columns().empty();
  }

  bool fetch() override {
    const int code = sqlite3_step(statement_);
    if (code == SQLITE_DONE) return false;
    if (code != SQLITE_ROW) throw SqliteError(code);
    int position = 0;
    for (SqlSlot& slot : columns()) load(position++, slot);
    return true;
  }

  std::int64_t affected() override { return sqlite3_changes64(sqlite3_db_handle(statement_)); }

  void reset() noexcept override { sqlite3_reset(statement_); }

  void defer() override {
    const detail::ResetAtEnd reset{*this};
    execute();
  }

  void add_row() override { defer(); }

  void ask(const std::shared_ptr<SqlAnswer>& answer) override {
    const detail::ResetAtEnd reset{*this};
    for (bool more = execute(); more; more = fetch()) {
      std::ranges::move(columns(), std::back_inserter(answer->columns));
    }
    answer->arrived = true;
  }

 private:
  [[nodiscard]] int bind(int position, const SqlSlot& slot) {
    if (slot.null) return sqlite3_bind_null(statement_, position);
    if (slot.type == SqlType::integer) {
      return sqlite3_bind_int64(statement_, position, slot.integer);
    }
    return sqlite3_bind_text64(statement_, position, slot.text.data(), slot.text.size(),
                               SQLITE_STATIC, SQLITE_UTF8);
  }

  void load(int position, SqlSlot& slot) {
    slot.null = sqlite3_column_type(statement_, position) == SQLITE_NULL;
    slot.integer = 0;
    slot.text.clear();
    if (slot.null) return;
    if (slot.type == SqlType::integer) {
      slot.integer = sqlite3_column_int64(statement_, position);
      return;
    }
    // The text first: asking for it may change the encoding, and with it the length.
    const auto* text = sqlite3_column_text(statement_, position);
    if (text == nullptr) throw std::bad_alloc();
    slot.text.assign(reinterpret_cast<const char*>(text),
                     static_cast<std::size_t>(sqlite3_column_bytes(statement_, position)));
  }

  sqlite3_stmt* statement_ = nullptr;
};

// Before the first use of SQLite.
bool configure_sqlite() {
  // SQLite does not count its memory, which would lock a mutex at each allocation.
  sqlite3_config(SQLITE_CONFIG_MEMSTATUS, 0);
  use_page_cache();
  return true;
}

class SqliteDriver final : public Driver {
 public:
  SqliteDriver(const std::filesystem::path& file, Connection::Role role,
               std::chrono::milliseconds busy_timeout) {
    [[maybe_unused]] static const bool configured = configure_sqlite();
    sqlite3* opened = nullptr;
    // NOMUTEX: a Connection is used by one thread at a time.
    const int flags =
        SQLITE_OPEN_READWRITE | SQLITE_OPEN_CREATE | SQLITE_OPEN_NOMUTEX | SQLITE_OPEN_EXRESCODE;
    const char* vfs = role == Connection::Role::writer ? gathering_vfs() : nullptr;
    const int code = sqlite3_open_v2(file.c_str(), &opened, flags, vfs);
    handle_.reset(opened);  // SQLite hands out one to be closed even if opening failed
    check(code);
    sqlite3_busy_timeout(handle(), static_cast<int>(busy_timeout.count()));
    add_functions(handle(), go_on_);
  }

  [[nodiscard]] sqlite3* handle() { return handle_.get(); }

  std::unique_ptr<Statement> prepare(std::string_view sql, std::span<const SqlType> parameters,
                                     std::span<const SqlType> columns, Use use) override {
    return std::make_unique<SqliteStatement>(handle(), sql, parameters, columns, use);
  }

  void script(std::string_view sql) override {
    const std::string text(sql);
    check(sqlite3_exec(handle(), text.c_str(), nullptr, nullptr, nullptr));
  }

  void ask_meanwhile(const std::function<bool()>* go_on) noexcept override {
    constexpr int steps_between_questions = 10'000;  // of SQLite's virtual machine
    go_on_ = go_on;
    const auto ask = [](void* asked) {
      return (*static_cast<const std::function<bool()>*>(asked))() ? 0 : 1;
    };
    auto* asked = const_cast<std::function<bool()>*>(go_on);  // SQLite's parameter has no const
    sqlite3_progress_handler(handle(), go_on == nullptr ? 0 : steps_between_questions,
                             go_on == nullptr ? nullptr : +ask, asked);
  }

  // IMMEDIATE: a transaction that writes asks for the lock at once, where waiting for it is safe.
  void begin() override { script("BEGIN IMMEDIATE"); }
  void begin_aside() override { begin(); }  // a file has one writer
  void begin_snapshot() override { script("BEGIN DEFERRED"); }
  void commit() override { script("COMMIT"); }
  void rollback() noexcept override {
    // A full disk may have ended the transaction already.
    if (sqlite3_get_autocommit(handle()) != 0) return;
    sqlite3_exec(handle(), "ROLLBACK", nullptr, nullptr, nullptr);
  }
  void settle() override {}  // each statement runs at once
  [[nodiscard]] Dialect dialect() const override { return Dialect::sqlite; }
  [[nodiscard]] std::uint64_t round_trips() const override { return 0; }

 private:
  struct Close {
    void operator()(sqlite3* handle) const { sqlite3_close_v2(handle); }
  };
  const GoOn* go_on_ = nullptr;  // functions that SQLite calls know it
  std::unique_ptr<sqlite3, Close> handle_;
};

}  // namespace

SqliteError::SqliteError(int code)
    : SqlError(blames_values(code) ? Kind::refused : Kind::failed,
               std::to_string(code) + " (" + sqlite3_errstr(code) + ")",
               may_have_written(code) ? Effect::uncertain : Effect::none),
      code_(code & 0xff) {}

std::unique_ptr<Connection> open_sqlite(const std::filesystem::path& file, Connection::Role role,
                                        std::chrono::milliseconds busy_timeout, int page_bytes) {
  if (role == Connection::Role::writer) make_private(file);
  auto driver = std::make_unique<SqliteDriver>(file, role, busy_timeout);
  if (role == Connection::Role::writer) {
    // Changed pages stay in memory until the commit: SQLite 3.40 loses a commit in a crash if pages
    // of its transaction were written before, and a savepoint was rolled back since (it writes
    // frames without checksums). Foreign keys are checked here alone, where rows change. A
    // checkpoint each 16 MiB of the WAL keeps its share of a commit small. A commit finds its pages
    // in a cache of 16 MiB. Deleted data is overwritten, so that an erasure leaves no trace.
    constexpr int checkpoint_bytes = 16 << 20;
    driver->script("PRAGMA page_size=" + std::to_string(page_bytes) +
                   "; PRAGMA journal_mode=WAL; PRAGMA synchronous=FULL; PRAGMA foreign_keys=ON;"
                   "PRAGMA wal_autocheckpoint=" +
                   std::to_string(checkpoint_bytes / page_bytes) +
                   "; PRAGMA cache_size=-16384; PRAGMA cache_spill=OFF; PRAGMA temp_store=MEMORY;"
                   "PRAGMA secure_delete=ON;");
  } else {
    sqlite3_db_config(driver->handle(), SQLITE_DBCONFIG_NO_CKPT_ON_CLOSE, 1, nullptr);
    // A commit empties the caches of connections that read. SQLite then visits as many places as a
    // cache has ever had pages, so a large cache makes the next read slower.
    driver->script(
        "PRAGMA wal_autocheckpoint=0; PRAGMA query_only=ON; PRAGMA temp_store=MEMORY;"
        "PRAGMA cache_size=-256;");
  }
  return std::make_unique<Connection>(std::move(driver));
}

}  // namespace conversed::store
