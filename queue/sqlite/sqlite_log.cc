#include "queue/sqlite/sqlite_log.h"

#include <algorithm>
#include <utility>

#include "store/runtime/fault_points.h"
#include "store/runtime/thread_name.h"
#include "store/sql/sqlite.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

constexpr std::size_t max_read_bytes = std::size_t{8} << 20;  // of the file at once
constexpr auto probe_interval = 500ms;                        // while the file can't be written
constexpr auto tidy_after = 1'000ms;                          // without appends
constexpr auto key_check_interval = 60s;                      // without appends
constexpr std::int64_t max_pruned_records = 512;              // a partition and transaction
constexpr std::int64_t max_pruned_keys = 128;                 // a round of housekeeping
constexpr auto empty_interval = 20ms;  // readers are inside for one statement
constexpr auto empty_within = 5s;

Result<void> check(const SqliteLogSettings& settings) {
  if (settings.path.empty()) return model::fail(Errc::invalid_argument, "The log needs a path.");
  if (settings.partitions >= 1 && settings.partitions <= 1'024) return {};
  return model::fail(Errc::invalid_argument, "A log has 1 to 1024 partitions.");
}

// An error of a transaction that appends nothing: the file can't have refused a record.
Result<void> unavailable_if_refused(Result<void> done) {
  if (done || done.error().code != Errc::bad_upstream) return done;
  return model::fail(Errc::unavailable, done.error().message);
}

Error stopped() {
  return {Errc::unavailable, "The log is stopped."};
}

}  // namespace

// Has all partitions from its first `poll` on, until it is destroyed. Thread contract: Consumer's.
// The log's state is attached.
class SqliteLog::FileConsumer final : public Consumer {
 public:
  FileConsumer(Listener& listener, std::unique_ptr<store::Connection> reader, SqliteLog& log)
      : listener_(listener), reader_(std::move(reader)), log_(log) {}
  ~FileConsumer() override { log_.state_.detach(); }
  FileConsumer(const FileConsumer&) = delete;
  FileConsumer& operator=(const FileConsumer&) = delete;

  Result<std::vector<LogRecord>> poll(std::size_t max, std::chrono::milliseconds wait) override {
    if (!assigned_) {
      auto told = listener_.on_assigned(log_.state_.ranges());
      if (!told) return model::fail(told.error());
      assigned_ = true;
    }
    auto take = log_.state_.take(max, wait);
    if (!take.file) return std::move(take.records);
    auto records = read_records(*reader_, take.file->partition, take.file->from, take.file->to, max,
                                max_read_bytes);
    if (!records) return model::fail(records.error());
    log_.state_.took(*records);
    return records;
  }

  Result<void> commit(std::span<const Position> finished) override {
    std::vector<Position> moved(finished.begin(), finished.end());
    auto checked = log_.state_.check_finished(moved);
    if (!checked || moved.empty()) return checked;
    model::fault_point("log.before_position_commit");
    auto done = log_.run_control([&] {
      for (const auto& position : moved) {
        auto& range = log_.marks_.partitions[static_cast<std::size_t>(position.partition)];
        range.committed = std::max(range.committed, position.offset + 1);
        log_.file_->set_committed(position.partition, range.committed);
      }
    });
    auto committed = wait_for(std::move(done), listener_);
    model::fault_point("log.after_position_commit");
    return committed;
  }

  void wake() override { log_.state_.wake(); }

 private:
  Listener& listener_;
  const std::unique_ptr<store::Connection> reader_;
  SqliteLog& log_;
  bool assigned_ = false;
};

Result<std::unique_ptr<SqliteLog>> SqliteLog::open(SqliteLogSettings settings,
                                                   const model::Clock& clock) {
  if (auto checked = check(settings); !checked) return model::fail(checked.error());
  auto file = SqliteLogFile::open(settings);
  if (!file) return model::fail(file.error());
  auto keys = open_log_reader(settings.path);
  if (!keys) return model::fail(keys.error());
  auto records = open_log_reader(settings.path);
  if (!records) return model::fail(records.error());
  return std::unique_ptr<SqliteLog>(new SqliteLog(std::move(settings), std::move(*file),
                                                  std::move(*keys), std::move(*records), clock));
}

SqliteLog::SqliteLog(SqliteLogSettings settings, std::unique_ptr<SqliteLogFile> file,
                     std::unique_ptr<store::Connection> keys,
                     std::unique_ptr<store::Connection> records, const model::Clock& clock)
    : settings_(std::move(settings)),
      file_(std::move(file)),
      clock_(clock),
      state_(file_->marks(), {settings_.max_tail_records, settings_.max_tail_bytes}),
      keys_(std::move(keys)),
      records_(std::move(records)),
      durable_(file_->marks()),
      marks_(durable_),
      pruning_partition_(durable_.partitions.size()) {
  thread_ = std::jthread([this] { run(); });
}

SqliteLog::~SqliteLog() {
  stop();
}

void SqliteLog::append(Record record, AppendCallback done) {
  Waiting waiting;
  waiting.record = std::move(record);
  waiting.done = std::move(done);
  enqueue(std::move(waiting));
}

void SqliteLog::append(Record record, AppendKey key, KeyedCallback done) {
  Waiting waiting;
  waiting.record = std::move(record);
  waiting.keyed = std::make_unique<Keyed>(Keyed{std::move(key), std::move(done), {}});
  enqueue(std::move(waiting));
}

void SqliteLog::enqueue(Waiting waiting) {
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
      refusal = stopped();
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

void SqliteLog::call_back(Waiting& waiting, const std::optional<Error>& error) {
  if (waiting.keyed) {
    Keyed& keyed = *waiting.keyed;
    if (error) return keyed.done(model::fail(*error));
    return keyed.done(std::move(keyed.outcome));
  }
  if (error) return waiting.done(model::fail(*error));
  waiting.done(Appended{waiting.position});
}

std::future<Result<void>> SqliteLog::run_control(std::function<void()> apply) {
  Control control{std::move(apply), {}};
  auto done = control.done.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      control.done.set_value(model::fail(stopped()));
      return done;
    }
    controls_.push_back(std::move(control));
  }
  changed_.notify_one();
  return done;
}

void SqliteLog::look_up(const AppendKey& key, LookUpCallback done) {
  const auto row = keys_.with([&](auto& reader) -> Result<std::optional<KeyRow>> {
    if (!reader) return model::fail(stopped());
    return queue::look_up(*reader, key);
  });
  if (!row) return done(model::fail(row.error()));
  if (!*row || !(*row)->stands(model::to_unix_ms(clock_.now()), settings_.key_lifetime)) {
    return done(std::nullopt);
  }
  done((*row)->repeated_by(key));
}

Result<std::unique_ptr<Consumer>> SqliteLog::subscribe(Listener& listener) {
  auto reader = open_log_reader(settings_.path);
  if (!reader) return model::fail(reader.error());
  if (!state_.attach()) return model::fail(Errc::conflict, "The log has a consumer.");
  return std::make_unique<FileConsumer>(listener, std::move(*reader), *this);
}

Result<std::vector<LogRecord>> SqliteLog::read(std::span<const Position> at) {
  return records_.with([&](auto& reader) -> Result<std::vector<LogRecord>> {
    if (!reader) return model::fail(stopped());
    return read_records(*reader, at);
  });
}

Result<std::int64_t> SqliteLog::unfinished(std::span<const KeyRange> keys) {
  auto reader = open_log_reader(settings_.path);
  if (!reader) return model::fail(reader.error());
  return count_unfinished(**reader, keys);
}

Result<std::int64_t> SqliteLog::new_epoch(std::int64_t above) {
  auto opened = run_control([&] {
    EpochStart start{std::max(above, marks_.epochs.back().epoch) + 1, {}};
    for (auto& range : marks_.partitions) {
      start.first.push_back(range.end);
      range.epoch = start.epoch;
    }
    file_->add_epoch(start);
    above = start.epoch;
    marks_.epochs.push_back(std::move(start));
  });
  if (auto done = opened.get(); !done) return model::fail(done.error());
  return above;
}

Result<void> SqliteLog::rewind(std::vector<std::int64_t> to) {
  if (to.size() != state_.ranges().size()) {
    return model::fail(Errc::invalid_argument, "The log has another number of partitions.");
  }
  // Attached meanwhile, so that no consumer starts from the positions that are about to change.
  if (!state_.attach()) return model::fail(Errc::conflict, "The log has a consumer.");
  auto rewound = run_control([&] {
    for (auto& range : marks_.partitions) {
      const auto wanted = to[static_cast<std::size_t>(range.partition)];
      range.committed = std::clamp(wanted, range.first, range.committed);
      file_->set_committed(range.partition, range.committed);
    }
  });
  rewound.wait();
  state_.detach();
  return rewound.get();
}

// By slices of the table, between which appends are committed.
Result<void> SqliteLog::forget_keys(const std::vector<KeyRange>& of) {
  std::optional<std::int64_t> after = 0;
  while (after && !of.empty()) {
    std::optional<std::int64_t> next;
    auto forgotten = run_control([&] {
      next = file_->forget_keys(of, *after);
      marks_.oldest_key_ms = file_->oldest_key_ms();
    });
    if (auto done = forgotten.get(); !done) return done;
    after = next;
  }
  return {};
}

Result<void> SqliteLog::purge() {
  std::future<Result<void>> done;
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) return model::fail(stopped());
    done = purges_.emplace_back().get_future();
  }
  changed_.notify_one();
  return done.get();
}

Result<void> SqliteLog::health() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return model::fail(stopped());
  if (trouble_) return model::fail(*trouble_);
  return {};
}

void SqliteLog::set_pruning(Pruning pruning) {
  const std::lock_guard lock(mutex_);
  pruning_held_ = pruning == Pruning::held;
}

void SqliteLog::stop() {
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

void SqliteLog::run() {
  model::name_this_thread("log writer");
  Gathered gathered;
  while (!gathered.stopping) {
    if (gather(gathered)) {
      commit_all(gathered);
      purge_step();
    } else if (purge_ == Purge::none || failing_) {
      housekeeping();
    } else {
      purge_step();
    }
  }
  end_purge(model::fail(stopped()));
}

bool SqliteLog::gather(Gathered& gathered) {
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

void SqliteLog::commit_all(Gathered& gathered) {
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

std::size_t SqliteLog::batch_end(const std::vector<Waiting>& appends, std::size_t begin) const {
  std::size_t end = begin;
  std::size_t bytes = 0;
  while (end < appends.size() && end - begin < settings_.max_batch_records &&
         (end == begin || bytes + appends[end].bytes <= settings_.max_batch_bytes)) {
    bytes += appends[end++].bytes;
  }
  return end;
}

void SqliteLog::commit_batch(std::span<Waiting> appends, std::span<Control> controls) {
  tidy_ = false;
  const auto done = in_transaction([&] {
    write_batch(appends, controls);
    model::fault_point("log.before_commit");
  });
  if (done) {
    model::fault_point("log.after_commit");
    publish(appends);
  }
  const std::optional<Error> error = done ? std::nullopt : std::optional(done.error());
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
  for (auto& control : controls) control.done.set_value(unavailable_if_refused(done));
}

Result<void> SqliteLog::in_transaction(const std::function<void()>& work) {
  bool committing = false;
  appending_ = false;
  try {
    file_->begin();
    work();
    committing = true;
    file_->commit();
    durable_ = marks_;
    return {};
  } catch (const store::SqliteError& error) {
    auto failure = log_file_error(error, file_->doing());
    if (!appending_) failure.code = Errc::unavailable;  // no record was refused
    // A disk that is full has not taken the frame that ends a transaction. After any other error it
    // may have: until the next commit overwrites it, a restart could find it there.
    if (committing) failure.code = error.uncertain() ? Errc::timed_out : Errc::unavailable;
    file_->rollback();
    marks_ = durable_;
    return model::fail(std::move(failure));
  }
}

void SqliteLog::write_batch(std::span<Waiting> appends, std::span<Control> controls) {
  const std::int64_t now_ms = model::to_unix_ms(clock_.now());
  for (auto& control : controls) control.apply();
  // Pruned first, so that what is freed serves these appends.
  const auto keyed =
      std::ranges::count_if(appends, [](const auto& waiting) { return waiting.keyed != nullptr; });
  prune(failing_ ? Prune::all : Prune::due, 2 * keyed, now_ms);
  appending_ = true;
  for (auto& waiting : appends) waiting.keyed ? write_keyed(waiting, now_ms) : write(waiting);
}

void SqliteLog::write(Waiting& waiting) {
  const auto partitions = static_cast<std::int32_t>(marks_.partitions.size());
  const std::int32_t partition = partition_of(waiting.record.key, partitions);
  PartitionRange& range = marks_.partitions[static_cast<std::size_t>(partition)];
  waiting.position = {range.epoch, partition, range.end};
  file_->insert(waiting.position, waiting.record);
  ++range.end;
  waiting.appended = true;
}

void SqliteLog::write_keyed(Waiting& waiting, std::int64_t now_ms) {
  Keyed& keyed = *waiting.keyed;
  const auto row = file_->find_key(keyed.key);
  const bool stands = row && row->stands(now_ms, settings_.key_lifetime);
  if (stands && (keyed.key.supersedes.empty() || keyed.key.supersedes != row->id)) {
    keyed.outcome = row->repeated_by(keyed.key);
    return;
  }
  write(waiting);
  file_->put_key(keyed.key, waiting.record, waiting.position, now_ms);
  if (!marks_.oldest_key_ms) marks_.oldest_key_ms = now_ms;
  keyed.outcome = KeyedAppended{waiting.record.id, waiting.position, false};
}

void SqliteLog::publish(std::span<Waiting> appends) {
  std::vector<LogRecord> records;
  records.reserve(appends.size());
  for (auto& waiting : appends) {
    if (waiting.appended) records.push_back({std::move(waiting.record), waiting.position});
  }
  state_.publish(durable_, std::move(records));
}

void SqliteLog::note(const std::optional<Error>& error) {
  const std::lock_guard lock(mutex_);
  trouble_ = error;
}

std::optional<std::chrono::milliseconds> SqliteLog::next_housekeeping() const {
  if (failing_) return probe_interval;
  if (purge_ == Purge::emptying && in_the_way_) return empty_interval;
  if (purge_ != Purge::none) return 0ms;
  if (more_to_prune_) return 0ms;
  if (!tidy_) return tidy_after;
  if (marks_.oldest_key_ms) return key_check_interval;
  return std::nullopt;
}

void SqliteLog::prune(Prune which, std::int64_t keys, std::int64_t now_ms) {
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
    const std::int64_t to = range.first + std::min(finished, max_pruned_records);
    file_->prune(range.partition, range.first, to);
    range.first = to;
    more_to_prune_ |= to < range.committed;
  }
  const std::int64_t made_before_ms = now_ms - settings_.key_lifetime.count();
  auto& oldest_ms = marks_.oldest_key_ms;
  if (keys > 0 && oldest_ms && *oldest_ms <= made_before_ms) {
    file_->prune_keys(made_before_ms, keys);
    oldest_ms = file_->oldest_key_ms();
    more_to_prune_ |= oldest_ms && *oldest_ms <= made_before_ms;
  }
}

Result<void> SqliteLog::prune_alone() {
  const auto pruned =
      in_transaction([&] { prune(Prune::all, max_pruned_keys, model::to_unix_ms(clock_.now())); });
  if (!pruned) return model::fail(Errc::unavailable, pruned.error().message);
  state_.publish(durable_, {});
  return {};
}

void SqliteLog::purge_step() {
  Result<void> done;
  try {
    switch (purge_) {
      case Purge::none:
        return;
      case Purge::pruning:
        done = prune_alone();
        if (done && held_back_) {
          done = model::fail(Errc::conflict, "A backup is being made; try again when it is done.");
        }
        if (!more_to_prune_) purge_ = Purge::overwriting;
        break;
      case Purge::overwriting:
        if (file_->overwrite_free() == 0) purge_ = Purge::releasing;
        break;
      case Purge::releasing:
        if (file_->release_overwritten()) break;
        if (purging_.empty()) return end_purge({});
        purge_ = Purge::emptying;
        empty_until_ = std::chrono::steady_clock::now() + empty_within;
        break;
      case Purge::emptying:
        in_the_way_ = !file_->empty_wal();
        if (!in_the_way_) return end_purge({});
        if (std::chrono::steady_clock::now() >= empty_until_) {
          done = model::fail(Errc::unavailable, "The log's file is being read; try again.");
        }
        break;
    }
  } catch (const store::SqliteError& error) {
    done = model::fail(Errc::unavailable, log_file_error(error, file_->doing()).message);
  }
  if (!done) end_purge(done);
}

void SqliteLog::end_purge(const Result<void>& done) {
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

void SqliteLog::housekeeping() {
  if (failing_) {
    try {
      file_->probe();
    } catch (const store::SqliteError& error) {
      return note(Error{Errc::unavailable, log_file_error(error, file_->doing()).message});
    }
    failing_ = false;
    note(std::nullopt);
  }
  if (auto pruned = prune_alone(); !pruned) {
    failing_ = true;
    more_to_prune_ = false;
    return note(pruned.error());
  }
  tidy_ = !more_to_prune_;
}

}  // namespace conversed::queue
