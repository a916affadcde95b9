#include "queue/sqlite/sqlite_log_state.h"

#include <algorithm>
#include <utility>

namespace conversed::queue {

SqliteLogState::SqliteLogState(LogMarks marks, TailBounds bounds)
    : bounds_(bounds), epochs_(std::move(marks.epochs)) {
  for (const auto& range : marks.partitions) partitions_.emplace_back().range = range;
}

void SqliteLogState::publish(const LogMarks& marks, std::vector<LogRecord> records) {
  {
    const std::lock_guard lock(mutex_);
    epochs_ = marks.epochs;
    for (std::size_t at = 0; at < partitions_.size(); ++at) {
      partitions_[at].range = marks.partitions[at];
    }
    if (!attached_) return;
    for (auto& record : records) {
      tail_bytes_ += record.record.bytes();
      tail_.push_back(std::move(record));
    }
    if (tail_.size() > bounds_.records || tail_bytes_ > bounds_.bytes) drop_tail();
  }
  if (!records.empty()) changed_.notify_one();
}

void SqliteLogState::drop_tail() {
  tail_.clear();
  tail_bytes_ = 0;
  for (auto& partition : partitions_) partition.file_end = partition.range.end;
}

std::vector<PartitionRange> SqliteLogState::ranges() const {
  const std::lock_guard lock(mutex_);
  std::vector<PartitionRange> ranges;
  for (const auto& partition : partitions_) ranges.push_back(partition.range);
  return ranges;
}

bool SqliteLogState::attach() {
  const std::lock_guard lock(mutex_);
  if (attached_) return false;
  attached_ = true;
  woken_ = false;
  for (auto& partition : partitions_) partition.next = partition.range.committed;
  drop_tail();
  return true;
}

void SqliteLogState::detach() {
  const std::lock_guard lock(mutex_);
  attached_ = false;
  drop_tail();
}

SqliteLogState::Take SqliteLogState::take(std::size_t max, std::chrono::milliseconds wait) {
  Take out;
  std::unique_lock lock(mutex_);
  if (max == 0) return out;
  changed_.wait_for(lock, wait, [this] { return readable() || woken_; });
  woken_ = false;
  for (std::size_t seen = 0; seen < partitions_.size(); ++seen) {
    const Partition& partition = partitions_[turn_];
    turn_ = (turn_ + 1) % partitions_.size();
    if (partition.next >= partition.file_end) continue;
    out.file = {partition.range.partition, partition.next, partition.file_end};
    return out;
  }
  while (!tail_.empty() && out.records.size() < max) {
    out.records.push_back(std::move(tail_.front()));
    tail_.pop_front();
    const LogRecord& taken = out.records.back();
    tail_bytes_ -= taken.record.bytes();
    partition_at(taken.position).next = taken.position.offset + 1;
  }
  return out;
}

void SqliteLogState::took(std::vector<LogRecord>& records) {
  const std::lock_guard lock(mutex_);
  for (auto& record : records) {
    record.position.epoch = epoch_of(record.position.partition, record.position.offset);
  }
  if (records.empty()) return;
  const Position& last = records.back().position;
  partition_at(last).next = last.offset + 1;
}

Result<void> SqliteLogState::check_finished(std::vector<Position>& finished) {
  const std::lock_guard lock(mutex_);
  for (const auto& at : finished) {
    const bool known =
        at.partition >= 0 && static_cast<std::size_t>(at.partition) < partitions_.size();
    if (!known || at.offset < 0 || at.offset >= partition_at(at).next ||
        epoch_of(at.partition, at.offset) != at.epoch) {
      return model::fail(not_handed_out(at));
    }
  }
  std::erase_if(finished,
                [&](const Position& at) { return at.offset < partition_at(at).range.committed; });
  return {};
}

void SqliteLogState::wake() {
  {
    const std::lock_guard lock(mutex_);
    woken_ = true;
  }
  changed_.notify_one();
}

std::int64_t SqliteLogState::epoch_of(std::int32_t partition, std::int64_t offset) const {
  const auto epoch = std::find_if(epochs_.rbegin(), epochs_.rend(), [&](const EpochStart& start) {
    return offset >= start.first[static_cast<std::size_t>(partition)];
  });
  return epoch == epochs_.rend() ? epochs_.front().epoch : epoch->epoch;
}

bool SqliteLogState::readable() const {
  return std::ranges::any_of(
      partitions_, [](const Partition& partition) { return partition.next < partition.range.end; });
}

}  // namespace conversed::queue
