#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <memory>
#include <mutex>
#include <optional>
#include <utility>
#include <vector>

#include "queue/file/frame.h"
#include "queue/log.h"

namespace conversed::queue {

// One file of the log. `LogState` guards `end` and the marks once the segment is published.
struct Segment {
  std::uint64_t number = 0;
  std::shared_ptr<File> file;
  std::uint64_t bytes = 0;            // the size of the file
  std::vector<std::int64_t> first{};  // by partition: the end of the partition when it was begun
  std::uint64_t end = 0;              // of its last frame; all its frames are durable

  // By partition: offsets and places of some records, ascending.
  std::vector<std::vector<std::pair<std::int64_t, std::uint64_t>>> marks{};

  // Remembers the place of a record, unless an earlier one of its partition is near.
  void mark(const Position& at, std::uint64_t place);
  // From where to look for the record.
  [[nodiscard]] std::uint64_t near(const Position& at) const;
};

// A durable part of a segment. Its file is not used again while the Piece exists.
struct Piece {
  std::shared_ptr<const Segment> segment;
  std::uint64_t from = 0;
  std::uint64_t to = 0;
};

// A record that has become durable, and the place of its frame.
struct PlacedRecord {
  LogRecord record;
  Place place;
};

// The state that the log's thread and its readers share: the segments in use, the offsets of each
// partition, and the tail of durable records that the consumer has not taken yet. A tail that would
// go beyond its bounds is dropped: the consumer reads these records from the files, before the
// records that the tail gathers next. Thread-safe.
class LogState {
 public:
  struct TailBounds {
    std::size_t records;
    std::size_t bytes;
  };
  using Segments = std::deque<std::shared_ptr<Segment>>;
  LogState(LogMarks marks, Segments segments, TailBounds bounds);

  // For the writer, after a batch: the new state, the segment that holds the batch, and its records
  // in the order of the log. Returns the segments that are out of use from now on.
  [[nodiscard]] Segments publish(const LogMarks& marks, const std::shared_ptr<Segment>& segment,
                                 std::vector<PlacedRecord> records);

  [[nodiscard]] std::vector<PartitionRange> ranges() const;

  // The durable frames from `at` up to `until`, as far as they are in one segment. Moves `at` to
  // their beginning. Nothing: no frame is left.
  [[nodiscard]] std::optional<Piece> piece(Place& at, Place until) const;
  // All of them, oldest first.
  [[nodiscard]] std::vector<Piece> pieces() const;
  // The segment in use behind the one of this number.
  [[nodiscard]] std::shared_ptr<const Segment> behind(std::uint64_t number) const;
  // The frames that contain the record.
  [[nodiscard]] std::optional<Piece> around(const Position& at) const;

  // For the consumer. There is one at a time: `attach` is false while another one is attached.
  bool attach();
  void detach();

  // Takes records from memory. `file`: the records have to be read from the files first, and `took`
  // has to follow. Neither: the time is up, or `wake` was called.
  struct FileRead {
    Place at;
    Place until;
    std::vector<std::int64_t> next;  // by partition: records below this offset are skipped
  };
  struct Take {
    std::vector<LogRecord> records;
    std::optional<FileRead> file;
  };
  [[nodiscard]] Take take(std::size_t max, std::chrono::milliseconds wait);
  // Fills in the epochs of records that were read from the files, and counts them as handed out.
  void took(std::vector<LogRecord>& records, Place read_to);

  // Removes the positions from `finished` that are not above the committed ones. `conflict` as
  // Consumer::commit.
  [[nodiscard]] Result<void> check_finished(std::vector<Position>& finished) const;

  void wake();

 private:
  struct Partition {
    PartitionRange range;
    std::int64_t next = 0;  // to hand out
  };
  [[nodiscard]] const Partition& partition_at(const Position& at) const {
    return partitions_[static_cast<std::size_t>(at.partition)];
  }
  [[nodiscard]] std::int64_t epoch_of(const Position& at) const;
  [[nodiscard]] bool readable() const;
  void hand_out(const Position& at);
  void add_to_tail(std::vector<PlacedRecord> records);
  void set_ranges();

  const TailBounds bounds_;
  mutable std::mutex mutex_;
  std::condition_variable changed_;
  LogMarks marks_;
  Segments segments_;
  std::vector<Partition> partitions_;
  // Records before `tail_begin_` are read from the files; `cursor_` is behind it once all are read.
  Place cursor_;
  Place tail_begin_;
  std::deque<PlacedRecord> tail_;
  std::size_t tail_bytes_ = 0;
  bool attached_ = false;
  bool woken_ = false;
};

}  // namespace conversed::queue
