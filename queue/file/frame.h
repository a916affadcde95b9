#pragma once

#include <compare>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "queue/file/disk.h"
#include "queue/log.h"
#include "store/idempotency/kept_keys.h"

// The format of a segment: frames, one after the other, each on a multiple of 8 bytes.
//
//   kind     4 bytes
//   length   4 bytes, of the payload
//   before   4 bytes: the checksum of the frame before; 0 for the first one
//   checksum 4 bytes: CRC-32 of the segment's number, length, before and payload
//   payload  numbers in LEB128, texts behind their length; then zeros up to a multiple of 8
//
// The checksum has the segment's number, so the bytes of an earlier use of a file are never frames.
// An erased frame keeps its head and has zeros as payload.
namespace conversed::queue {

using store::KeptKey;

// The bytes of a kind are not UTF-8, unlike the texts of users. So a start that looks behind damage
// for the state of a later batch does not find one in a text.
enum class FrameKind : std::uint32_t {
  state = 0x61'74'53'c1,  // begins each batch: see LogMarks
  key = 0x79'65'4b'c2,    // of the record behind it
  record = 0x63'65'52'c3,
  erased = 0x3e'9a'c1'24,
};

struct Frame {
  FrameKind kind{};
  std::uint32_t before = 0;
  std::uint32_t checksum = 0;
  std::string_view payload;
};

inline constexpr std::uint64_t log_format = 1;
inline constexpr std::size_t frame_head_bytes = 16;
inline constexpr std::uint64_t max_partitions = 1'024;
inline constexpr std::int64_t max_offset = std::int64_t{1} << 62;
[[nodiscard]] constexpr std::uint64_t frame_bytes(std::uint64_t payload) {
  return frame_head_bytes + (payload + 7) / 8 * 8;
}

// A place in the log: the number of a segment, and a byte in it.
struct Place {
  std::uint64_t segment = 0;
  std::uint64_t at = 0;
  auto operator<=>(const Place&) const = default;  // NOLINT(modernize-use-nullptr)
};

// From which offset on each partition's records belong to an epoch.
struct EpochStart {
  std::int64_t epoch = 0;
  std::vector<std::int64_t> first;  // by partition
};

// The state of the log besides its records and keys. Each batch begins with it.
struct LogMarks {
  std::vector<PartitionRange> partitions;  // by number
  std::vector<EpochStart> epochs;          // ascending, never empty
  Place end;               // of the last batch that was durable when this one was written
  std::uint64_t head = 0;  // the number of the oldest segment in use
  Place keys;              // the store has all keys before it
};

// Writes the frames of one batch. One thread at a time.
class BatchWriter {
 public:
  // `before`: the checksum of the segment's last frame, or 0.
  void begin(std::uint64_t segment, std::uint32_t before);

  // `run` differs from start to start, so frames of a lost batch do not fit behind a later batch.
  void put_state(std::uint64_t run, const LogMarks& marks);
  void put_key(const KeptKey& key);
  void put_record(const Position& at, const Record& record);

  [[nodiscard]] const std::string& bytes() const { return bytes_; }
  [[nodiscard]] std::uint32_t checksum() const { return checksum_; }

 private:
  void end_frame(FrameKind kind, std::size_t began);
  [[nodiscard]] std::size_t begin_frame();

  std::string bytes_;
  std::uint64_t segment_ = 0;
  std::uint32_t checksum_ = 0;
};

// The frame at the beginning of `bytes`; nothing if there is no head of a frame, or not all of it.
// Its payload may be damaged.
[[nodiscard]] std::optional<Frame> frame_in(std::string_view bytes);
// The size of the frame with this head; nothing if the bytes are no head of a frame.
[[nodiscard]] std::optional<std::uint64_t> frame_bytes_by_head(std::string_view head);
// Whether the frame is as it was written in this segment, or was erased since.
[[nodiscard]] bool is_whole(const Frame& frame, std::uint64_t segment);

// These read payloads of whole frames. Nothing: the payload is of another kind, or damaged.
[[nodiscard]] std::uint64_t format_of(std::string_view state);
[[nodiscard]] std::optional<LogMarks> state_in(std::string_view payload);
[[nodiscard]] std::optional<KeptKey> key_in(std::string_view payload);
[[nodiscard]] std::optional<LogRecord> record_in(std::string_view payload);  // epoch 0
[[nodiscard]] std::optional<Position> position_in(std::string_view payload);

// Reads the frames of a segment in their order. One thread at a time.
class FrameReader {
 public:
  // `file` must outlive it. Reads frames that end at `to` or before.
  FrameReader(const File& file, std::uint64_t from, std::uint64_t to, std::size_t slice_bytes)
      : file_(file), next_(from), to_(to), slice_bytes_(slice_bytes) {}

  // The next frame, until the next call; nothing at the end or where no frame begins.
  [[nodiscard]] Result<std::optional<Frame>> next();
  [[nodiscard]] std::uint64_t at() const { return at_; }     // the place of the last frame
  [[nodiscard]] std::uint64_t end() const { return next_; }  // behind it

 private:
  // Makes `bytes` from `next_` on available; false if there are not as many.
  [[nodiscard]] Result<bool> fill(std::uint64_t bytes);

  const File& file_;
  std::uint64_t at_ = 0;
  std::uint64_t next_;
  const std::uint64_t to_;
  const std::size_t slice_bytes_;
  std::uint64_t slice_at_ = 0;
  std::string slice_;
};

}  // namespace conversed::queue
