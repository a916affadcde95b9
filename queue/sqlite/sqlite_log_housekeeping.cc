// What the writer of the embedded log does between its commits: it prunes what is finished, clears
// what was erased, checkpoints, and tries whether a file that failed can be written again.
#include <sqlite3.h>

#include <algorithm>
#include <utility>

#include "queue/sqlite/sqlite_log_writer.h"
#include "store/runtime/fault_points.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

constexpr auto probe_interval = 500ms;       // while the file can't be written
constexpr auto tidy_after = 1'000ms;         // without appends
constexpr auto key_check_interval = 60s;     // without appends
constexpr std::int64_t prune_records = 512;  // a partition and transaction
constexpr std::int64_t prune_keys = 128;     // a round of housekeeping
constexpr auto empty_interval = 20ms;        // readers are inside for one statement
constexpr auto empty_within = 5s;

}  // namespace

std::optional<std::chrono::milliseconds> SqliteLogWriter::next_housekeeping() const {
  if (failing_) return probe_interval;
  if (purge_ == Purge::emptying && in_the_way_) return empty_interval;
  if (purge_ != Purge::none) return 0ms;
  if (more_to_prune_) return 0ms;
  if (!tidy_) return tidy_after;
  if (oldest_key_ms_) return key_check_interval;
  return std::nullopt;
}

Result<void> SqliteLogWriter::prune(Prune which, std::int64_t keys, std::int64_t now_ms) {
  more_to_prune_ = false;
  const bool held = [this] {
    const std::lock_guard lock(mutex_);
    return pruning_held_;
  }();
  held_back_ = held && std::ranges::any_of(marks_.partitions, [](const PartitionRange& range) {
                 return range.committed != range.first;
               });
  // Pruning pauses while a purge overwrites free pages: pages that become free meanwhile would add
  // to its work.
  const bool purging = purge_ != Purge::none && purge_ != Purge::pruning;
  for (std::size_t at = 0; at < marks_.partitions.size() && !held && !purging; ++at) {
    PartitionRange& range = marks_.partitions[at];
    const std::int64_t finished = range.committed - range.first;
    const std::int64_t upper = settings_.prune_after_records;
    pruning_partition_[at] = finished >= (pruning_partition_[at] ? upper / 2 + 1 : upper);
    if (finished == 0 || (which == Prune::due && !pruning_partition_[at])) continue;
    const std::int64_t to = range.first + std::min(finished, prune_records);
    const int code = file_->prune(range.partition, range.first, to);
    if (code != SQLITE_OK) return undone(code, "pruning records");
    range.first = to;
    more_to_prune_ |= to < range.committed;
  }
  const std::int64_t made_before_ms = now_ms - settings_.key_lifetime.count();
  if (keys > 0 && oldest_key_ms_ && *oldest_key_ms_ <= made_before_ms) {
    int code = file_->prune_keys(made_before_ms, keys);
    if (code == SQLITE_OK) code = file_->oldest_key(oldest_key_ms_);
    if (code != SQLITE_OK) return undone(code, "pruning keys");
    more_to_prune_ |= oldest_key_ms_ && *oldest_key_ms_ <= made_before_ms;
  }
  return {};
}

Result<void> SqliteLogWriter::prune_alone(std::int64_t keys) {
  auto pruned = Result<void>{};
  if (const int code = file_->begin(); code != SQLITE_OK) pruned = undone(code, "beginning");
  if (pruned) pruned = prune(Prune::all, keys, model::to_unix_ms(clock_.now()));
  if (pruned) {
    const int code = file_->commit();
    if (code != SQLITE_OK) pruned = undone(code, "committing");
  }
  if (!pruned) {
    file_->rollback();
    marks_ = durable_;
    return pruned;
  }
  durable_ = marks_;
  state_.publish(durable_, {});
  return {};
}

void SqliteLogWriter::purge_step() {
  std::int64_t left = 0;
  bool more = false;
  int code = SQLITE_OK;
  switch (purge_) {
    case Purge::none:
      return;
    case Purge::pruning: {
      auto pruned = prune_alone(prune_keys);
      if (pruned && held_back_) {
        pruned = model::fail(Errc::conflict, "A backup is being made; try again when it is done.");
      }
      if (!pruned) return end_purge(pruned);
      if (!more_to_prune_) purge_ = Purge::overwriting;
      return;
    }
    case Purge::overwriting:
      code = file_->overwrite_free(left);
      if (code == SQLITE_OK && left == 0) purge_ = Purge::releasing;
      break;
    case Purge::releasing:
      code = file_->release_overwritten(more);
      if (code != SQLITE_OK || more) break;
      if (purging_.empty()) return end_purge({});
      purge_ = Purge::emptying;
      empty_until_ = std::chrono::steady_clock::now() + empty_within;
      return;
    case Purge::emptying:
      code = file_->checkpoint(SqliteLogFile::Checkpoint::truncate);
      if (code == SQLITE_OK) return end_purge({});
      in_the_way_ = (code & 0xff) == SQLITE_BUSY;
      if (in_the_way_ && std::chrono::steady_clock::now() < empty_until_) return;
      break;
  }
  if (code != SQLITE_OK) return end_purge(undone(code, "clearing"));
  checkpoint_when_due();
}

void SqliteLogWriter::end_purge(const Result<void>& done) {
  // After a failure, the next one, or the next start, gives back what this one has taken.
  purge_ = Purge::none;
  in_the_way_ = false;
  tidy_ = false;
  for (auto& purge : std::exchange(purging_, {})) purge.set_value(done);
  if (done || done.error().code == Errc::conflict) return;
  const std::lock_guard lock(mutex_);
  if (!stopping_) return;
  for (auto& purge : std::exchange(purges_, {})) purge.set_value(done);
}

void SqliteLogWriter::housekeeping() {
  if (failing_) {
    if (const int code = file_->probe(); code != SQLITE_OK) {
      return note(undone(code, "trying to write").error());
    }
    failing_ = false;
    note(std::nullopt);
  }
  if (auto pruned = prune_alone(prune_keys); !pruned) {
    failing_ = true;
    more_to_prune_ = false;
    return note(pruned.error());
  }
  if (more_to_prune_) return;
  // If this fails it is tried again with the next commits; what was committed is safe either way.
  file_->checkpoint(SqliteLogFile::Checkpoint::passive);
  checkpoint_at_bytes_ = settings_.checkpoint_bytes;
  tidy_ = true;
}

void SqliteLogWriter::checkpoint_when_due() {
  const std::size_t bytes = file_->wal_bytes();
  if (bytes < checkpoint_at_bytes_) return;
  // Passive ones wait for nobody, but while a reader is inside, the log's file does not start
  // again from its front. Once it has grown a lot, insist; and when that fails, or the disk is
  // full, wait for some more to gather before the next attempt.
  const bool insist = bytes > 4 * settings_.checkpoint_bytes;
  file_->checkpoint(insist ? SqliteLogFile::Checkpoint::truncate
                           : SqliteLogFile::Checkpoint::passive);
  checkpoint_at_bytes_ = file_->wal_bytes() + settings_.checkpoint_bytes;
}

}  // namespace conversed::queue
