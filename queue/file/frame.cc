#include "queue/file/frame.h"

#include <zlib.h>

#include <algorithm>
#include <cstring>

namespace conversed::queue {
namespace {

void put(std::string& to, std::uint64_t number) {
  while (number >= 0x80) {
    to += static_cast<char>(number | 0x80);
    number >>= 7;
  }
  to += static_cast<char>(number);
}

void put(std::string& to, std::int64_t number) {
  put(to, static_cast<std::uint64_t>(number));
}

void put(std::string& to, std::string_view text) {
  put(to, std::uint64_t{text.size()});
  to += text;
}

// Takes values from a payload. A missing value is 0 or empty, and makes the parser false.
class Parser {
 public:
  explicit Parser(std::string_view rest) : rest_(rest) {}
  explicit operator bool() const { return good_; }
  [[nodiscard]] bool at_end() const { return good_ && rest_.empty(); }

  std::uint64_t number() {
    std::uint64_t value = 0;
    for (int shift = 0; shift < 64 && !rest_.empty(); shift += 7) {
      const auto byte = static_cast<unsigned char>(rest_.front());
      rest_.remove_prefix(1);
      value |= std::uint64_t{byte & 0x7fU} << shift;
      if (byte < 0x80) return value;
    }
    good_ = false;
    return 0;
  }
  std::int64_t integer() { return static_cast<std::int64_t>(number()); }
  std::string_view text() {
    const std::uint64_t size = number();
    good_ = good_ && size <= rest_.size();
    if (!good_) return {};
    const auto text = rest_.substr(0, size);
    rest_.remove_prefix(size);
    return text;
  }
  Position position() {
    const std::uint64_t partition = number();
    const std::int64_t offset = integer();
    good_ = good_ && partition < max_partitions && offset >= 0 && offset < max_offset;
    return {0, static_cast<std::int32_t>(partition), offset};
  }

 private:
  std::string_view rest_;
  bool good_ = true;
};

// The numbers of a head, in the order of the format. Files are read where they were written: no
// byte order but the machine's own, little-endian, is supported.
struct Head {
  std::uint32_t kind;
  std::uint32_t length;
  std::uint32_t before;
  std::uint32_t checksum;
};
static_assert(sizeof(Head) == frame_head_bytes);

std::uint32_t checksum_of(std::uint64_t segment, std::uint32_t before, std::string_view payload) {
  const std::uint64_t seed[] = {segment, std::uint64_t{before} << 32 | payload.size()};
  const auto bytes = [](const void* of) { return static_cast<const Bytef*>(of); };
  const auto seeded = ::crc32_z(0, bytes(seed), sizeof seed);
  return static_cast<std::uint32_t>(::crc32_z(seeded, bytes(payload.data()), payload.size()));
}

bool is_kind(std::uint32_t kind) {
  const auto known = static_cast<FrameKind>(kind);
  return known == FrameKind::state || known == FrameKind::key || known == FrameKind::record ||
         known == FrameKind::erased;
}

}  // namespace

void BatchWriter::begin(std::uint64_t segment, std::uint32_t before) {
  bytes_.clear();
  segment_ = segment;
  checksum_ = before;
}

std::size_t BatchWriter::begin_frame() {
  const std::size_t began = bytes_.size();
  bytes_.append(frame_head_bytes, '\0');
  return began;
}

void BatchWriter::end_frame(FrameKind kind, std::size_t began) {
  const auto payload = std::string_view(bytes_).substr(began + frame_head_bytes);
  const Head head{static_cast<std::uint32_t>(kind), static_cast<std::uint32_t>(payload.size()),
                  checksum_, checksum_of(segment_, checksum_, payload)};
  checksum_ = head.checksum;
  std::memcpy(bytes_.data() + began, &head, sizeof head);
  bytes_.resize(began + frame_bytes(head.length));
}

void BatchWriter::put_state(std::uint64_t run, const LogMarks& marks) {
  const std::size_t began = begin_frame();
  for (const std::uint64_t number :
       {log_format, run, marks.end.segment, marks.end.at, marks.head, marks.keys.segment,
        marks.keys.at, std::uint64_t{marks.partitions.size()}}) {
    put(bytes_, number);
  }
  for (const auto& range : marks.partitions) {
    put(bytes_, range.committed);
    put(bytes_, range.end);
  }
  put(bytes_, std::uint64_t{marks.epochs.size()});
  for (const auto& start : marks.epochs) {
    put(bytes_, start.epoch);
    for (const auto first : start.first) put(bytes_, first);
  }
  end_frame(FrameKind::state, began);
}

void BatchWriter::put_key(const KeptKey& key) {
  const std::size_t began = begin_frame();
  put(bytes_, std::int64_t{key.position.partition});
  put(bytes_, key.position.offset);
  put(bytes_, key.position.epoch);
  put(bytes_, key.created_ms);
  for (const auto* text : {&key.body_hash, &key.scope, &key.key, &key.id, &key.record_key}) {
    put(bytes_, std::string_view(*text));
  }
  end_frame(FrameKind::key, began);
}

void BatchWriter::put_record(const Position& at, const Record& record) {
  const std::size_t began = begin_frame();
  put(bytes_, std::int64_t{at.partition});
  put(bytes_, at.offset);
  for (const auto* text :
       {&record.key, &record.id, &record.type, &record.trace_id, &record.value}) {
    put(bytes_, std::string_view(*text));
  }
  end_frame(FrameKind::record, began);
}

std::optional<std::uint64_t> frame_bytes_by_head(std::string_view head) {
  if (head.size() < frame_head_bytes) return std::nullopt;
  Head fields{};
  std::memcpy(&fields, head.data(), sizeof fields);
  if (!is_kind(fields.kind)) return std::nullopt;
  return frame_bytes(fields.length);
}

std::optional<Frame> frame_in(std::string_view bytes) {
  const auto size = frame_bytes_by_head(bytes);
  if (!size || *size > bytes.size()) return std::nullopt;
  Head head{};
  std::memcpy(&head, bytes.data(), sizeof head);
  return Frame{static_cast<FrameKind>(head.kind), head.before, head.checksum,
               bytes.substr(frame_head_bytes, head.length)};
}

bool is_whole(const Frame& frame, std::uint64_t segment) {
  return frame.kind == FrameKind::erased ||
         frame.checksum == checksum_of(segment, frame.before, frame.payload);
}

std::uint64_t format_of(std::string_view state) {
  return Parser(state).number();
}

std::optional<LogMarks> state_in(std::string_view payload) {
  Parser parser(payload);
  if (parser.number() != log_format) return std::nullopt;
  parser.number();  // the run
  LogMarks marks;
  marks.end = {parser.number(), parser.number()};
  marks.head = parser.number();
  marks.keys = {parser.number(), parser.number()};
  const auto partitions = static_cast<std::int32_t>(std::min(parser.number(), max_partitions));
  for (std::int32_t number = 0; number < partitions; ++number) {
    const std::int64_t committed = parser.integer();
    const std::int64_t end = parser.integer();
    if (committed < 0 || committed > end || end > max_offset) return std::nullopt;
    marks.partitions.push_back({number, 0, 0, end, committed});
  }
  for (std::uint64_t left = parser.number(); left > 0 && parser; --left) {
    marks.epochs.push_back({parser.integer(), {}});
    for (std::int32_t of = 0; of < partitions; ++of) {
      marks.epochs.back().first.push_back(parser.integer());
    }
  }
  if (!parser.at_end() || marks.partitions.empty() || marks.epochs.empty()) return std::nullopt;
  return marks;
}

std::optional<KeptKey> key_in(std::string_view payload) {
  Parser parser(payload);
  KeptKey key;
  key.position = parser.position();
  key.position.epoch = parser.integer();
  key.created_ms = parser.integer();
  for (auto* text : {&key.body_hash, &key.scope, &key.key, &key.id, &key.record_key}) {
    *text = parser.text();
  }
  if (!parser.at_end()) return std::nullopt;
  return key;
}

std::optional<LogRecord> record_in(std::string_view payload) {
  Parser parser(payload);
  LogRecord read;
  read.position = parser.position();
  Record& record = read.record;
  for (auto* text : {&record.key, &record.id, &record.type, &record.trace_id, &record.value}) {
    *text = parser.text();
  }
  if (!parser.at_end()) return std::nullopt;
  return read;
}

std::optional<Position> position_in(std::string_view payload) {
  Parser parser(payload);
  const Position at = parser.position();
  if (!parser) return std::nullopt;
  return at;
}

Result<bool> FrameReader::fill(std::uint64_t bytes) {
  if (next_ + bytes > to_ || next_ + bytes < next_) return false;
  if (next_ >= slice_at_ && next_ + bytes <= slice_at_ + slice_.size()) return true;
  auto slice = file_.read(
      next_, std::max<std::uint64_t>(bytes, std::min<std::uint64_t>(slice_bytes_, to_ - next_)));
  if (!slice) return model::fail(slice.error());
  slice_ = *std::move(slice);
  slice_at_ = next_;
  return slice_.size() >= bytes;
}

Result<std::optional<Frame>> FrameReader::next() {
  at_ = next_;
  auto filled = fill(frame_head_bytes);
  if (!filled) return model::fail(filled.error());
  if (!*filled) return std::nullopt;
  const auto size = frame_bytes_by_head(std::string_view(slice_).substr(next_ - slice_at_));
  if (!size) return std::nullopt;
  filled = fill(*size);
  if (!filled) return model::fail(filled.error());
  if (!*filled) return std::nullopt;
  const auto frame = frame_in(std::string_view(slice_).substr(next_ - slice_at_, *size));
  next_ += *size;
  return frame;
}

}  // namespace conversed::queue
