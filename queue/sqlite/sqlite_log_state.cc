#include "queue/sqlite/sqlite_log_state.h"

#include <algorithm>
#include <string>
#include <utility>

namespace conversed::queue {

SqliteLogState::SqliteLogState(LogMarks marks, TailBounds bounds)
    : bounds_{std::max<std::size_t>(bounds.records / marks.partitions.size(), 1),
              std::max<std::size_t>(bounds.bytes / marks.partitions.size(), 1)},
      epochs_(std::move(marks.epochs)) {
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
      Partition& partition = partitions_[static_cast<std::size_t>(record.position.partition)];
      partition.tail_bytes += record.record.bytes();
      partition.tail.push_back(std::move(record));
      // The oldest go first. A consumer that is behind reads the file from there on, in order, and
      // meets the tail where it begins.
      while (partition.tail.size() > bounds_.records || partition.tail_bytes > bounds_.bytes) {
        partition.tail_bytes -= partition.tail.front().record.bytes();
        partition.tail.pop_front();
      }
    }
  }
  if (!records.empty()) changed_.notify_one();
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
  for (auto& partition : partitions_) {
    partition.next = partition.range.committed;
  }
  return true;
}

void SqliteLogState::detach() {
  const std::lock_guard lock(mutex_);
  attached_ = false;
  for (auto& partition : partitions_) {
    partition.tail.clear();
    partition.tail_bytes = 0;
  }
}

SqliteLogState::Take SqliteLogState::take(std::size_t max, std::chrono::milliseconds wait) {
  Take out;
  std::unique_lock lock(mutex_);
  if (max == 0) return out;
  changed_.wait_for(lock, wait, [this] { return readable() || woken_; });
  woken_ = false;
  for (std::size_t seen = 0; seen < partitions_.size() && out.records.size() < max; ++seen) {
    Partition& partition = partitions_[turn_];
    if (partition.next < partition.range.end) {
      const bool in_memory =
          !partition.tail.empty() && partition.tail.front().position.offset == partition.next;
      if (!in_memory && !out.records.empty()) return out;  // its turn comes first next time
      if (in_memory) {
        take_from(partition, max, out);
      } else {
        const std::int64_t to =
            partition.tail.empty() ? partition.range.end : partition.tail.front().position.offset;
        out.file = {partition.range.partition, partition.next, to};
      }
    }
    turn_ = (turn_ + 1) % partitions_.size();
    if (out.file) return out;
  }
  return out;
}

void SqliteLogState::take_from(Partition& partition, std::size_t max, Take& out) {
  while (!partition.tail.empty() && out.records.size() < max) {
    partition.tail_bytes -= partition.tail.front().record.bytes();
    out.records.push_back(std::move(partition.tail.front()));
    partition.tail.pop_front();
  }
  partition.next = out.records.back().position.offset + 1;
}

void SqliteLogState::took(std::vector<LogRecord>& records) {
  const std::lock_guard lock(mutex_);
  for (auto& record : records) {
    record.position.epoch = epoch_of(record.position.partition, record.position.offset);
  }
  if (records.empty()) return;
  const Position& last = records.back().position;
  partitions_[static_cast<std::size_t>(last.partition)].next = last.offset + 1;
}

Result<void> SqliteLogState::check_finished(std::vector<Position>& finished) const {
  const std::lock_guard lock(mutex_);
  for (const auto& position : finished) {
    const bool handed_out =
        known(position.partition) && position.offset >= 0 &&
        position.offset < partitions_[static_cast<std::size_t>(position.partition)].next;
    if (!handed_out || epoch_of(position.partition, position.offset) != position.epoch) {
      return model::fail(Errc::conflict, "No record was handed out at epoch " +
                                             std::to_string(position.epoch) + ", partition " +
                                             std::to_string(position.partition) + ", offset " +
                                             std::to_string(position.offset) + ".");
    }
  }
  std::erase_if(finished, [&](const Position& position) {
    const auto& range = partitions_[static_cast<std::size_t>(position.partition)].range;
    return position.offset < range.committed;
  });
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

bool SqliteLogState::known(std::int32_t partition) const {
  return partition >= 0 && static_cast<std::size_t>(partition) < partitions_.size();
}

}  // namespace conversed::queue
