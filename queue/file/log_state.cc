#include "queue/file/log_state.h"

#include <algorithm>

namespace conversed::queue {
namespace {

constexpr std::uint64_t bytes_between_marks = 16'384;

}  // namespace

void Segment::mark(const Position& at, std::uint64_t place) {
  if (marks.empty()) marks.resize(first.size());
  auto& known = marks[static_cast<std::size_t>(at.partition)];
  if (!known.empty() && place < known.back().second + bytes_between_marks) return;
  known.emplace_back(at.offset, place);
}

std::uint64_t Segment::near(const Position& at) const {
  if (marks.empty()) return end;
  const auto& known = marks[static_cast<std::size_t>(at.partition)];
  const auto behind =
      std::ranges::upper_bound(known, at.offset, {}, [](const auto& each) { return each.first; });
  return behind == known.begin() ? end : std::prev(behind)->second;
}

LogState::LogState(LogMarks marks, Segments segments, TailBounds bounds)
    : bounds_(bounds), marks_(std::move(marks)), segments_(std::move(segments)) {
  partitions_.resize(marks_.partitions.size());
  set_ranges();
}

void LogState::set_ranges() {
  for (std::size_t at = 0; at < partitions_.size(); ++at) {
    PartitionRange& range = partitions_[at].range;
    range = marks_.partitions[at];
    range.epoch = marks_.epochs.back().epoch;
    range.first = segments_.empty() ? range.end : segments_.front()->first[at];
  }
}

LogState::Segments LogState::publish(const LogMarks& marks, const std::shared_ptr<Segment>& segment,
                                     std::vector<PlacedRecord> records) {
  Segments out_of_use;
  const bool news = !records.empty();
  {
    const std::lock_guard lock(mutex_);
    marks_ = marks;
    if (segments_.empty() || segments_.back() != segment) segments_.push_back(segment);
    segment->end = marks.end.at;
    for (const auto& each : records) segment->mark(each.record.position, each.place.at);
    while (segments_.front()->number < marks.head) {
      out_of_use.push_back(std::move(segments_.front()));
      segments_.pop_front();
    }
    set_ranges();
    if (attached_) add_to_tail(std::move(records));
  }
  if (news) changed_.notify_one();
  return out_of_use;
}

void LogState::add_to_tail(std::vector<PlacedRecord> records) {
  for (auto& each : records) {
    tail_bytes_ += each.record.record.bytes();
    tail_.push_back(std::move(each));
  }
  if (tail_.size() <= bounds_.records && tail_bytes_ <= bounds_.bytes) return;
  if (cursor_ >= tail_begin_) cursor_ = tail_.front().place;
  tail_begin_ = marks_.end;
  tail_.clear();
  tail_bytes_ = 0;
}

std::vector<PartitionRange> LogState::ranges() const {
  const std::lock_guard lock(mutex_);
  std::vector<PartitionRange> ranges;
  for (const auto& partition : partitions_) ranges.push_back(partition.range);
  return ranges;
}

std::optional<Piece> LogState::piece(Place& at, Place until) const {
  const std::lock_guard lock(mutex_);
  for (const auto& segment : segments_) {
    if (segment->number < at.segment || segment->number > until.segment) continue;
    if (segment->number > at.segment) at = {segment->number, 0};
    const auto to =
        segment->number == until.segment ? std::min(until.at, segment->end) : segment->end;
    if (at.at < to) return Piece{segment, at.at, to};
  }
  return std::nullopt;
}

std::vector<Piece> LogState::pieces() const {
  const std::lock_guard lock(mutex_);
  std::vector<Piece> pieces;
  for (const auto& segment : segments_) pieces.push_back({segment, 0, segment->end});
  return pieces;
}

std::shared_ptr<const Segment> LogState::behind(std::uint64_t number) const {
  const std::lock_guard lock(mutex_);
  const auto next = std::ranges::find_if(
      segments_, [&](const auto& segment) { return segment->number > number; });
  return next == segments_.end() ? nullptr : *next;
}

std::optional<Piece> LogState::around(const Position& at) const {
  const std::lock_guard lock(mutex_);
  const auto partition = static_cast<std::size_t>(at.partition);
  if (at.partition < 0 || partition >= partitions_.size()) return std::nullopt;
  for (auto segment = segments_.rbegin(); segment != segments_.rend(); ++segment) {
    if ((*segment)->first[partition] > at.offset) continue;
    return Piece{*segment, (*segment)->near(at), (*segment)->end};
  }
  return std::nullopt;
}

bool LogState::attach() {
  const std::lock_guard lock(mutex_);
  if (attached_) return false;
  attached_ = true;
  woken_ = false;
  for (auto& partition : partitions_) partition.next = partition.range.committed;
  cursor_ = {marks_.head, 0};
  tail_begin_ = marks_.end;
  return true;
}

void LogState::detach() {
  const std::lock_guard lock(mutex_);
  attached_ = false;
  tail_.clear();
  tail_bytes_ = 0;
}

LogState::Take LogState::take(std::size_t max, std::chrono::milliseconds wait) {
  Take out;
  std::unique_lock lock(mutex_);
  if (max == 0) return out;
  changed_.wait_for(lock, wait, [this] { return readable() || woken_; });
  woken_ = false;
  if (!readable()) return out;
  if (cursor_ < tail_begin_) {
    out.file = {cursor_, tail_begin_, {}};
    for (const auto& partition : partitions_) out.file->next.push_back(partition.next);
    return out;
  }
  while (!tail_.empty() && out.records.size() < max) {
    PlacedRecord& taken = tail_.front();
    tail_bytes_ -= taken.record.record.bytes();
    hand_out(taken.record.position);
    out.records.push_back(std::move(taken.record));
    tail_.pop_front();
  }
  return out;
}

void LogState::took(std::vector<LogRecord>& records, Place read_to) {
  const std::lock_guard lock(mutex_);
  for (auto& record : records) {
    record.position.epoch = epoch_of(record.position);
    hand_out(record.position);
  }
  cursor_ = read_to;
}

void LogState::hand_out(const Position& at) {
  partitions_[static_cast<std::size_t>(at.partition)].next = at.offset + 1;
}

Result<void> LogState::check_finished(std::vector<Position>& finished) const {
  const std::lock_guard lock(mutex_);
  for (const auto& at : finished) {
    const bool known =
        at.partition >= 0 && static_cast<std::size_t>(at.partition) < partitions_.size();
    if (!known || at.offset < 0 || at.offset >= partition_at(at).next || epoch_of(at) != at.epoch) {
      return model::fail(not_handed_out(at));
    }
  }
  std::erase_if(finished,
                [&](const Position& at) { return at.offset < partition_at(at).range.committed; });
  return {};
}

void LogState::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

std::int64_t LogState::epoch_of(const Position& at) const {
  const auto& epochs = marks_.epochs;
  const auto epoch = std::find_if(epochs.rbegin(), epochs.rend(), [&](const EpochStart& start) {
    return at.offset >= start.first[static_cast<std::size_t>(at.partition)];
  });
  return epoch == epochs.rend() ? epochs.front().epoch : epoch->epoch;
}

bool LogState::readable() const {
  return std::ranges::any_of(
      partitions_, [](const Partition& partition) { return partition.next < partition.range.end; });
}

}  // namespace conversed::queue
