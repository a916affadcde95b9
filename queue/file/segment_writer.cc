#include "queue/file/segment_writer.h"

#include <algorithm>
#include <string>
#include <utility>

namespace conversed::queue {
namespace {

constexpr std::uint64_t written_slice_bytes = std::uint64_t{1} << 20;
constexpr std::uint64_t erased_slice_bytes = std::uint64_t{1} << 18;

Result<void> overwrite(File& file, std::uint64_t from, std::uint64_t to) {
  const std::string zeros(std::min(written_slice_bytes, to - from), '\0');
  for (; from < to; from += zeros.size()) {
    const auto size = std::min<std::uint64_t>(zeros.size(), to - from);
    auto done = file.write(from, std::string_view(zeros).substr(0, size));
    if (!done) return done;
  }
  return file.sync();
}

// Extends the file to `bytes`, unless the disk is full.
Result<void> extend(Segment& segment, std::uint64_t bytes) {
  static_cast<void>(segment.file->reserve(bytes));
  const auto size = segment.file->size();
  if (!size) return model::fail(size.error());
  segment.bytes = *size;
  return {};
}

}  // namespace

Result<void> SegmentWriter::open(RecoveredLog& log) {
  // A file that a killed process has removed must not come back as the newest segment.
  if (auto named = disk_.sync(); !named) return named;
  highest_ = log.highest;
  for (auto& spare : log.spares) {
    if (auto extended = extend(spare, bytes_); !extended) return extended;
    spares_.push_back({std::make_shared<Segment>(std::move(spare))});
  }
  if (log.segments.empty()) return {};
  segment_ = log.segments.back();
  at_ = segment_->end;
  checksum_ = log.checksum;
  // A copy is shorter than a segment. On a full disk it stays so.
  if (auto extended = extend(*segment_, bytes_); !extended) return extended;
  // A killed process may have left a batch that is in the file, but not on the disk. After a failed
  // sync, only another write brings the batch to the disk.
  auto batch = segment_->file->read(log.last_batch, at_ - log.last_batch);
  if (!batch) return model::fail(batch.error());
  if (auto done = segment_->file->write(log.last_batch, *batch); !done) return done;
  return segment_->file->sync();
}

Result<void> SegmentWriter::make_room(std::uint64_t bytes,
                                      const std::vector<PartitionRange>& partitions) {
  if (segment_ && at_ + bytes <= segment_->bytes) return {};
  give_back();
  auto next = take_spare(bytes);
  if (next && !*next) next = create(std::max(bytes, bytes_));
  if (!next) return model::fail(next.error());
  if (auto named = disk_.sync(); !named) {
    spares_.push_back({*next});
    return named;
  }
  segment_ = *std::move(next);
  for (const auto& range : partitions) segment_->first.push_back(range.end);
  at_ = 0;
  checksum_ = 0;
  return {};
}

Result<std::shared_ptr<Segment>> SegmentWriter::take_spare(std::uint64_t bytes) {
  const auto found = std::ranges::find_if(spares_, [&](const Spare& spare) {
    return spare.segment->bytes >= std::max(bytes, bytes_) && spare.segment.use_count() == 1;
  });
  if (found == spares_.end()) return nullptr;
  const std::uint64_t number = highest_ + 1;
  auto renamed = disk_.rename(segment_name(found->segment->number), segment_name(number));
  if (!renamed) return model::fail(renamed.error());
  highest_ = number;
  // Opens the file again, so that its errors have the new name. If that fails, the open file of the
  // old name is good enough.
  const std::uint64_t size = found->segment->bytes;
  std::shared_ptr<File> file = std::move(found->segment->file);
  if (auto again = disk_.open(segment_name(number)); again) file = *std::move(again);
  spares_.erase(found);
  return std::make_shared<Segment>(Segment{number, std::move(file), size});
}

Result<std::shared_ptr<Segment>> SegmentWriter::create(std::uint64_t bytes) {
  const std::string name = segment_name(highest_ + 1);
  auto file = disk_.create(name);
  if (!file) return model::fail(file.error());
  ++highest_;
  auto reserved = (*file)->reserve(bytes);
  // A sync of blocks that were never written takes twice as long.
  if (reserved) reserved = overwrite(**file, 0, bytes);
  if (!reserved) {
    static_cast<void>(disk_.remove(name));
    return model::fail(reserved.error());
  }
  return std::make_shared<Segment>(Segment{highest_, *std::move(file), bytes});
}

Result<void> SegmentWriter::write(const BatchWriter& batch) {
  auto done = segment_->file->write(at_, batch.bytes());
  if (done) done = segment_->file->sync();
  if (!done) {
    // From now on the file may read differently from the disk.
    if (at_ == 0) static_cast<void>(disk_.remove(segment_name(segment_->number)));
    segment_.reset();
    return model::fail(Errc::timed_out, done.error().message);
  }
  at_ += batch.bytes().size();
  checksum_ = batch.checksum();
  return {};
}

void SegmentWriter::give_back() {
  if (segment_ && at_ == 0) spares_.push_back({std::exchange(segment_, nullptr)});
}

void SegmentWriter::retire(LogState::Segments segments) {
  for (auto& segment : segments) spares_.push_back({std::move(segment)});
}

Result<bool> SegmentWriter::overwrite_rest(const LogState& log, Place& at) {
  give_back();
  for (const auto& piece : log.pieces()) {
    const std::uint64_t number = piece.segment->number;
    if (number < at.segment) continue;
    const auto from = std::max(piece.to, number == at.segment ? at.at : 0);
    const auto to = std::min(from + written_slice_bytes, piece.segment->bytes);
    if (from >= to) continue;
    at = {number, to};
    return overwrite(*piece.segment->file, from, to).map([] { return true; });
  }
  return overwrite_spares();
}

Result<bool> SegmentWriter::overwrite_spares() {
  const auto dirty = std::ranges::find_if(
      spares_, [](const Spare& spare) { return spare.overwritten < spare.segment->bytes; });
  if (dirty == spares_.end()) return false;
  if (dirty->segment.use_count() > 1) return true;  // a reader has it for a moment
  const auto to = std::min(dirty->overwritten + written_slice_bytes, dirty->segment->bytes);
  auto done = overwrite(*dirty->segment->file, dirty->overwritten, to);
  dirty->overwritten = done ? to : dirty->overwritten;
  return done.map([] { return true; });
}

Result<bool> erase_slice(const LogState& log, Place& at, Place until, Erase how,
                         const std::function<bool(const Frame&)>& meant) {
  const auto piece = log.piece(at, until);
  if (!piece) return false;
  File& file = *piece->segment->file;
  FrameReader reader(file, piece->from, piece->to, erased_slice_bytes);
  bool written = false;
  while (reader.end() < std::min(piece->to, piece->from + erased_slice_bytes)) {
    const auto frame = reader.next();
    if (!frame) return model::fail(frame.error());
    if (!*frame || !is_whole(**frame, piece->segment->number)) {
      return model::fail(Errc::unavailable, "The log is damaged: a record can't be read.");
    }
    const auto erased = FrameKind::erased;
    if ((*frame)->kind != erased && (how == Erase::wipe || !meant(**frame))) continue;
    auto done =
        how == Erase::mark
            ? file.write(reader.at(), {reinterpret_cast<const char*>(&erased), sizeof erased})
            : file.write(reader.at() + frame_head_bytes,
                         std::string((*frame)->payload.size(), '\0'));
    if (!done) return model::fail(done.error());
    written = true;
  }
  at.at = reader.end();
  if (!written) return true;
  return file.sync().map([] { return true; });
}

Result<void> copy_pieces(const std::vector<Piece>& pieces, const std::filesystem::path& into,
                         const std::function<bool()>& go_on) {
  auto disk = open_disk(into);
  if (!disk) return model::fail(disk.error());
  for (const auto& piece : pieces) {
    auto copy = (*disk)->create(segment_name(piece.segment->number));
    if (!copy) return model::fail(copy.error());
    for (std::uint64_t at = piece.from; at < piece.to; at += written_slice_bytes) {
      if (!go_on()) return model::fail(Errc::unavailable, "the copy of the log was ended");
      auto bytes = piece.segment->file->read(at, std::min(written_slice_bytes, piece.to - at));
      if (!bytes) return model::fail(bytes.error());
      if (bytes->size() < std::min(written_slice_bytes, piece.to - at)) {
        return model::fail(Errc::unavailable, "a file of the log is shorter than the log");
      }
      if (auto done = (*copy)->write(at, *bytes); !done) return done;
    }
    if (auto done = (*copy)->sync(); !done) return done;
  }
  return (*disk)->sync();
}

Result<void> copy_log(const std::filesystem::path& from, const std::filesystem::path& into,
                      const std::function<bool()>& go_on) {
  auto disk = open_disk(from);
  if (!disk) return model::fail(disk.error());
  const auto log = recover(**disk);
  if (!log) return model::fail(log.error());
  std::vector<Piece> pieces;
  for (const auto& segment : log->segments) pieces.push_back({segment, 0, segment->end});
  return copy_pieces(pieces, into, go_on);
}

}  // namespace conversed::queue
