#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "queue/keyed_append.h"
#include "queue/log.h"

namespace conversed::store {
class Connection;
class SqliteError;
}  // namespace conversed::store

namespace conversed::queue {

struct SqliteLogSettings;

// From which offset on each partition's records belong to an epoch.
struct EpochStart {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> first;  // by partition
};

// The state of the file besides its records and keys.
struct LogMarks {
  std::vector<PartitionRange> partitions;     // by number
  std::vector<EpochStart> epochs;             // ascending, never empty
  std::optional<std::int64_t> oldest_key_ms;  // when the oldest key was made; since the Unix epoch
};

// The record that a key stands for.
struct KeyRow {
  std::string body_hash;  // 32 bytes
  std::string id;
  Position position;
  std::int64_t created_ms = 0;  // since the Unix epoch

  // Whether it is younger than `lifetime`; an older one is as good as none.
  [[nodiscard]] bool stands(std::int64_t now_ms, std::chrono::milliseconds lifetime) const {
    return now_ms - created_ms < lifetime.count();
  }
  // The answer to the key's next use: this record, or `conflict` for another body.
  [[nodiscard]] Result<KeyedAppended> repeated_by(const AppendKey& key) const;
};

// An error of the file for people. `bad_upstream` if the file refuses the record or is damaged,
// else `unavailable`.
[[nodiscard]] Error log_file_error(const store::SqliteError& error, std::string_view doing);

// The statements of the log's file, on the one connection that writes to it. They throw
// store::SqliteError. One thread at a time.
class SqliteLogFile {
 public:
  // Opens the file or makes it, and checks its version.
  [[nodiscard]] static Result<std::unique_ptr<SqliteLogFile>> open(
      const SqliteLogSettings& settings);
  ~SqliteLogFile();
  SqliteLogFile(const SqliteLogFile&) = delete;
  SqliteLogFile& operator=(const SqliteLogFile&) = delete;

  // The task of the last call, for error messages.
  [[nodiscard]] std::string_view doing() const { return doing_; }

  // As of the opening.
  [[nodiscard]] const LogMarks& marks() const { return marks_; }

  void begin();
  void commit();
  void rollback() noexcept;  // does nothing outside a transaction

  void insert(const Position& at, const Record& record);
  void set_committed(std::int32_t partition, std::int64_t committed);
  // Deletes the records in [from, to) and remembers that the partition begins at `to`.
  void prune(std::int32_t partition, std::int64_t from, std::int64_t to);
  void add_epoch(const EpochStart& start);

  [[nodiscard]] std::optional<KeyRow> find_key(const AppendKey& key);
  // From now on the key stands for this record, and for no earlier one.
  void put_key(const AppendKey& key, const Record& record, const Position& at, std::int64_t now_ms);
  // Deletes the keys of records in the ranges, in the next slice of rows behind number `after`.
  // Returns where the slice ended; nothing if there was none.
  [[nodiscard]] std::optional<std::int64_t> forget_keys(const std::vector<KeyRange>& of,
                                                        std::int64_t after);
  // Deletes those of the oldest `limit` keys that were made at `created_ms` or before.
  void prune_keys(std::int64_t created_ms, std::int64_t limit);
  [[nodiscard]] std::optional<std::int64_t> oldest_key_ms();

  // Takes and frees 64 KiB: fails unless there is space again.
  void probe();

  // Overwrites a slice, 1 MiB, of the free pages by allocating them: they still hold deleted data.
  // Returns how many are free afterwards.
  [[nodiscard]] std::int64_t overwrite_free();
  // Frees a few slices that `overwrite_free` has allocated. True while there are more.
  [[nodiscard]] bool release_overwritten();
  // Empties the write-ahead log. False if a reader is in the way.
  [[nodiscard]] bool empty_wal();

 private:
  explicit SqliteLogFile(std::unique_ptr<store::Connection> connection);
  [[nodiscard]] Result<void> read_marks();

  const std::unique_ptr<store::Connection> connection_;
  LogMarks marks_;
  const char* doing_ = "";
};

// A connection that reads records and keys beside the one that writes. One thread at a time.
[[nodiscard]] Result<std::unique_ptr<store::Connection>> open_log_reader(const std::string& path);

// The records in [from, to) of a partition, at most `max_records` (above 0) and about `max_bytes`,
// but one at least. Their epoch is left 0. A record that is missing is `internal`.
[[nodiscard]] Result<std::vector<LogRecord>> read_records(store::Connection& connection,
                                                          std::int32_t partition, std::int64_t from,
                                                          std::int64_t to, std::size_t max_records,
                                                          std::size_t max_bytes);
// As Log::read.
[[nodiscard]] Result<std::vector<LogRecord>> read_records(store::Connection& connection,
                                                          std::span<const Position> at);
// Outside a transaction.
[[nodiscard]] Result<std::optional<KeyRow>> look_up(store::Connection& connection,
                                                    const AppendKey& key);
// As Log::unfinished.
[[nodiscard]] Result<std::int64_t> count_unfinished(store::Connection& connection,
                                                    std::span<const KeyRange> keys);

}  // namespace conversed::queue
