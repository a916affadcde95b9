#include "queue/sqlite/sqlite_log_file.h"

#include <fcntl.h>
#include <sqlite3.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

namespace conversed::queue {
namespace {

constexpr std::int64_t format_version = 1;

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
// whichever is higher, so that no offset is used twice.
constexpr const char* schema = R"sql(
CREATE TABLE record (at INTEGER PRIMARY KEY, key BLOB NOT NULL, id BLOB NOT NULL,
                     type BLOB NOT NULL, trace_id BLOB NOT NULL, value BLOB NOT NULL) STRICT;
CREATE TABLE partition (number INTEGER PRIMARY KEY, first INTEGER NOT NULL DEFAULT 0,
                        committed INTEGER NOT NULL DEFAULT 0) STRICT;
CREATE TABLE epoch (epoch INTEGER NOT NULL, partition INTEGER NOT NULL, first INTEGER NOT NULL,
                    PRIMARY KEY (epoch, partition)) STRICT, WITHOUT ROWID;
CREATE TABLE append_key (number INTEGER PRIMARY KEY AUTOINCREMENT, scope BLOB NOT NULL,
                         key BLOB NOT NULL, body_hash BLOB NOT NULL, record_id BLOB NOT NULL,
                         epoch INTEGER NOT NULL, partition INTEGER NOT NULL,
                         record_offset INTEGER NOT NULL, created_ms INTEGER NOT NULL,
                         record_key BLOB NOT NULL,
                         UNIQUE (scope, key)) STRICT;
CREATE TABLE probe (number INTEGER PRIMARY KEY, space BLOB NOT NULL) STRICT;
)sql";

constexpr const char* find_key_sql =
    "SELECT body_hash, record_id, epoch, partition, record_offset, created_ms FROM append_key "
    "WHERE scope = ?1 AND key = ?2";
constexpr const char* put_key_sql =
    "INSERT OR REPLACE INTO append_key (scope, key, body_hash, record_id, epoch, partition, "
    "record_offset, created_ms, record_key) VALUES (?1, ?2, ?3, ?4, ?5, ?6, ?7, ?8, ?9)";
constexpr const char* prune_keys_sql =
    "DELETE FROM append_key WHERE number IN (SELECT number FROM append_key ORDER BY number LIMIT "
    "?2) AND created_ms <= ?1";

int one_integer(SqliteConnection& connection, const char* sql, std::int64_t& value) {
  SqliteStatement statement(connection, sql);
  const int code = statement.step();
  if (code == SQLITE_ROW) value = statement.integer(0);
  return code == SQLITE_ROW ? SQLITE_OK : code;
}

int create(SqliteConnection& connection, std::int32_t partitions) {
  int code = connection.run("BEGIN IMMEDIATE");
  if (code == SQLITE_OK) code = connection.run(schema);
  SqliteStatement partition(connection, "INSERT INTO partition (number) VALUES (?1)");
  SqliteStatement epoch(connection, "INSERT INTO epoch VALUES (1, ?1, 0)");
  for (std::int32_t number = 0; code == SQLITE_OK && number < partitions; ++number) {
    code = partition.bind(1, number).execute();
    if (code == SQLITE_OK) code = epoch.bind(1, number).execute();
  }
  const std::string version = "PRAGMA user_version=" + std::to_string(format_version);
  if (code == SQLITE_OK) code = connection.run(version.c_str());
  return code == SQLITE_OK ? connection.run("COMMIT") : code;
}

int find_row(SqliteStatement& find, const AppendKey& key, std::optional<KeyRow>& found) {
  found.reset();
  const int code = find.bind(1, key.scope).bind(2, key.key).step();
  if (code == SQLITE_ROW) {
    KeyRow row;
    const auto hash = find.bytes(0);
    std::memcpy(row.body_hash.data(), hash.data(), std::min(hash.size(), row.body_hash.size()));
    row.id = find.bytes(1);
    row.position = {find.integer(2), static_cast<std::int32_t>(find.integer(3)), find.integer(4)};
    row.created_ms = find.integer(5);
    found = std::move(row);
  }
  find.reset();
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

// SQLite gives its WAL the mode of the database, so the file is made before SQLite opens it. If it
// can't be made, SQLite says why.
void make_private(const std::string& path) {
  const int file = ::open(path.c_str(), O_RDWR | O_CREAT | O_CLOEXEC, 0600);
  if (file >= 0) ::close(file);
}

int on_commit(void* wal_bytes, sqlite3* /*db*/, const char* /*name*/, int pages) {
  constexpr std::size_t frame_bytes = 4096 + 24;
  *static_cast<std::size_t*>(wal_bytes) = static_cast<std::size_t>(pages) * frame_bytes;
  return SQLITE_OK;
}

}  // namespace

Result<std::unique_ptr<SqliteLogFile>> SqliteLogFile::open(const std::string& path,
                                                           std::int32_t partitions,
                                                           std::size_t max_file_bytes) {
  make_private(path);
  auto connection = SqliteConnection::open(path, SqliteAccess::write);
  if (!connection) return model::fail(connection.error());
  // These three come before anything is written to a new file.
  std::string set =
      "PRAGMA page_size=4096; PRAGMA auto_vacuum=NONE; PRAGMA journal_mode=WAL;"
      "PRAGMA synchronous=FULL; PRAGMA cache_size=-16384;"
      "PRAGMA journal_size_limit=67108864;"
      // What is deleted from a page that stays in use is overwritten there, which costs no write;
      // pages that become free keep what they held until `overwrite_free`, or another use.
      "PRAGMA secure_delete=FAST;";
  if (max_file_bytes > 0) {
    set +=
        "PRAGMA max_page_count=" + std::to_string(std::max<std::size_t>(max_file_bytes / 4096, 1));
  }
  int code = connection->run(set.c_str());
  std::int64_t version = 0;
  std::int64_t tables = 0;
  if (code == SQLITE_OK) code = one_integer(*connection, "PRAGMA user_version", version);
  if (code == SQLITE_OK) {
    code = one_integer(*connection, "SELECT count(*) FROM sqlite_schema", tables);
  }
  if (code != SQLITE_OK) return model::fail(sqlite_error(code, "opening it"));
  if (version > format_version) {
    return model::fail(Errc::not_supported,
                       "The log's file has format " + std::to_string(version) +
                           ", made by a newer version of this program; this one knows up to " +
                           std::to_string(format_version) + ".");
  }
  if (version == 0 && tables > 0) {
    return model::fail(Errc::internal, "The file is an SQLite database, but not a log.");
  }
  if (version == 0) code = create(*connection, partitions);
  if (code != SQLITE_OK) return model::fail(sqlite_error(code, "making its tables"));
  std::unique_ptr<SqliteLogFile> file(new SqliteLogFile(std::move(*connection)));
  if (auto prepared = file->connection_.prepared(); !prepared) return model::fail(prepared.error());
  // From here on nobody else holds a lock for long: a checkpoint that readers are in the way of is
  // to give up rather than hold up the appends.
  sqlite3_busy_timeout(file->connection_.raw(), 0);
  sqlite3_wal_hook(file->connection_.raw(), on_commit, &file->wal_bytes_);
  return file;
}

SqliteLogFile::SqliteLogFile(SqliteConnection connection)
    : connection_(std::move(connection)),
      begin_(connection_, "BEGIN IMMEDIATE"),
      commit_(connection_, "COMMIT"),
      rollback_(connection_, "ROLLBACK"),
      insert_(connection_, "INSERT INTO record VALUES (?1, ?2, ?3, ?4, ?5, ?6)"),
      set_committed_(connection_, "UPDATE partition SET committed = ?2 WHERE number = ?1"),
      delete_records_(connection_, "DELETE FROM record WHERE at >= ?1 AND at < ?2"),
      set_first_(connection_, "UPDATE partition SET first = ?2 WHERE number = ?1"),
      add_epoch_(connection_, "INSERT INTO epoch VALUES (?1, ?2, ?3)"),
      find_key_(connection_, find_key_sql),
      put_key_(connection_, put_key_sql),
      prune_keys_(connection_, prune_keys_sql),
      oldest_key_(connection_, "SELECT created_ms FROM append_key ORDER BY number LIMIT 1"),
      probe_(connection_, "INSERT OR REPLACE INTO probe VALUES (1, zeroblob(65536))"),
      unprobe_(connection_, "DELETE FROM probe") {}

Result<LogMarks> SqliteLogFile::read_marks() {
  LogMarks marks;
  SqliteStatement partitions(
      connection_,
      "SELECT number, first, committed, (SELECT max(at) FROM record WHERE at "
      ">= number << 44 AND at < (number + 1) << 44) FROM partition "
      "ORDER BY number");
  int code = partitions.step();
  for (; code == SQLITE_ROW; code = partitions.step()) {
    PartitionRange range;
    range.partition = static_cast<std::int32_t>(partitions.integer(0));
    range.first = partitions.integer(1);
    range.committed = partitions.integer(2);
    const std::int64_t past_last = partitions.is_null(3) ? 0 : offset_in(partitions.integer(3)) + 1;
    range.end = std::max(past_last, range.first);
    if (range.partition != static_cast<std::int32_t>(marks.partitions.size()) || range.first < 0 ||
        range.committed < range.first || range.committed > range.end) {
      return model::fail(Errc::internal, "The log's file is damaged: its partitions disagree.");
    }
    marks.partitions.push_back(range);
  }
  if (code != SQLITE_DONE) return model::fail(sqlite_error(code, "reading its partitions"));

  SqliteStatement epochs(connection_,
                         "SELECT epoch, partition, first FROM epoch ORDER BY epoch, partition");
  for (code = epochs.step(); code == SQLITE_ROW; code = epochs.step()) {
    if (marks.epochs.empty() || marks.epochs.back().epoch != epochs.integer(0)) {
      marks.epochs.push_back({epochs.integer(0), {}});
    }
    marks.epochs.back().first.push_back(epochs.integer(2));
  }
  if (code != SQLITE_DONE) return model::fail(sqlite_error(code, "reading its epochs"));
  const bool whole = std::ranges::all_of(marks.epochs, [&](const EpochStart& start) {
    return start.first.size() == marks.partitions.size();
  });
  if (marks.partitions.empty() || marks.epochs.empty() || !whole) {
    return model::fail(Errc::internal, "The log's file is damaged: its epochs disagree.");
  }
  for (auto& range : marks.partitions) range.epoch = marks.epochs.back().epoch;
  return marks;
}

void SqliteLogFile::rollback() {
  // SQLite rolls back by itself after some errors, and only then is this one out of place.
  if (sqlite3_get_autocommit(connection_.raw()) == 0) rollback_.execute();
}

int SqliteLogFile::insert(const Position& at, const Record& record) {
  return insert_.bind(1, row_of(at.partition, at.offset))
      .bind(2, record.key)
      .bind(3, record.id)
      .bind(4, record.type)
      .bind(5, record.trace_id)
      .bind(6, record.value)
      .execute();
}

int SqliteLogFile::set_committed(std::int32_t partition, std::int64_t committed) {
  return set_committed_.bind(1, partition).bind(2, committed).execute();
}

int SqliteLogFile::prune(std::int32_t partition, std::int64_t from, std::int64_t to) {
  const int code =
      delete_records_.bind(1, row_of(partition, from)).bind(2, row_of(partition, to)).execute();
  if (code != SQLITE_OK) return code;
  return set_first_.bind(1, partition).bind(2, to).execute();
}

int SqliteLogFile::add_epoch(const EpochStart& start) {
  for (std::size_t partition = 0; partition < start.first.size(); ++partition) {
    const int code = add_epoch_.bind(1, start.epoch)
                         .bind(2, static_cast<std::int64_t>(partition))
                         .bind(3, start.first[partition])
                         .execute();
    if (code != SQLITE_OK) return code;
  }
  return SQLITE_OK;
}

int SqliteLogFile::find_key(const AppendKey& key, std::optional<KeyRow>& found) {
  return find_row(find_key_, key, found);
}

int SqliteLogFile::put_key(const AppendKey& key, const KeyRow& row, const std::string& record_key) {
  const std::string_view hash(reinterpret_cast<const char*>(row.body_hash.data()),
                              row.body_hash.size());
  return put_key_.bind(1, key.scope)
      .bind(2, key.key)
      .bind(3, hash)
      .bind(4, row.id)
      .bind(5, row.position.epoch)
      .bind(6, row.position.partition)
      .bind(7, row.position.offset)
      .bind(8, row.created_ms)
      .bind(9, record_key)
      .execute();
}

int SqliteLogFile::forget_keys(const std::vector<KeyRange>& of,
                               std::optional<std::int64_t>& after) {
  constexpr std::int64_t rows_a_slice = 20'000;
  SqliteStatement slice(connection_,
                        "SELECT max(number) FROM (SELECT number FROM append_key"
                        " WHERE number > ?1 ORDER BY number LIMIT ?2)");
  slice.bind(1, *after).bind(2, rows_a_slice / static_cast<std::int64_t>(of.size()) + 1);
  if (const int code = slice.step(); code != SQLITE_ROW) return code;
  const auto last = slice.is_null(0) ? std::nullopt : std::optional(slice.integer(0));
  slice.reset();
  SqliteStatement forget(connection_,
                         "DELETE FROM append_key WHERE number > ?1 AND number <= ?2"
                         " AND record_key >= ?3 AND record_key < ?4");
  for (const auto& range : of) {
    if (!last) break;
    const int code =
        forget.bind(1, *after).bind(2, *last).bind(3, range.from).bind(4, range.to).execute();
    if (code != SQLITE_OK) return code;
  }
  after = last;
  return SQLITE_OK;
}

int SqliteLogFile::prune_keys(std::int64_t created_ms, std::int64_t limit) {
  return prune_keys_.bind(1, created_ms).bind(2, limit).execute();
}

int SqliteLogFile::oldest_key(std::optional<std::int64_t>& created_ms) {
  created_ms.reset();
  const int code = oldest_key_.step();
  if (code == SQLITE_ROW) created_ms = oldest_key_.integer(0);
  oldest_key_.reset();
  return code == SQLITE_ROW || code == SQLITE_DONE ? SQLITE_OK : code;
}

int SqliteLogFile::probe() {
  int code = begin();
  if (code == SQLITE_OK) code = probe_.execute();
  if (code == SQLITE_OK) code = commit();
  if (code == SQLITE_OK) code = unprobe_.execute();
  rollback();
  return code;
}

int SqliteLogFile::checkpoint(Checkpoint mode) {
  int in_log = 0;
  int moved = 0;
  const int code = sqlite3_wal_checkpoint_v2(
      connection_.raw(), nullptr,
      mode == Checkpoint::passive ? SQLITE_CHECKPOINT_PASSIVE : SQLITE_CHECKPOINT_TRUNCATE, &in_log,
      &moved);
  // All moved: the next commit begins at the front of the log's file again.
  if (code == SQLITE_OK && in_log == moved) wal_bytes_ = 0;
  return code;
}

// A blob of this size fills its pages to the last byte, so nothing of what they held stays: 489
// bytes in the row's own page (the least that SQLite keeps there), 4092 in each one behind it.
int SqliteLogFile::overwrite_free(std::int64_t& left) {
  constexpr std::int64_t pages_a_slice = 256;
  std::int64_t free = 0;
  int code = one_integer(connection_, "PRAGMA freelist_count", free);
  if (code == SQLITE_OK && free > 0) {
    const std::int64_t pages = std::clamp<std::int64_t>(free - 2, 0, pages_a_slice);
    SqliteStatement take(connection_, "INSERT INTO probe (space) VALUES (zeroblob(?1))");
    code = begin();
    if (code == SQLITE_OK) code = take.bind(1, 489 + 4092 * pages).execute();
    if (code == SQLITE_OK) code = commit();
    if (code == SQLITE_OK) code = one_integer(connection_, "PRAGMA freelist_count", free);
    if (code != SQLITE_OK) rollback();
  }
  left = free;
  return code;
}

int SqliteLogFile::release_overwritten(bool& left) {
  constexpr const char* exists = "SELECT EXISTS (SELECT 1 FROM probe)";
  std::int64_t rows = 0;
  int code = one_integer(connection_, exists, rows);
  if (code == SQLITE_OK && rows > 0) {
    code = connection_.run(
        "DELETE FROM probe WHERE number IN (SELECT number FROM probe ORDER BY number LIMIT 16)");
    if (code == SQLITE_OK) code = one_integer(connection_, exists, rows);
  }
  left = rows > 0;
  return code;
}

Result<KeyedAppended> KeyRow::repeated_by(const AppendKey& key) const {
  if (body_hash == key.body_hash) return KeyedAppended{id, position, true};
  return model::fail(Errc::conflict, "The key was used with another body.");
}

Result<std::unique_ptr<SqliteLogReader>> SqliteLogReader::open(const std::string& path) {
  auto connection = SqliteConnection::open(path, SqliteAccess::read);
  if (!connection) return model::fail(connection.error());
  std::unique_ptr<SqliteLogReader> reader(new SqliteLogReader(std::move(*connection)));
  auto prepared = reader->connection_.prepared();
  if (!prepared) return model::fail(prepared.error());
  return reader;
}

SqliteLogReader::SqliteLogReader(SqliteConnection connection)
    : connection_(std::move(connection)),
      select_(connection_,
              "SELECT at, key, id, type, trace_id, value FROM record WHERE at >= ?1 AND at < ?2 "
              "ORDER BY at LIMIT ?3"),
      find_key_(connection_, find_key_sql) {}

Result<std::optional<KeyRow>> SqliteLogReader::find_key(const AppendKey& key) {
  std::optional<KeyRow> row;
  if (const int code = find_row(find_key_, key, row); code != SQLITE_OK) {
    return model::fail(Errc::unavailable, sqlite_error(code, "looking a key up").message);
  }
  return row;
}

Result<std::int64_t> SqliteLogReader::unfinished(std::span<const KeyRange> keys) {
  // By the primary key, partition by partition, so that nothing is read of what is finished.
  SqliteStatement waiting(connection_,
                          "SELECT key FROM partition CROSS JOIN record WHERE"
                          " at >= (number << 44) + committed AND at < (number + 1) << 44");
  std::int64_t count = 0;
  int code = waiting.step();
  for (; code == SQLITE_ROW; code = waiting.step()) {
    const auto key = waiting.bytes(0);
    const bool meant = std::ranges::any_of(
        keys, [&](const KeyRange& range) { return key >= range.from && key < range.to; });
    count += meant ? 1 : 0;
  }
  if (code != SQLITE_DONE) return model::fail(sqlite_error(code, "searching it"));
  return count;
}

Result<std::vector<LogRecord>> SqliteLogReader::read(std::int32_t partition, std::int64_t from,
                                                     std::int64_t to, std::size_t max_records,
                                                     std::size_t max_bytes) {
  std::vector<LogRecord> records;
  std::size_t bytes = 0;
  std::int64_t expected = from;
  select_.bind(1, row_of(partition, from))
      .bind(2, row_of(partition, to))
      .bind(3, static_cast<std::int64_t>(max_records));
  int code = select_.step();
  for (; code == SQLITE_ROW && bytes < max_bytes; code = select_.step()) {
    LogRecord& next = records.emplace_back();
    next.position = {0, partition, offset_in(select_.integer(0))};
    if (next.position.offset != expected++) break;
    next.record = {std::string(select_.bytes(1)), std::string(select_.bytes(2)),
                   std::string(select_.bytes(3)), std::string(select_.bytes(4)),
                   std::string(select_.bytes(5))};
    bytes += next.record.bytes();
  }
  select_.reset();
  if (code != SQLITE_ROW && code != SQLITE_DONE) {
    return model::fail(sqlite_error(code, "reading records"));
  }
  if (records.empty() || records.back().position.offset != expected - 1) {
    return model::fail(Errc::internal, "The log's file is damaged: a record is missing.");
  }
  return records;
}

Result<std::vector<LogRecord>> SqliteLogReader::read(std::span<const Position> at) {
  std::vector<LogRecord> records;
  for (const Position& position : at) {
    auto one = read(position.partition, position.offset, position.offset + 1, 1, 1);
    if (!one) return model::fail(one.error());
    records.push_back({std::move(one->front().record), position});
  }
  return records;
}

}  // namespace conversed::queue
