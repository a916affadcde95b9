#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <vector>

#include "queue/log.h"
#include "queue/sqlite/sqlite_log_file.h"

namespace conversed::queue {

// What the log's thread and its consumer share: the offsets of each partition, and the tail of
// committed records that the consumer has not taken yet. A tail that would go beyond its bounds is
// dropped: the consumer reads these records from the file, before what the tail gathers next.
// Thread-safe.
class SqliteLogState {
 public:
  struct TailBounds {
    std::size_t records;
    std::size_t bytes;
  };
  SqliteLogState(LogMarks marks, TailBounds bounds);

  // For the writer, after a commit: where the partitions stand, and what was appended, in the order
  // of the offsets.
  void publish(const LogMarks& marks, std::vector<LogRecord> records);

  [[nodiscard]] std::vector<PartitionRange> ranges() const;

  // For the consumer. There is one at a time: `attach` is false while another one is attached.
  bool attach();
  void detach();

  // Either records from memory, or where in the file the next ones are, or neither: time-out or
  // wake. A read of the file is to be followed by `took`.
  struct Take {
    std::vector<LogRecord> records;
    struct FileRead {
      std::int32_t partition;
      std::int64_t from;
      std::int64_t to;
    };
    std::optional<FileRead> file;
  };
  [[nodiscard]] Take take(std::size_t max, std::chrono::milliseconds wait);
  // Fills in the epochs of records that were read from the file, and counts them as handed out.
  void took(std::vector<LogRecord>& records);

  // Leaves in `finished` what is above the committed positions. `conflict` as Consumer::commit.
  [[nodiscard]] Result<void> check_finished(std::vector<Position>& finished);

  void wake();

 private:
  struct Partition {
    PartitionRange range;
    std::int64_t next = 0;      // to hand out
    std::int64_t file_end = 0;  // what is below is not in the tail
  };
  [[nodiscard]] Partition& partition_at(const Position& at) {
    return partitions_[static_cast<std::size_t>(at.partition)];
  }
  [[nodiscard]] std::int64_t epoch_of(std::int32_t partition, std::int64_t offset) const;
  [[nodiscard]] bool readable() const;
  void drop_tail();

  const TailBounds bounds_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Partition> partitions_;
  std::vector<EpochStart> epochs_;
  std::deque<LogRecord> tail_;  // in the order of the commits
  std::size_t tail_bytes_ = 0;
  std::size_t turn_ = 0;  // the partition that `take` looks at first
  bool attached_ = false;
  bool woken_ = false;
};

}  // namespace conversed::queue
