#include "queue/sqlite/sqlite_log_writer.h"

#include <sqlite3.h>

#include <algorithm>
#include <string>
#include <utility>

#include "queue/wait_for.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/thread_name.h"

namespace conversed::queue {
namespace {

// The error of an append. A file that refuses the record, or is damaged, is `bad_upstream`: it does
// not help to wait.
Result<void> not_appended(int code, std::string_view doing) {
  const int primary = code & 0xff;
  const bool refused = primary == SQLITE_CONSTRAINT || primary == SQLITE_MISMATCH ||
                       primary == SQLITE_CORRUPT || primary == SQLITE_NOTADB ||
                       primary == SQLITE_ERROR;
  if (!refused) return undone(code, doing);
  return model::fail(Errc::bad_upstream, sqlite_error(code, doing).message);
}

// The outcome of a transaction for its controls. They have no record that the file could refuse.
Result<void> for_controls(Result<void> done) {
  if (done || done.error().code != Errc::bad_upstream) return done;
  return model::fail(Errc::unavailable, done.error().message);
}

}  // namespace

SqliteLogWriter::SqliteLogWriter(SqliteLogSettings settings, std::unique_ptr<SqliteLogFile> file,
                                 LogMarks marks, std::unique_ptr<SqliteLogReader> keys,
                                 std::unique_ptr<SqliteLogReader> records,
                                 const model::Clock& clock)
    : settings_(std::move(settings)),
      file_(std::move(file)),
      clock_(clock),
      state_(marks, {settings_.max_tail_records, settings_.max_tail_bytes}),
      keys_(std::move(keys)),
      records_(std::move(records)),
      durable_(std::move(marks)),
      marks_(durable_),
      pruning_partition_(durable_.partitions.size()),
      checkpoint_at_bytes_(settings_.checkpoint_bytes) {
  file_->oldest_key(oldest_key_ms_);  // if it fails, so will the first transaction, and tell
  thread_ = std::jthread([this] { run(); });
}

SqliteLogWriter::~SqliteLogWriter() {
  stop();
}

void SqliteLogWriter::append(Record record, AppendCallback done) {
  Waiting waiting;
  waiting.record = std::move(record);
  waiting.done = std::move(done);
  enqueue(std::move(waiting));
}

void SqliteLogWriter::append(Record record, AppendKey key, KeyedCallback done) {
  Waiting waiting;
  waiting.record = std::move(record);
  waiting.keyed = std::make_unique<Keyed>(Keyed{std::move(key), std::move(done), {}});
  enqueue(std::move(waiting));
}

void SqliteLogWriter::enqueue(Waiting waiting) {
  constexpr std::size_t overhead = sizeof(Waiting) + sizeof(LogRecord);
  const std::size_t record_bytes = waiting.record.bytes();
  waiting.bytes = record_bytes + overhead;
  std::optional<Error> refusal;
  if (record_bytes > settings_.max_record_bytes) {
    refusal = Error{Errc::too_large, "The record is above the log's limit of " +
                                         std::to_string(settings_.max_record_bytes) + " bytes."};
  } else {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      refusal = Error{Errc::unavailable, "The log is stopped."};
    } else if (waiting_records_ >= settings_.max_waiting_records ||
               waiting_bytes_ + waiting.bytes > settings_.max_waiting_bytes) {
      refusal = Error{Errc::too_many, "The log's buffer is full."};
    } else {
      ++waiting_records_;
      waiting_bytes_ += waiting.bytes;
      appends_.push_back(std::move(waiting));
    }
  }
  if (refusal) return call_back(waiting, refusal);
  changed_.notify_one();
}

void SqliteLogWriter::call_back(Waiting& waiting, const std::optional<Error>& error) {
  if (waiting.keyed) {
    Keyed& keyed = *waiting.keyed;
    if (error) return keyed.done(model::fail(*error));
    return keyed.done(std::move(keyed.outcome));
  }
  if (error) return waiting.done(model::fail(*error));
  waiting.done(Appended{waiting.position});
}

std::future<Result<void>> SqliteLogWriter::run_control(std::function<Result<void>()> apply) {
  std::future<Result<void>> done;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      std::promise<Result<void>> refused;
      refused.set_value(model::fail(Errc::unavailable, "The log is stopped."));
      return refused.get_future();
    }
    controls_.push_back({std::move(apply), {}});
    done = controls_.back().done.get_future();
  }
  changed_.notify_one();
  return done;
}

Result<void> SqliteLogWriter::commit_positions(std::vector<Position> finished, Listener& waiting) {
  model::fault_point("log.before_position_commit");
  auto done = run_control([&]() -> Result<void> {
    for (const auto& position : finished) {
      auto& mark = marks_.partitions[static_cast<std::size_t>(position.partition)].committed;
      mark = std::max(mark, position.offset + 1);
      const int code = file_->set_committed(position.partition, mark);
      if (code != SQLITE_OK) return undone(code, "committing a position");
    }
    return {};
  });
  auto committed = wait_for(std::move(done), waiting);
  model::fault_point("log.after_position_commit");
  return committed;
}

Result<std::int64_t> SqliteLogWriter::new_epoch(std::int64_t above) {
  std::int64_t epoch = 0;
  const auto opened = run_control([&]() -> Result<void> {
                        epoch = std::max(above, marks_.epochs.back().epoch) + 1;
                        EpochStart start{epoch, {}};
                        for (auto& range : marks_.partitions) {
                          start.first.push_back(range.end);
                          range.epoch = epoch;
                        }
                        const int code = file_->add_epoch(start);
                        if (code != SQLITE_OK) return undone(code, "opening an epoch");
                        marks_.epochs.push_back(std::move(start));
                        return {};
                      }).get();
  if (!opened) return model::fail(opened.error());
  return epoch;
}

Result<void> SqliteLogWriter::rewind(std::vector<std::int64_t> to) {
  if (to.size() != state_.ranges().size()) {
    return model::fail(Errc::invalid_argument, "The log has another number of partitions.");
  }
  // Attached meanwhile, so that no consumer starts from the positions that are about to change.
  if (!state_.attach()) return model::fail(Errc::conflict, "The log has a consumer.");
  auto rewound = run_control([&]() -> Result<void> {
                   for (auto& range : marks_.partitions) {
                     const auto wanted = to[static_cast<std::size_t>(range.partition)];
                     range.committed = std::clamp(wanted, range.first, range.committed);
                     const int code = file_->set_committed(range.partition, range.committed);
                     if (code != SQLITE_OK) return undone(code, "rewinding");
                   }
                   return {};
                 }).get();
  state_.detach();
  return rewound;
}

// By slices of the table, between which appends are committed.
Result<void> SqliteLogWriter::forget_keys(const std::vector<KeyRange>& of) {
  std::optional<std::int64_t> after = 0;
  while (after && !of.empty()) {
    auto forgotten = run_control([&]() -> Result<void> {
                       const int code = file_->forget_keys(of, after);
                       if (code != SQLITE_OK) return undone(code, "freeing keys");
                       file_->oldest_key(oldest_key_ms_);
                       return {};
                     }).get();
    if (!forgotten) return forgotten;
  }
  return {};
}

Result<void> SqliteLogWriter::purge() {
  std::future<Result<void>> done;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return model::fail(Errc::unavailable, "The log is stopped.");
    done = purges_.emplace_back().get_future();
  }
  changed_.notify_one();
  return done.get();
}

Result<void> SqliteLogWriter::health() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return model::fail(Errc::unavailable, "The log is stopped.");
  if (trouble_) return model::fail(*trouble_);
  return {};
}

void SqliteLogWriter::set_pruning(Pruning pruning) {
  const std::lock_guard lock(mutex_);
  pruning_held_ = pruning == Pruning::held;
}

void SqliteLogWriter::stop() {
  std::call_once(stopped_, [this] {
    for (auto* const each : {&keys_, &records_}) each->with([](auto& reader) { reader.reset(); });
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    thread_.join();
  });
}

void SqliteLogWriter::run() {
  model::name_this_thread("log writer");
  Gathered gathered;
  for (;;) {
    if (!gather(gathered)) {
      if (purge_ == Purge::none || failing_) {
        housekeeping();
      } else {
        purge_step();
      }
      continue;
    }
    commit_all(gathered);
    if (gathered.stopping) break;
    purge_step();
  }
  end_purge(model::fail(Errc::unavailable, "The log is stopped."));
  // Leaves a file without a write-ahead log behind if it can; if not, the next start reads both.
  file_->checkpoint(SqliteLogFile::Checkpoint::truncate);
}

bool SqliteLogWriter::gather(Gathered& gathered) {
  gathered.appends.clear();
  gathered.controls.clear();
  const auto pause = next_housekeeping();
  std::unique_lock lock(mutex_);
  const auto ready = [this] {
    return !appends_.empty() || !controls_.empty() || stopping_ ||
           (purge_ == Purge::none && !purges_.empty());
  };
  if (pause) {
    changed_.wait_for(lock, *pause, ready);
  } else {
    changed_.wait(lock, ready);
  }
  if (!ready()) return false;
  gathered.appends.swap(appends_);
  gathered.controls.swap(controls_);
  if (purge_ == Purge::none && !purges_.empty()) {
    purging_.swap(purges_);
    purge_ = Purge::pruning;
  }
  gathered.stopping = stopping_;
  return true;
}

void SqliteLogWriter::commit_all(Gathered& gathered) {
  std::span<Control> controls(gathered.controls);
  // Position commits let pruning make room. When space is what fails, they must not share the fate
  // of appends.
  if (failing_ && !controls.empty()) {
    commit_batch({}, controls);
    controls = {};
  }
  std::size_t begin = 0;
  while (begin < gathered.appends.size() || !controls.empty()) {
    const std::size_t end = batch_end(gathered.appends, begin);
    commit_batch(std::span(gathered.appends).subspan(begin, end - begin), controls);
    controls = {};
    begin = end;
  }
}

std::size_t SqliteLogWriter::batch_end(const std::vector<Waiting>& appends,
                                       std::size_t begin) const {
  std::size_t end = begin;
  std::size_t bytes = 0;
  while (end < appends.size() && end - begin < settings_.max_batch_records &&
         (end == begin || bytes + appends[end].bytes <= settings_.max_batch_bytes)) {
    bytes += appends[end++].bytes;
  }
  return end;
}

void SqliteLogWriter::commit_batch(std::span<Waiting> appends, std::span<Control> controls) {
  const auto done = transact(appends, controls);
  const std::optional<Error> error = done ? std::nullopt : std::optional(done.error());
  if (done) publish(appends);
  std::size_t bytes = 0;
  for (const auto& waiting : appends) bytes += waiting.bytes;
  {
    const std::lock_guard lock(mutex_);
    waiting_records_ -= appends.size();
    waiting_bytes_ -= bytes;
    trouble_ = error;
  }
  failing_ = error.has_value();
  for (auto& waiting : appends) call_back(waiting, error);
  for (auto& control : controls) control.done.set_value(for_controls(done));
  if (done) checkpoint_when_due();
}

Result<void> SqliteLogWriter::transact(std::span<Waiting> appends, std::span<Control> controls) {
  tidy_ = false;
  auto written = write_batch(appends, controls);
  if (written) {
    model::fault_point("log.before_commit");
    const int code = file_->commit();
    if (code == SQLITE_OK) {
      model::fault_point("log.after_commit");
      durable_ = marks_;
      return {};
    }
    // A disk that is full has not taken the frame that ends a transaction. After any other error it
    // may have: until the next commit overwrites it, a restart could find it there.
    const bool known = (code & 0xff) == SQLITE_FULL || (code & 0xff) == SQLITE_BUSY;
    written = model::fail(known ? Errc::unavailable : Errc::timed_out,
                          sqlite_error(code, "committing").message);
  }
  file_->rollback();
  marks_ = durable_;
  file_->oldest_key(oldest_key_ms_);
  return written;
}

Result<void> SqliteLogWriter::write_batch(std::span<Waiting> appends, std::span<Control> controls) {
  if (const int code = file_->begin(); code != SQLITE_OK) return undone(code, "beginning");
  const std::int64_t now_ms = model::to_unix_ms(clock_.now());
  for (auto& control : controls) {
    if (auto applied = control.apply(); !applied) return applied;
  }
  // Pruned first, so that what is freed serves these appends.
  std::int64_t keyed = 0;
  for (const auto& waiting : appends) keyed += waiting.keyed ? 1 : 0;
  auto pruned = prune(failing_ ? Prune::all : Prune::due, 2 * keyed, now_ms);
  if (!pruned) return pruned;
  for (auto& waiting : appends) {
    auto written = waiting.keyed ? write_keyed(waiting, now_ms) : write(waiting);
    if (!written) return written;
  }
  return {};
}

Result<void> SqliteLogWriter::write(Waiting& waiting) {
  const auto partitions = static_cast<std::int32_t>(marks_.partitions.size());
  const std::int32_t partition = partition_of(waiting.record.key, partitions);
  PartitionRange& range = marks_.partitions[static_cast<std::size_t>(partition)];
  waiting.position = {range.epoch, partition, range.end};
  const int code = file_->insert(waiting.position, waiting.record);
  if (code != SQLITE_OK) return not_appended(code, "appending");
  ++range.end;
  waiting.appended = true;
  return {};
}

Result<void> SqliteLogWriter::write_keyed(Waiting& waiting, std::int64_t now_ms) {
  Keyed& keyed = *waiting.keyed;
  std::optional<KeyRow> row;
  if (const int code = file_->find_key(keyed.key, row); code != SQLITE_OK) {
    return not_appended(code, "looking a key up");
  }
  const bool stands = row && row->stands(now_ms, settings_.key_lifetime);
  if (stands && (keyed.key.supersedes.empty() || keyed.key.supersedes != row->id)) {
    keyed.outcome = row->repeated_by(keyed.key);
    return {};
  }
  if (auto written = write(waiting); !written) return written;
  const KeyRow stored{keyed.key.body_hash, waiting.record.id, waiting.position, now_ms};
  if (const int code = file_->put_key(keyed.key, stored, waiting.record.key); code != SQLITE_OK) {
    return not_appended(code, "storing a key");
  }
  if (!oldest_key_ms_) oldest_key_ms_ = now_ms;
  keyed.outcome = KeyedAppended{waiting.record.id, waiting.position, false};
  return {};
}

void SqliteLogWriter::publish(std::span<Waiting> appends) {
  std::vector<LogRecord> records;
  records.reserve(appends.size());
  for (auto& waiting : appends) {
    if (waiting.appended) records.push_back({std::move(waiting.record), waiting.position});
  }
  state_.publish(durable_, std::move(records));
}

void SqliteLogWriter::note(const std::optional<Error>& error) {
  const std::lock_guard lock(mutex_);
  trouble_ = error;
}

}  // namespace conversed::queue
