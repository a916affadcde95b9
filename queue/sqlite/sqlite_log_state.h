#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <mutex>
#include <optional>
#include <span>
#include <vector>

#include "queue/log.h"
#include "queue/sqlite/sqlite_log_file.h"

namespace conversed::queue {

// What the log's writer and its consumer share: where each partition stands, and the tail of
// committed records that the consumer has not taken yet. What does not fit into the tail is not
// lost: the consumer is sent to the file for it. Thread-safe.
class SqliteLogState {
 public:
  struct TailBounds {  // over all partitions
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
  [[nodiscard]] Result<void> check_finished(std::vector<Position>& finished) const;

  void wake();

 private:
  struct Partition {
    PartitionRange range;
    std::int64_t next = 0;       // to hand out
    std::deque<LogRecord> tail;  // contiguous, up to range.end
    std::size_t tail_bytes = 0;
  };
  [[nodiscard]] std::int64_t epoch_of(std::int32_t partition, std::int64_t offset) const;
  [[nodiscard]] bool readable() const;
  void take_from(Partition& partition, std::size_t max, Take& out);
  [[nodiscard]] bool known(std::int32_t partition) const;

  const TailBounds bounds_;  // of one partition
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Partition> partitions_;
  std::vector<EpochStart> epochs_;
  std::size_t turn_ = 0;  // the partition that `take` looks at first
  bool attached_ = false;
  bool woken_ = false;
};

}  // namespace conversed::queue
