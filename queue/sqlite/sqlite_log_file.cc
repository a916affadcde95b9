#include "queue/sqlite/sqlite_log_file.h"

#include <sqlite3.h>

#include <algorithm>
#include <type_traits>
#include <utility>

#include "queue/sqlite/sqlite_log.h"
#include "store/sql/sql.h"
#include "store/sql/sqlite.h"

namespace conversed::queue {
namespace {

using store::Connection;

constexpr std::int64_t format_version = 1;
constexpr std::size_t page_bytes = 4'096;

// A record's row is its partition and offset in one integer: new rows of a partition go to the end
// of its stretch of the table, and reading and pruning are ranges of the primary key.
constexpr int offset_bits = 44;
std::int64_t row_of(std::int32_t partition, std::int64_t offset) {
  return (std::int64_t{partition} << offset_bits) | offset;
}
std::int64_t offset_in(std::int64_t row) {
  return row & ((std::int64_t{1} << offset_bits) - 1);
}

// `partition.first` outlives the records: the next offset is past the last record or `first`,
// whichever is higher, so that no offset is used twice. A TEXT holds any bytes here.
constexpr const char* schema = R"sql(
CREATE TABLE record (at INTEGER PRIMARY KEY, key TEXT NOT NULL, id TEXT NOT NULL,
                     type TEXT NOT NULL, trace_id TEXT NOT NULL, value TEXT NOT NULL) STRICT;
CREATE TABLE partition (number INTEGER PRIMARY KEY, first INTEGER NOT NULL DEFAULT 0,
                        committed INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE epoch (epoch INTEGER NOT NULL, partition INTEGER NOT NULL, first INTEGER NOT NULL,
                    PRIMARY KEY (epoch, partition)) STRICT, WITHOUT ROWID;
CREATE TABLE append_key (number INTEGER PRIMARY KEY AUTOINCREMENT, scope TEXT NOT NULL,
                         key TEXT NOT NULL, body_hash TEXT NOT NULL, record_id TEXT NOT NULL,
                         epoch INTEGER NOT NULL, partition INTEGER NOT NULL,
                         record_offset INTEGER NOT NULL, created_ms INTEGER NOT NULL,
                         record_key TEXT NOT NULL,
                         UNIQUE (scope, key)) STRICT;
CREATE TABLE probe (number INTEGER PRIMARY KEY, space BLOB NOT NULL) STRICT;
)sql";

bool is_damage(const store::SqliteError& error) {
  return error.code() == SQLITE_CORRUPT || error.code() == SQLITE_NOTADB ||
         error.code() == SQLITE_ERROR;
}

std::string message_of(const store::SqliteError& error, std::string_view doing) {
  return "The log's file, " + std::string(doing) + ": " + error.what() + ".";
}

// Calls `work`, which opens the file or reads it.
template <typename Work>
std::invoke_result_t<Work> reading(std::string_view doing, const Work& work) {
  try {
    return work();
  } catch (const store::SqliteError& error) {
    return model::fail(is_damage(error) ? Errc::internal : Errc::unavailable,
                       message_of(error, doing));
  }
}

std::string hash_of(const AppendKey& key) {
  return {key.body_hash.begin(), key.body_hash.end()};
}

std::optional<KeyRow> find_row(Connection& connection, const AppendKey& key) {
  const auto make = [](std::string body_hash, std::string id, std::int64_t epoch,
                       std::int32_t partition, std::int64_t offset, std::int64_t created_ms) {
    return KeyRow{std::move(body_hash), std::move(id), {epoch, partition, offset}, created_ms};
  };
  return connection.first(
      make,
      "SELECT body_hash, record_id, epoch, partition, record_offset, created_ms FROM append_key"
      " WHERE scope = :scope AND key = :key",
      key.scope, key.key);
}

void create(Connection& connection, std::int32_t partitions) {
  connection.begin();
  connection.script(schema);
  for (std::int32_t number = 0; number < partitions; ++number) {
    connection.run("INSERT INTO partition (number) VALUES (:number)", number);
    connection.run("INSERT INTO epoch VALUES (1, :partition, 0)", number);
  }
  connection.script("PRAGMA user_version=" + std::to_string(format_version));
  connection.commit();
}

}  // namespace

Error log_file_error(const store::SqliteError& error, std::string_view doing) {
  const bool refused =
      is_damage(error) || error.code() == SQLITE_CONSTRAINT || error.code() == SQLITE_MISMATCH;
  return {refused ? Errc::bad_upstream : Errc::unavailable, message_of(error, doing)};
}

Result<std::unique_ptr<SqliteLogFile>> SqliteLogFile::open(const SqliteLogSettings& settings) {
  return reading("opening it", [&]() -> Result<std::unique_ptr<SqliteLogFile>> {
    auto connection =
        store::open_sqlite(settings.path, Connection::Role::writer, std::chrono::seconds(5));
    connection->script(
        "PRAGMA cache_size=-16384; PRAGMA journal_size_limit=67108864;"
        // What is deleted from a page that stays in use is overwritten there, which costs no write;
        // pages that become free keep what they held until `overwrite_free`, or another use.
        "PRAGMA secure_delete=FAST; PRAGMA wal_autocheckpoint=" +
        std::to_string(settings.checkpoint_bytes / page_bytes));
    if (settings.max_file_bytes > 0) {
      connection->script("PRAGMA max_page_count=" + std::to_string(std::max<std::size_t>(
                                                        settings.max_file_bytes / page_bytes, 1)));
    }
    const auto version = connection->number("PRAGMA user_version");
    if (version > format_version) {
      return model::fail(Errc::not_supported,
                         "The log's file has format " + std::to_string(version) +
                             ", made by a newer version of this program; this one knows up to " +
                             std::to_string(format_version) + ".");
    }
    if (version == 0 && connection->exists("SELECT 1 FROM sqlite_schema")) {
      return model::fail(Errc::internal, "The file is an SQLite database, but not a log.");
    }
    if (version == 0) create(*connection, settings.partitions);
    // From here on nobody else holds a lock for long: a checkpoint that readers are in the way of
    // is to give up rather than hold up the appends.
    connection->script("PRAGMA busy_timeout=0");
    std::unique_ptr<SqliteLogFile> file(new SqliteLogFile(std::move(connection)));
    if (auto read = file->read_marks(); !read) return model::fail(read.error());
    return file;
  });
}

SqliteLogFile::SqliteLogFile(std::unique_ptr<Connection> connection)
    : connection_(std::move(connection)) {}

SqliteLogFile::~SqliteLogFile() = default;

Result<void> SqliteLogFile::read_marks() {
  bool whole = true;
  connection_->rows(
      [&](std::int32_t number, std::int64_t first, std::int64_t committed,
          std::optional<std::int64_t> last_row) {
        const std::int64_t past_last = last_row ? offset_in(*last_row) + 1 : 0;
        const std::int64_t end = std::max(past_last, first);
        whole = whole && number == static_cast<std::int32_t>(marks_.partitions.size()) &&
                0 <= first && first <= committed && committed <= end;
        marks_.partitions.push_back({number, 0, first, end, committed});
      },
      "SELECT number, first, committed, (SELECT max(at) FROM record WHERE at >= number << 44"
      " AND at < (number + 1) << 44) FROM partition ORDER BY number");
  if (!whole || marks_.partitions.empty()) {
    return model::fail(Errc::internal, "The log's file is damaged: its partitions disagree.");
  }
  connection_->rows(
      [&](std::int64_t epoch, std::int64_t first) {
        if (marks_.epochs.empty() || marks_.epochs.back().epoch != epoch) {
          marks_.epochs.push_back({epoch, {}});
        }
        marks_.epochs.back().first.push_back(first);
      },
      "SELECT epoch, first FROM epoch ORDER BY epoch, partition");
  whole = std::ranges::all_of(marks_.epochs, [&](const EpochStart& start) {
    return start.first.size() == marks_.partitions.size();
  });
  if (!whole || marks_.epochs.empty()) {
    return model::fail(Errc::internal, "The log's file is damaged: its epochs disagree.");
  }
  for (auto& range : marks_.partitions) range.epoch = marks_.epochs.back().epoch;
  marks_.oldest_key_ms = oldest_key_ms();
  return {};
}

void SqliteLogFile::begin() {
  doing_ = "beginning";
  connection_->run("BEGIN IMMEDIATE");
}

void SqliteLogFile::commit() {
  doing_ = "committing";
  connection_->run("COMMIT");
}

void SqliteLogFile::rollback() noexcept {
  connection_->rollback();
}

void SqliteLogFile::insert(const Position& at, const Record& record) {
  doing_ = "appending";
  connection_->run("INSERT INTO record VALUES (:at, :key, :id, :type, :trace_id, :value)",
                   row_of(at.partition, at.offset), record.key, record.id, record.type,
                   record.trace_id, record.value);
}

void SqliteLogFile::set_committed(std::int32_t partition, std::int64_t committed) {
  doing_ = "committing a position";
  connection_->run("UPDATE partition SET committed = :committed WHERE number = :number", committed,
                   partition);
}

void SqliteLogFile::prune(std::int32_t partition, std::int64_t from, std::int64_t to) {
  doing_ = "pruning records";
  connection_->run("DELETE FROM record WHERE at >= :from AND at < :to", row_of(partition, from),
                   row_of(partition, to));
  connection_->run("UPDATE partition SET first = :first WHERE number = :number", to, partition);
}

void SqliteLogFile::add_epoch(const EpochStart& start) {
  doing_ = "opening an epoch";
  for (std::size_t partition = 0; partition < start.first.size(); ++partition) {
    connection_->run("INSERT INTO epoch VALUES (:epoch, :partition, :first)", start.epoch,
                     partition, start.first[partition]);
  }
}

std::optional<KeyRow> SqliteLogFile::find_key(const AppendKey& key) {
  doing_ = "looking a key up";
  return find_row(*connection_, key);
}

void SqliteLogFile::put_key(const AppendKey& key, const Record& record, const Position& at,
                            std::int64_t now_ms) {
  doing_ = "storing a key";
  connection_->run(
      "INSERT OR REPLACE INTO append_key (scope, key, body_hash, record_id, epoch, partition,"
      " record_offset, created_ms, record_key)"
      " VALUES (:scope, :key, :hash, :id, :epoch, :partition, :offset, :created_ms, :record_key)",
      key.scope, key.key, hash_of(key), record.id, at.epoch, at.partition, at.offset, now_ms,
      record.key);
}

std::optional<std::int64_t> SqliteLogFile::forget_keys(const std::vector<KeyRange>& of,
                                                       std::int64_t after) {
  constexpr std::size_t rows_a_slice = 20'000;
  doing_ = "freeing keys";
  const auto last = connection_->value<std::int64_t>(
      "SELECT max(number) FROM (SELECT number FROM append_key"
      " WHERE number > :after ORDER BY number LIMIT :rows)",
      after, rows_a_slice / of.size() + 1);
  if (!last) return std::nullopt;
  for (const auto& range : of) {
    connection_->run(
        "DELETE FROM append_key WHERE number > :after AND number <= :last"
        " AND record_key >= :from AND record_key < :to",
        after, *last, range.from, range.to);
  }
  return last;
}

void SqliteLogFile::prune_keys(std::int64_t created_ms, std::int64_t limit) {
  doing_ = "pruning keys";
  connection_->run(
      "DELETE FROM append_key WHERE number IN (SELECT number FROM append_key ORDER BY number"
      " LIMIT :limit) AND created_ms <= :created_ms",
      limit, created_ms);
}

std::optional<std::int64_t> SqliteLogFile::oldest_key_ms() {
  return connection_->value<std::int64_t>(
      "SELECT created_ms FROM append_key ORDER BY number LIMIT 1");
}

void SqliteLogFile::probe() {
  doing_ = "trying to write";
  connection_->run("INSERT OR REPLACE INTO probe VALUES (1, zeroblob(65536))");
  connection_->run("DELETE FROM probe");
}

// A blob of this size fills its pages to the last byte, so nothing of what they held stays: 489
// bytes in the row's own page (the least that SQLite keeps there), 4092 in each one behind it.
std::int64_t SqliteLogFile::overwrite_free() {
  constexpr std::int64_t pages_a_slice = 256;
  constexpr const char* count_free = "PRAGMA freelist_count";
  doing_ = "clearing";
  if (const auto free = connection_->number(count_free); free > 0) {
    connection_->run("INSERT INTO probe (space) VALUES (zeroblob(:bytes))",
                     489 + 4092 * std::clamp<std::int64_t>(free - 2, 0, pages_a_slice));
  }
  return connection_->number(count_free);
}

bool SqliteLogFile::release_overwritten() {
  doing_ = "clearing";
  connection_->run(
      "DELETE FROM probe WHERE number IN (SELECT number FROM probe ORDER BY number LIMIT 16)");
  return connection_->exists("SELECT 1 FROM probe");
}

bool SqliteLogFile::empty_wal() {
  doing_ = "clearing";
  return connection_->number("PRAGMA wal_checkpoint(TRUNCATE)") == 0;
}

Result<KeyedAppended> KeyRow::repeated_by(const AppendKey& key) const {
  if (body_hash == hash_of(key)) return KeyedAppended{id, position, true};
  return model::fail(Errc::conflict, "The key was used with another body.");
}

Result<std::unique_ptr<Connection>> open_log_reader(const std::string& path) {
  return reading("opening it", [&]() -> Result<std::unique_ptr<Connection>> {
    return store::open_sqlite(path, Connection::Role::reader, std::chrono::seconds(5));
  });
}

Result<std::optional<KeyRow>> look_up(Connection& connection, const AppendKey& key) {
  try {
    return find_row(connection, key);
  } catch (const store::SqliteError& error) {
    return model::fail(Errc::unavailable, message_of(error, "looking a key up"));
  }
}

Result<std::int64_t> count_unfinished(Connection& connection, std::span<const KeyRange> keys) {
  return reading("searching it", [&]() -> Result<std::int64_t> {
    std::int64_t count = 0;
    // By the primary key, partition by partition, so that nothing is read of what is finished.
    connection.rows(
        [&](const std::string& key) {
          const bool meant = std::ranges::any_of(
              keys, [&](const KeyRange& range) { return key >= range.from && key < range.to; });
          count += meant ? 1 : 0;
        },
        "SELECT key FROM partition CROSS JOIN record"
        " WHERE at >= (number << 44) + committed AND at < (number + 1) << 44");
    return count;
  });
}

Result<std::vector<LogRecord>> read_records(Connection& connection, std::int32_t partition,
                                            std::int64_t from, std::int64_t to,
                                            std::size_t max_records, std::size_t max_bytes) {
  return reading("reading records", [&]() -> Result<std::vector<LogRecord>> {
    std::vector<LogRecord> records;
    std::size_t bytes = 0;
    connection.rows(
        [&](std::int64_t row, std::string key, std::string id, std::string type,
            std::string trace_id, std::string value) {
          const Position at{0, partition, offset_in(row)};
          if (at.offset != from + static_cast<std::int64_t>(records.size())) return false;
          records.push_back({{std::move(key), std::move(id), std::move(type), std::move(trace_id),
                              std::move(value)},
                             at});
          bytes += records.back().record.bytes();
          return bytes < max_bytes;
        },
        "SELECT at, key, id, type, trace_id, value FROM record WHERE at >= :from AND at < :to"
        " ORDER BY at LIMIT :most",
        row_of(partition, from), row_of(partition, to), max_records);
    if (!records.empty()) return records;
    return model::fail(Errc::internal, "The log's file is damaged: a record is missing.");
  });
}

Result<std::vector<LogRecord>> read_records(Connection& connection, std::span<const Position> at) {
  std::vector<LogRecord> records;
  for (const Position& position : at) {
    auto one =
        read_records(connection, position.partition, position.offset, position.offset + 1, 1, 1);
    if (!one) return model::fail(one.error());
    records.push_back({std::move(one->front().record), position});
  }
  return records;
}

}  // namespace conversed::queue
