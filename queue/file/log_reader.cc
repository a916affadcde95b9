#include "queue/file/log_reader.h"

#include <functional>
#include <string>
#include <utility>

#include "queue/file/recovery.h"

namespace conversed::queue {
namespace {

constexpr std::size_t max_bytes_read_on = std::size_t{8} << 20;
constexpr std::size_t slice_bytes = 262'144;
constexpr std::size_t slice_around_bytes = 32'768;

tl::unexpected<Error> damaged(const Piece& piece, std::uint64_t at) {
  return model::fail(Errc::internal, "The log is damaged: log/" +
                                         segment_name(piece.segment->number) + ", byte " +
                                         std::to_string(at) + ": a record is damaged.");
}

// Whether to go on.
using EachRecord = std::function<bool(LogRecord record)>;

// Whether the frame was erased since it was read.
bool is_erased(const Piece& piece, std::uint64_t at) {
  FrameReader again(*piece.segment->file, at, piece.to, frame_head_bytes);
  const auto frame = again.next();
  return frame && *frame && (*frame)->kind == FrameKind::erased;
}

// Calls `each` for the piece's records that `wanted` accepts. Returns the place behind the last one
// that was read. Other records may be erased meanwhile.
Result<std::uint64_t> each_record(const Piece& piece, std::size_t slice,
                                  const std::function<bool(const Position&)>& wanted,
                                  const EachRecord& each) {
  FrameReader reader(*piece.segment->file, piece.from, piece.to, slice);
  while (reader.end() < piece.to) {
    const auto frame = reader.next();
    if (!frame) return model::fail(frame.error());
    if (!*frame) return damaged(piece, reader.at());
    if ((*frame)->kind != FrameKind::record) continue;
    const auto position = position_in((*frame)->payload);
    const auto partition = static_cast<std::size_t>(position ? position->partition : 0);
    if (position && partition < piece.segment->first.size() && !wanted(*position)) continue;
    auto record = record_in((*frame)->payload);
    if (!record || !is_whole(**frame, piece.segment->number)) {
      if (is_erased(piece, reader.at())) continue;
      return damaged(piece, reader.at());
    }
    if (!each(*std::move(record))) break;
  }
  return reader.end();
}

}  // namespace

Result<std::vector<LogRecord>> read_on(const LogState& log, LogState::FileRead& from,
                                       std::size_t max) {
  std::vector<LogRecord> records;
  std::size_t bytes = 0;
  const auto is_new = [&](const Position& at) {
    return at.offset >= from.next[static_cast<std::size_t>(at.partition)];
  };
  bool is_dense = true;
  const auto take = [&](LogRecord record) {
    auto& next = from.next[static_cast<std::size_t>(record.position.partition)];
    is_dense = record.position.offset == next++;
    bytes += record.record.bytes();
    records.push_back(std::move(record));
    return is_dense && records.size() < max && bytes < max_bytes_read_on;
  };
  while (records.size() < max && bytes < max_bytes_read_on) {
    const auto piece = log.piece(from.at, from.until);
    if (!piece) {
      from.at = from.until;
      break;
    }
    const auto end = each_record(*piece, slice_bytes, is_new, take);
    if (!end) return model::fail(end.error());
    if (!is_dense) return damaged(*piece, *end);
    from.at.at = *end;
  }
  return records;
}

Result<std::vector<LogRecord>> read_records(const LogState& log, std::span<const Position> at) {
  std::vector<LogRecord> records;
  for (const Position& position : at) {
    const std::size_t before = records.size();
    const auto is_it = [&](const Position& seen) {
      return seen.partition == position.partition && seen.offset == position.offset;
    };
    const auto take = [&](LogRecord record) {
      records.push_back({std::move(record.record), position});
      return false;
    };
    if (const auto piece = log.around(position); piece) {
      const auto read = each_record(*piece, slice_around_bytes, is_it, take);
      if (!read) return model::fail(read.error());
    }
    if (records.size() == before) {
      return model::fail(Errc::internal, "The log is damaged: a record is missing.");
    }
  }
  return records;
}

Result<std::int64_t> count_unfinished(const LogState& log, const KeyRange& keys) {
  std::int64_t count = 0;
  const auto ranges = log.ranges();
  const auto waits = [&](const Position& at) {
    return at.offset >= ranges[static_cast<std::size_t>(at.partition)].committed;
  };
  const auto meant = [&](const LogRecord& record) {
    count += keys.contains(record.record.key) ? 1 : 0;
    return true;
  };
  for (const Piece& piece : log.pieces()) {
    if (auto read = each_record(piece, slice_bytes, waits, meant); !read) {
      return model::fail(read.error());
    }
  }
  return count;
}

}  // namespace conversed::queue
