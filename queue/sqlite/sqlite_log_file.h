#pragma once

#include <array>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <vector>

#include "queue/keyed_append.h"
#include "queue/log.h"
#include "queue/sqlite/sqlite_handles.h"

namespace conversed::queue {

// From which offset on each partition's records belong to an epoch.
struct EpochStart {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> first;  // by partition
};

// Where the partitions stand.
struct LogMarks {
  std::vector<PartitionRange> partitions;  // by number
  std::vector<EpochStart> epochs;          // ascending, never empty
};

// What a key stands for.
struct KeyRow {
  std::array<std::uint8_t, 32> body_hash{};
  std::string id;
  Position position;
  std::int64_t created_ms = 0;  // since the Unix epoch

  // Whether it is younger than `lifetime`; an older one is as good as none.
  [[nodiscard]] bool stands(std::int64_t now_ms, std::chrono::milliseconds lifetime) const {
    return now_ms - created_ms < lifetime.count();
  }
  // What the key's next use gets: this record, or `conflict` for another body.
  [[nodiscard]] Result<KeyedAppended> repeated_by(const AppendKey& key) const;
};

// The statements of the log's file, on the one connection that writes to it. Functions that return
// `int` return SQLite's result code. One thread at a time.
class SqliteLogFile {
 public:
  // Opens the file or makes it with this many partitions, and checks its version.
  [[nodiscard]] static Result<std::unique_ptr<SqliteLogFile>> open(const std::string& path,
                                                                   std::int32_t partitions,
                                                                   std::size_t max_file_bytes);

  [[nodiscard]] Result<LogMarks> read_marks();

  int begin() { return begin_.execute(); }
  int commit() { return commit_.execute(); }
  void rollback();  // does nothing outside a transaction

  int insert(const Position& at, const Record& record);
  int set_committed(std::int32_t partition, std::int64_t committed);
  // Deletes the records in [from, to) and remembers that the partition begins at `to`.
  int prune(std::int32_t partition, std::int64_t from, std::int64_t to);
  int add_epoch(const EpochStart& start);

  int find_key(const AppendKey& key, std::optional<KeyRow>& found);
  // In place of an earlier row; `record_key` is that of the record that the key stands for.
  int put_key(const AppendKey& key, const KeyRow& row, const std::string& record_key);
  // Of the next slice of rows behind number `after`, deletes those of records in the ranges;
  // `after` is then where the slice ended, or nothing if there was none.
  int forget_keys(const std::vector<KeyRange>& of, std::optional<std::int64_t>& after);
  // Deletes those of the oldest `limit` keys that were made at `created_ms` or before.
  int prune_keys(std::int64_t created_ms, std::int64_t limit);
  int oldest_key(std::optional<std::int64_t>& created_ms);

  // Takes and frees 64 KiB: tells whether there is space again.
  int probe();

  // Bytes in the write-ahead log that wait to be moved into the file, as of the last commit.
  [[nodiscard]] std::size_t wal_bytes() const { return wal_bytes_; }
  // Moves what no reader holds back. `truncate` also empties the log's file, if no reader is in it.
  enum class Checkpoint : std::uint8_t { passive, truncate };
  int checkpoint(Checkpoint mode);

  // Overwrites a slice, 1 MiB, of the pages that are free, by taking them: what was deleted is
  // still in them. `left`: how many there are afterwards.
  int overwrite_free(std::int64_t& left);
  // Gives back a few slices of what `overwrite_free` has taken. `left`: whether there is more.
  int release_overwritten(bool& left);

 private:
  explicit SqliteLogFile(SqliteConnection connection);

  SqliteConnection connection_;
  std::size_t wal_bytes_ = 0;
  SqliteStatement begin_;
  SqliteStatement commit_;
  SqliteStatement rollback_;
  SqliteStatement insert_;
  SqliteStatement set_committed_;
  SqliteStatement delete_records_;
  SqliteStatement set_first_;
  SqliteStatement add_epoch_;
  SqliteStatement find_key_;
  SqliteStatement put_key_;
  SqliteStatement prune_keys_;
  SqliteStatement oldest_key_;
  SqliteStatement probe_;
  SqliteStatement unprobe_;
};

// Reads records and keys beside the connection that writes. One thread at a time.
class SqliteLogReader {
 public:
  [[nodiscard]] static Result<std::unique_ptr<SqliteLogReader>> open(const std::string& path);

  // The records in [from, to) of a partition, at most `max_records` (above 0) and about
  // `max_bytes`, but one at least. Their epoch is left 0. A record that is missing is `internal`.
  [[nodiscard]] Result<std::vector<LogRecord>> read(std::int32_t partition, std::int64_t from,
                                                    std::int64_t to, std::size_t max_records,
                                                    std::size_t max_bytes);
  // As Log::read.
  [[nodiscard]] Result<std::vector<LogRecord>> read(std::span<const Position> at);
  [[nodiscard]] Result<std::optional<KeyRow>> find_key(const AppendKey& key);
  // As Log::unfinished.
  [[nodiscard]] Result<std::int64_t> unfinished(std::span<const KeyRange> keys);

 private:
  explicit SqliteLogReader(SqliteConnection connection);
  SqliteConnection connection_;
  SqliteStatement select_;
  SqliteStatement find_key_;
};

}  // namespace conversed::queue
