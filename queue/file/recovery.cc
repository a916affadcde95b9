#include "queue/file/recovery.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cstdio>
#include <functional>
#include <map>
#include <span>
#include <utility>

namespace conversed::queue {
namespace {

constexpr std::size_t name_digits = 12;
constexpr std::size_t scanned_slice_bytes = std::size_t{1} << 20;
constexpr std::size_t compared_slice_bytes = std::size_t{1} << 16;

struct SizedFile {
  std::shared_ptr<File> file;
  std::uint64_t bytes = 0;
};
using Files = std::map<std::uint64_t, SizedFile>;

tl::unexpected<Error> damaged(std::uint64_t segment, std::uint64_t at, const std::string& why) {
  return model::fail(Errc::internal, "The log is damaged: log/" + segment_name(segment) +
                                         ", byte " + std::to_string(at) + ": " + why +
                                         ". Acknowledged events are lost. Restore a backup, or "
                                         "move log/ away and run `conversed new-epoch`");
}

tl::unexpected<Error> newer_format(std::uint64_t format) {
  return model::fail(Errc::not_supported,
                     "The log has format " + std::to_string(format) +
                         ", made by a newer version of this program; this one knows " +
                         std::to_string(log_format) + ".");
}

Result<Files> open_all(Disk& disk) {
  const auto names = disk.names();
  if (!names) return model::fail(names.error());
  Files files;
  for (const auto& name : *names) {
    const auto number = segment_number(name);
    if (!number) continue;
    auto file = disk.open(name);
    if (!file) return model::fail(file.error());
    const auto bytes = (*file)->size();
    if (!bytes) return model::fail(bytes.error());
    files[*number] = {*std::move(file), *bytes};
  }
  return files;
}

using EachFrame = std::function<bool(const Frame& frame, std::uint64_t at)>;
struct Walked {
  std::uint64_t end = 0;       // of the last good frame
  std::uint32_t checksum = 0;  // its own
};

// Calls `each` for the frames of a segment until one is bad, or `each` returns false.
Result<Walked> walk(const File& file, std::uint64_t segment, std::uint64_t to,
                    const EachFrame& each) {
  FrameReader reader(file, 0, to, scanned_slice_bytes);
  Walked walked;
  for (;;) {
    auto frame = reader.next();
    if (!frame) return model::fail(frame.error());
    if (!*frame || (*frame)->before != walked.checksum || !is_whole(**frame, segment) ||
        !each(**frame, reader.at())) {
      return walked;
    }
    walked = {reader.end(), (*frame)->checksum};
  }
}

// The state that the segment's first batch has; nothing if the file is no segment of this number.
Result<std::optional<LogMarks>> opening(const SizedFile& file, std::uint64_t segment) {
  FrameReader reader(*file.file, 0, file.bytes, scanned_slice_bytes);
  auto frame = reader.next();
  if (!frame) return model::fail(frame.error());
  if (!*frame || (*frame)->kind != FrameKind::state || (*frame)->before != 0 ||
      !is_whole(**frame, segment)) {
    return std::nullopt;
  }
  if (const auto format = format_of((*frame)->payload); format != log_format) {
    return newer_format(format);
  }
  return state_in((*frame)->payload);
}

// The end of the content: only zeros are behind it. One slice of zeros counts as content, since
// frames may end with zeros.
Result<std::uint64_t> end_of_content(const SizedFile& file, std::uint64_t from) {
  static const std::string zeros(compared_slice_bytes, '\0');
  std::string slice(compared_slice_bytes, '\0');
  for (std::uint64_t to = file.bytes; to > from;) {
    const std::uint64_t size = std::min<std::uint64_t>(to - from, slice.size());
    const auto read = file.file->read_into(to - size, std::span(slice).first(size));
    if (!read) return model::fail(read.error());
    if (std::string_view(slice).substr(0, *read) != std::string_view(zeros).substr(0, *read)) {
      return std::min<std::uint64_t>(to + slice.size(), file.bytes);
    }
    to -= size;
  }
  return from;
}

// The highest end in this segment that a batch behind `from` names, or 0.
Result<std::uint64_t> named_end(const SizedFile& file, std::uint64_t segment, std::uint64_t from) {
  const auto end = end_of_content(file, from);
  if (!end) return model::fail(end.error());
  const auto bytes = file.file->read(from, *end - from);
  if (!bytes) return model::fail(bytes.error());
  std::uint64_t highest = 0;
  for (std::size_t at = 0; at < bytes->size(); at += 8) {
    const auto frame = frame_in(std::string_view(*bytes).substr(at));
    if (!frame || frame->kind != FrameKind::state || !is_whole(*frame, segment)) continue;
    const auto marks = state_in(frame->payload);
    if (marks && marks->end.segment == segment) highest = std::max(highest, marks->end.at);
  }
  return highest;
}

// Reads a log's files into `log_`.
class Recovery {
 public:
  explicit Recovery(Files files) : files_(std::move(files)) {}

  Result<RecoveredLog> run() {
    if (!files_.empty()) log_.highest = files_.rbegin()->first;
    if (auto found = find_newest(); !found) return model::fail(found.error());
    if (newest_ != 0) {
      if (auto read = read_newest(); !read) return model::fail(read.error());
      if (auto read = read_older(); !read) return model::fail(read.error());
      if (auto read = read_records(); !read) return model::fail(read.error());
    }
    for (auto& [number, file] : files_) {
      log_.spares.push_back({number, std::move(file.file), file.bytes});
    }
    return std::move(log_);
  }

 private:
  // Finds the newest segment with a batch. A file with a higher number was to become a segment, but
  // its first batch did not become durable.
  Result<void> find_newest() {
    for (auto file = files_.rbegin(); file != files_.rend(); ++file) {
      auto began = opening(file->second, file->first);
      if (!began) return model::fail(began.error());
      if (*began) {
        newest_ = file->first;
        opened_[newest_] = **std::move(began);
        return {};
      }
      const auto named = named_end(file->second, file->first, 0);
      if (!named) return model::fail(named.error());
      if (*named > 0) return damaged(file->first, 0, "the file has lost its beginning");
    }
    return {};
  }

  // The state at the end of the log, from the newest segment alone.
  Result<void> read_newest() {
    const SizedFile& file = files_.at(newest_);
    Result<void> refused;
    const auto walked =
        walk(*file.file, newest_, file.bytes, [&](const Frame& frame, std::uint64_t at) {
          if (frame.kind != FrameKind::state) return true;
          auto marks = state_in(frame.payload);
          if (!marks) {
            refused = format_of(frame.payload) == log_format
                          ? damaged(newest_, at, "a state is damaged")
                          : newer_format(format_of(frame.payload));
            return false;
          }
          log_.marks = *std::move(marks);
          log_.last_batch = at;
          return true;
        });
    if (!walked) return model::fail(walked.error());
    if (!refused) return refused;
    const auto head = log_.marks.head;
    if (head == 0 || head > newest_ ||
        log_.marks.partitions.size() != opened_.at(newest_).partitions.size()) {
      return damaged(newest_, log_.last_batch, "a state is damaged");
    }
    const auto named = named_end(file, newest_, walked->end);
    if (!named) return model::fail(named.error());
    if (*named > walked->end) return damaged(newest_, walked->end, "a record is damaged");
    log_.marks.end = {newest_, walked->end};
    log_.checksum = walked->checksum;
    return {};
  }

  // Finds the segments in use: each one names the end of the one before.
  Result<void> read_older() {
    std::uint64_t number = newest_;
    std::uint64_t end = log_.marks.end.at;
    for (;;) {
      LogMarks& began = opened_.at(number);
      const auto& [file, bytes] = files_.at(number);
      auto segment = std::make_shared<Segment>(Segment{number, file, bytes, {}, end});
      for (const auto& range : began.partitions) segment->first.push_back(range.end);
      log_.segments.push_front(std::move(segment));
      files_.erase(number);
      if (number <= log_.marks.head) return {};
      number = began.end.segment;
      end = began.end.at;
      if (!files_.contains(number)) return damaged(number, 0, "the file is missing");
      auto before = opening(files_.at(number), number);
      if (!before) return model::fail(before.error());
      if (!*before || (*before)->partitions.size() != log_.marks.partitions.size()) {
        return damaged(number, 0, "the file has lost its beginning");
      }
      opened_[number] = **std::move(before);
    }
  }

  // The places of the records, the ends of the partitions, and the keys.
  Result<void> read_records() {
    for (const auto& segment : log_.segments) {
      const auto walked =
          walk(*segment->file, segment->number, segment->end,
               [&](const Frame& frame, std::uint64_t at) { return take(*segment, frame, at); });
      if (!walked) return model::fail(walked.error());
      const auto named = named_end({segment->file, segment->bytes}, segment->number, segment->end);
      if (!named) return model::fail(named.error());
      if (walked->end != segment->end || *named > segment->end) {
        return damaged(segment->number, walked->end, "a record is damaged");
      }
    }
    return {};
  }

  bool take(Segment& segment, const Frame& frame, std::uint64_t at) {
    const Place place{segment.number, at};
    if (frame.kind == FrameKind::key) {
      auto key = key_in(frame.payload);
      if (key) key_ = PlacedKey{*std::move(key), place};
      return key_.has_value();
    }
    // A key counts only with its record: a batch may have been cut between the two.
    if (auto key = std::exchange(key_, std::nullopt);
        key && frame.kind != FrameKind::state && place >= log_.marks.keys) {
      log_.keys.push_back(*std::move(key));
    }
    if (frame.kind != FrameKind::record) return true;
    const auto position = position_in(frame.payload);
    if (!position) return false;
    const auto partition = static_cast<std::size_t>(position->partition);
    if (partition >= log_.marks.partitions.size()) return false;
    segment.mark(*position, at);
    auto& end = log_.marks.partitions[partition].end;
    end = std::max(end, position->offset + 1);
    return true;
  }

  Files files_;
  RecoveredLog log_;
  std::uint64_t newest_ = 0;
  std::map<std::uint64_t, LogMarks> opened_;
  std::optional<PlacedKey> key_;
};

}  // namespace

std::string segment_name(std::uint64_t number) {
  const std::string digits = std::to_string(number);
  return std::string(name_digits - std::min(name_digits, digits.size()), '0') + digits;
}

std::optional<std::uint64_t> segment_number(std::string_view name) {
  std::uint64_t number = 0;
  const auto [end, error] = std::from_chars(name.data(), name.data() + name.size(), number);
  if (error != std::errc() || number == 0 || name.size() != name_digits ||
      segment_name(number) != name) {
    return std::nullopt;
  }
  return number;
}

Result<bool> was_used(const std::filesystem::path& folder) {
  auto disk = open_disk(folder);
  if (!disk) return model::fail(disk.error());
  const auto log = recover(**disk);
  if (!log) return model::fail(log.error());
  const LogMarks& marks = log->marks;
  if (marks.partitions.empty()) return false;  // there is no log
  const auto has_had_records = [](const PartitionRange& range) { return range.end > 0; };
  return marks.epochs.back().epoch > 1 || std::ranges::any_of(marks.partitions, has_had_records);
}

Result<void> check_log(const std::filesystem::path& folder) {
  auto disk = open_disk(folder);
  if (!disk) return model::fail(disk.error());
  return recover(**disk).map([](const RecoveredLog&) {});
}

Result<RecoveredLog> recover(Disk& disk) {
  auto files = open_all(disk);
  if (!files) return model::fail(files.error());
  return Recovery(*std::move(files)).run();
}

}  // namespace conversed::queue
