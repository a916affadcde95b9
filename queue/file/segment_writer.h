#pragma once

#include <cstdint>
#include <deque>
#include <functional>
#include <memory>
#include <vector>

#include "queue/file/log_state.h"
#include "queue/file/recovery.h"

namespace conversed::queue {

// The files of the log, for its thread: the segment that takes the next batch, and spare files,
// which were segments or will be. One thread at a time.
//
// A file becomes a segment by its name, which is durable before the first batch is written.
class SegmentWriter {
 public:
  // `disk` must outlive it.
  SegmentWriter(Disk& disk, std::uint64_t segment_bytes) : disk_(disk), bytes_(segment_bytes) {}

  // Goes on behind the recovered log, whose end it makes durable.
  [[nodiscard]] Result<void> open(RecoveredLog& log);

  // Makes room for a batch of so many bytes in the segment, or in a new one. In a new segment the
  // partitions begin at their ends in `partitions`. `unavailable`: nothing has changed.
  [[nodiscard]] Result<void> make_room(std::uint64_t bytes,
                                       const std::vector<PartitionRange>& partitions);
  // Where the next batch goes. There is room.
  [[nodiscard]] Place end() const { return {segment_->number, at_}; }
  [[nodiscard]] std::uint32_t checksum() const { return checksum_; }
  [[nodiscard]] const std::shared_ptr<Segment>& segment() const { return segment_; }

  // Writes a batch and makes it durable. After an error, `timed_out`, the segment takes no more.
  [[nodiscard]] Result<void> write(const BatchWriter& batch);

  // Makes the files of these segments spare. The segments are out of use, durably.
  void retire(LogState::Segments segments);

  // Overwrites a slice of bytes from earlier uses of the files: behind the frames of the segments
  // in use, from `at` on, or in spare files. Moves `at` behind the slice. False: all such bytes are
  // overwritten.
  [[nodiscard]] Result<bool> overwrite_rest(const LogState& log, Place& at);

 private:
  struct Spare {
    std::shared_ptr<Segment> segment;
    std::uint64_t overwritten = 0;
  };

  // Makes a segment spare again if it has no batch: room was made for a batch that was not written.
  void give_back();
  [[nodiscard]] Result<bool> overwrite_spares();
  [[nodiscard]] Result<std::shared_ptr<Segment>> take_spare(std::uint64_t bytes);
  [[nodiscard]] Result<std::shared_ptr<Segment>> create(std::uint64_t bytes);

  Disk& disk_;
  const std::uint64_t bytes_;
  std::uint64_t highest_ = 0;  // number of a file
  std::shared_ptr<Segment> segment_;
  std::uint64_t at_ = 0;
  std::uint32_t checksum_ = 0;
  std::deque<Spare> spares_;
};

// Frames are erased in two passes: a frame is marked, durably, before its payload becomes zeros. So
// a crash in between leaves no frame that looks damaged.
enum class Erase : std::uint8_t { mark, wipe };
// Marks the frames that `meant` accepts in a slice of the log, or wipes the marked ones, durably.
// Repeats this for frames that an earlier call has erased, because its sync may have failed. Moves
// `at` behind the slice. False: `at` has reached `until`. For the log's thread.
[[nodiscard]] Result<bool> erase_slice(const LogState& log, Place& at, Place until, Erase how,
                                       const std::function<bool(const Frame&)>& meant);

// Copies the pieces into a new folder, durably. `go_on` is asked before each slice; false ends the
// copy. Errors: `unavailable`.
[[nodiscard]] Result<void> copy_pieces(const std::vector<Piece>& pieces,
                                       const std::filesystem::path& into,
                                       const std::function<bool()>& go_on);
// The same for a log to which no process writes.
[[nodiscard]] Result<void> copy_log(const std::filesystem::path& from,
                                    const std::filesystem::path& into,
                                    const std::function<bool()>& go_on);

}  // namespace conversed::queue
