#include "queue/file/file_log.h"

#include <algorithm>
#include <functional>
#include <random>

#include "queue/file/log_reader.h"
#include "store/model/hex.h"
#include "store/runtime/fault_points.h"
#include "store/runtime/thread_name.h"

namespace conversed::queue {
namespace {

using namespace std::chrono_literals;

constexpr auto probe_interval = 500ms;  // while nothing can be written
constexpr auto idle_after = 1'000ms;    // without appends
constexpr auto retry_interval = 1'000ms;
constexpr auto almost_over = 1ms;
constexpr std::uint64_t reserved_bytes = 16'384;  // of a segment, for positions on a full disk
// An upper bound of the bytes that a frame takes beside its texts.
constexpr std::size_t frame_overhead = 128;

Result<void> check(const FileLogSettings& settings) {
  if (settings.partitions >= 1 && settings.partitions <= 1'024) return {};
  return model::fail(Errc::invalid_argument, "A log has 1 to 1024 partitions.");
}

Error stopped() {
  return {Errc::unavailable, "The log is stopped."};
}

tl::unexpected<Error> unwritable() {
  return model::fail(Errc::unavailable, "The log can't be written at present.");
}

LogMarks marks_of_new_log(std::int32_t partitions) {
  LogMarks marks;
  marks.epochs.push_back({1, std::vector<std::int64_t>(static_cast<std::size_t>(partitions), 0)});
  for (std::int32_t number = 0; number < partitions; ++number) {
    marks.partitions.push_back({.partition = number});
  }
  return marks;
}

// Whether the key is younger than `lifetime`; an older one is free.
bool stands(const KeptKey& key, model::Timestamp now, std::chrono::milliseconds lifetime) {
  return model::to_unix_ms(now) - key.created_ms < lifetime.count();
}

// The answer to the next use of a key: its record, or `conflict` for another body.
Result<KeyedAppended> repeated(const KeptKey& key, const AppendKey& use) {
  if (key.body_hash == model::hex(use.body_hash)) return KeyedAppended{key.id, key.position, true};
  return model::fail(Errc::conflict, "The key was used with another body.");
}

std::uint64_t random_number() {
  std::random_device random;
  return std::uint64_t{random()} << 32 | random();
}

}  // namespace

// Has all partitions from its first `poll` on, until it is destroyed. Thread contract: Consumer's.
// The log's state is attached.
class FileLog::FileConsumer final : public Consumer {
 public:
  FileConsumer(Listener& listener, FileLog& log) : listener_(listener), log_(log) {}
  ~FileConsumer() override {
    {
      const std::lock_guard lock(log_.mutex_);
      log_.backlog_ = nullptr;
    }
    log_.state_.detach();
  }
  FileConsumer(const FileConsumer&) = delete;
  FileConsumer& operator=(const FileConsumer&) = delete;

  Result<std::vector<LogRecord>> poll(std::size_t max, std::chrono::milliseconds wait) override {
    if (!assigned_) {
      auto told = listener_.on_assigned(log_.state_.ranges());
      if (!told) return model::fail(told.error());
      assigned_ = true;
    }
    for (;;) {
      auto take = log_.state_.take(max, wait);
      if (!take.file) return std::move(take.records);
      auto records = read_on(log_.state_, *take.file, max);
      if (!records) return records;
      log_.state_.took(*records, take.file->at);
      if (!records->empty()) return records;
    }
  }

  Result<void> commit(std::span<const Position> finished) override {
    std::vector<Position> moved(finished.begin(), finished.end());
    auto checked = log_.state_.check_finished(moved);
    if (!checked || moved.empty()) return checked;
    model::fault_point("log.before_position_commit");
    auto done = log_.change([&]() -> Result<void> {
      for (const auto& position : moved) {
        auto& range = log_.marks_.partitions[static_cast<std::size_t>(position.partition)];
        range.committed = std::max(range.committed, position.offset + 1);
      }
      return {};
    });
    auto committed = wait_for(std::move(done), listener_);
    if (committed) {
      const std::lock_guard lock(log_.mutex_);
      log_.finished_at_ = SteadyClock::now();
    }
    model::fault_point("log.after_position_commit");
    return committed;
  }

  void slow_down_for(const Backlog& backlog) override {
    const std::lock_guard lock(log_.mutex_);
    log_.backlog_ = &backlog;
  }

  void wake() override { log_.state_.wake(); }

 private:
  Listener& listener_;
  FileLog& log_;
  bool assigned_ = false;
};

Result<std::unique_ptr<FileLog>> FileLog::open(std::unique_ptr<Disk> disk, FileLogSettings settings,
                                               store::KeptKeys& kept, const model::Clock& clock) {
  if (auto checked = check(settings); !checked) return model::fail(checked.error());
  auto recovered = recover(*disk);
  if (!recovered) return model::fail(recovered.error());
  if (recovered->marks.partitions.empty()) recovered->marks = marks_of_new_log(settings.partitions);
  for (auto& range : recovered->marks.partitions) {
    range.epoch = recovered->marks.epochs.back().epoch;
  }
  std::unique_ptr<FileLog> log(
      new FileLog(std::move(disk), settings, kept, clock, recovered->marks, recovered->segments));
  if (auto begun = log->begin(*recovered); !begun) return model::fail(begun.error());
  return log;
}

FileLog::FileLog(std::unique_ptr<Disk> disk, FileLogSettings settings, store::KeptKeys& kept,
                 const model::Clock& clock, const LogMarks& marks, LogState::Segments segments)
    : disk_(std::move(disk)),
      settings_(settings),
      clock_(clock),
      run_(random_number()),
      state_(marks, std::move(segments), {settings.max_tail_records, settings.max_tail_bytes}),
      keys_(std::make_shared<LogKeys>(kept)),
      segments_(*disk_, settings.segment_bytes),
      durable_(marks),
      marks_(marks),
      pruning_held_(settings.pruning == Pruning::held) {}

Result<void> FileLog::begin(RecoveredLog& log) {
  if (auto opened = segments_.open(log); !opened) return opened;
  for (auto& key : log.keys) keys_->put(std::move(key));
  if (log.segments.empty()) {
    commit_batch({}, {});
    if (trouble_) return model::fail(*trouble_);
  }
  thread_ = std::jthread([this] { run(); });
  return {};
}

FileLog::~FileLog() {
  stop();
}

void FileLog::append(Record record, AppendCallback done) {
  Waiting waiting;
  waiting.record = std::move(record);
  waiting.done = std::move(done);
  enqueue(std::move(waiting));
}

void FileLog::append(Record record, AppendKey key, KeyedCallback done) {
  Waiting waiting;
  waiting.bytes = key.scope.size() + key.key.size() + record.id.size() + record.key.size() +
                  frame_overhead + sizeof(Keyed);
  waiting.record = std::move(record);
  waiting.keyed = std::make_unique<Keyed>(Keyed{std::move(key), std::move(done), {}, {}});
  enqueue(std::move(waiting));
}

void FileLog::enqueue(Waiting waiting) {
  const std::size_t record_bytes = waiting.record.bytes();
  waiting.bytes += record_bytes + frame_overhead + sizeof(Waiting) + sizeof(LogRecord);
  std::optional<Error> refusal;
  bool wakes = true;
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
      wakes = add(std::move(waiting));
    }
  }
  if (refusal) return call_back(waiting, refusal);
  if (wakes) changed_.notify_one();
}

bool FileLog::add(Waiting waiting) {
  const auto& key = waiting.record.key;
  const auto pause = pause_of(key);
  if (pause == 0us && (paused_keys_.empty() || !paused_keys_.contains(key))) {
    appends_.push_back(std::move(waiting));
    return true;
  }
  PausedKey& of_key = paused_keys_[key];
  ++of_key.appends;
  of_key.last_due = std::max(of_key.last_due, SteadyClock::now() + pause);
  return paused_.emplace(of_key.last_due, std::move(waiting)) == paused_.begin();
}

std::chrono::microseconds FileLog::pause_of(const std::string& key) const {
  if (!is_behind_ || backlog_ == nullptr) return 0us;
  if (finished_at_ + settings_.finished_lately <= SteadyClock::now()) return 0us;
  const auto records = backlog_->in_flight_of_share(key);
  const std::chrono::microseconds pause(1'000 * records / settings_.records_a_pause);
  return pause < 1ms ? 0us : std::min<std::chrono::microseconds>(pause, settings_.max_pause);
}

void FileLog::call_back(Waiting& waiting, const std::optional<Error>& error) {
  if (waiting.keyed) {
    Keyed& keyed = *waiting.keyed;
    if (error) return keyed.done(model::fail(*error));
    return keyed.done(std::move(keyed.outcome));
  }
  if (error) return waiting.done(model::fail(*error));
  waiting.done(Appended{waiting.position});
}

std::future<Result<void>> FileLog::change(std::function<Result<void>()> run) {
  return enqueue(changes_, std::move(run));
}

std::future<Result<void>> FileLog::task(std::function<Result<void>()> run) {
  return enqueue(tasks_, std::move(run));
}

std::future<Result<void>> FileLog::enqueue(std::vector<Task>& to,
                                           std::function<Result<void>()> run) {
  Task task{std::move(run), {}};
  auto done = task.done.get_future();
  {
    const std::lock_guard lock(mutex_);
    if (stopping_) {
      task.done.set_value(model::fail(stopped()));
      return done;
    }
    to.push_back(std::move(task));
  }
  changed_.notify_one();
  return done;
}

bool FileLog::is_stopped() const {
  const std::lock_guard lock(mutex_);
  return stopping_;
}

void FileLog::look_up(const AppendKey& key, LookUpCallback done) {
  if (is_stopped()) return done(model::fail(stopped()));
  const auto now = clock_.now();
  const auto found = keys_->find(key.scope, key.key, now);
  if (!found) return done(model::fail(found.error()));
  if (!*found || !stands(**found, now, settings_.key_lifetime)) return done(std::nullopt);
  done(repeated(**found, key));
}

Result<std::unique_ptr<Consumer>> FileLog::subscribe(Listener& listener) {
  if (!state_.attach()) return model::fail(Errc::conflict, "The log has a consumer.");
  return std::make_unique<FileConsumer>(listener, *this);
}

Result<std::vector<LogRecord>> FileLog::read(std::span<const Position> at) {
  if (is_stopped()) return model::fail(stopped());
  return read_records(state_, at);
}

Result<std::int64_t> FileLog::unfinished(const KeyRange& keys) {
  return count_unfinished(state_, keys);
}

Result<std::int64_t> FileLog::new_epoch(std::int64_t above) {
  auto opened = change([&]() -> Result<void> {
    EpochStart start{std::max(above, marks_.epochs.back().epoch) + 1, {}};
    for (auto& range : marks_.partitions) {
      start.first.push_back(range.end);
      range.epoch = start.epoch;
    }
    above = start.epoch;
    marks_.epochs.push_back(std::move(start));
    return {};
  });
  if (auto done = opened.get(); !done) return model::fail(done.error());
  return above;
}

Result<void> FileLog::rewind(const std::vector<std::int64_t>& to) {
  const auto ranges = state_.ranges();
  if (to.size() != ranges.size()) {
    return model::fail(Errc::invalid_argument, "The log has another number of partitions.");
  }
  // Stays attached meanwhile, so that no consumer starts from the positions that are about to
  // change.
  if (!state_.attach()) return model::fail(Errc::conflict, "The log has a consumer.");
  auto rewound = change([&]() -> Result<void> {
    for (std::size_t at = 0; at < to.size(); ++at) {
      auto& committed = marks_.partitions[at].committed;
      committed = std::clamp(to[at], ranges[at].first, committed);
    }
    return {};
  });
  rewound.wait();
  state_.detach();
  return rewound.get();
}

// Works by slices of the log. Appends are written between two slices.
Result<void> FileLog::forget_keys(const KeyRange& of) {
  const auto meant = [&](const Frame& frame) {
    if (frame.kind != FrameKind::key) return false;
    const auto key = key_in(frame.payload);
    return key && of.contains(key->record_key);
  };
  Place at;
  Place until;
  // Keys on their way to the store get there before the caller erases there.
  auto done = task([&]() -> Result<void> {
                keys_->forget(of);
                until = durable_.end;
                return {};
              }).get();
  if (!done) return done;
  return in_steps([&] { return erase_slice(state_, at, until, Erase::mark, meant); });
}

Result<void> FileLog::purge() {
  const std::lock_guard alone(purging_);
  std::vector<PartitionRange> ranges;
  const auto is_finished_record = [&](const Frame& frame) {
    if (frame.kind != FrameKind::record) return false;
    const auto at = position_in(frame.payload);
    return at && at->offset < ranges[static_cast<std::size_t>(at->partition)].committed;
  };
  Place until;
  auto done = task([&]() -> Result<void> {
                ranges = durable_.partitions;
                // Takes finished segments out of use. Writes this batch in any case: if the disk
                // loses the last batch, the batch before it has the same positions.
                Task batch{[] { return Result<void>(); }, {}};
                commit_batch({}, {&batch, 1});
                until = durable_.end;
                if (failing_) return unwritable();
                return {};
              }).get();
  const auto step = [&](const std::function<Result<bool>()>& run) {
    if (!done) return;
    done = in_steps([&]() -> Result<bool> {
      if (!is_held()) return run();
      return model::fail(Errc::conflict, "A backup is being made; try again when it is done.");
    });
  };
  for (const auto how : {Erase::mark, Erase::wipe}) {
    Place at;
    step([&] { return erase_slice(state_, at, until, how, is_finished_record); });
  }
  Place at;
  step([&] { return segments_.overwrite_rest(state_, at); });
  return done;
}

Result<void> FileLog::in_steps(const std::function<Result<bool>()>& step) {
  for (bool more = true; more;) {
    auto done =
        task([&]() -> Result<void> { return step().map([&](bool again) { more = again; }); }).get();
    if (!done) return done;
  }
  return {};
}

Result<void> FileLog::health() {
  const std::lock_guard lock(mutex_);
  if (stopping_) return model::fail(stopped());
  if (trouble_) return model::fail(*trouble_);
  return {};
}

void FileLog::set_pruning(Pruning pruning) {
  {
    const std::lock_guard lock(mutex_);
    pruning_held_ = pruning == Pruning::held;
  }
  static_cast<void>(task([] { return Result<void>(); }));  // wakes the thread
}

Result<void> FileLog::copy(const std::filesystem::path& into, const std::function<bool()>& go_on) {
  // Waits for the end of a purge's step that began before pruning was held.
  if (auto done = task([] { return Result<void>(); }).get(); !done) return done;
  return copy_pieces(state_.pieces(), into, go_on);
}

void FileLog::stop() {
  std::call_once(stopped_, [this] {
    {
      const std::lock_guard lock(mutex_);
      stopping_ = true;
    }
    changed_.notify_one();
    if (thread_.joinable()) thread_.join();
  });
}

void FileLog::run() {
  model::name_this_thread("log writer");
  Gathered gathered;
  while (!gathered.stopping) {
    if (!gather(gathered)) {
      housekeeping();
      continue;
    }
    if (!until_housekeeping_) until_housekeeping_ = idle_after;
    for (auto& task : gathered.tasks) task.done.set_value(task.run());
    commit_all(gathered);
  }
}

bool FileLog::gather(Gathered& gathered) {
  gathered.appends.clear();
  gathered.changes.clear();
  gathered.tasks.clear();
  std::unique_lock lock(mutex_);
  auto end = SteadyClock::time_point::max();
  if (until_housekeeping_) end = SteadyClock::now() + *until_housekeeping_;
  while (!has_work() && SteadyClock::now() < end) {
    const auto until = paused_.empty() ? end : std::min(end, paused_.begin()->first);
    if (until == SteadyClock::time_point::max()) {
      changed_.wait(lock);
    } else {
      changed_.wait_until(lock, until);
    }
  }
  if (!has_work()) return false;
  end_pauses();
  is_behind_ = backlog_ != nullptr && backlog_->in_flight() >= settings_.records_a_pause;
  gathered.appends.swap(appends_);
  gathered.changes.swap(changes_);
  gathered.tasks.swap(tasks_);
  gathered.stopping = stopping_;
  return true;
}

bool FileLog::has_work() const {
  return !appends_.empty() || !changes_.empty() || !tasks_.empty() || stopping_ ||
         (!paused_.empty() && paused_.begin()->first <= SteadyClock::now());
}

// A pause that is almost over ends, too, so that batches become larger.
void FileLog::end_pauses() {
  const auto until = SteadyClock::now() + almost_over;
  auto next = paused_.begin();
  for (; next != paused_.end() && (stopping_ || next->first <= until); ++next) {
    const auto of_key = paused_keys_.find(next->second.record.key);
    if (--of_key->second.appends == 0) paused_keys_.erase(of_key);
    appends_.push_back(std::move(next->second));
  }
  paused_.erase(paused_.begin(), next);
}

void FileLog::commit_all(Gathered& gathered) {
  std::span<Task> changes(gathered.changes);
  // Positions and keys let segments go out of use. On a full disk appends fail for want of room,
  // and positions must not fail with them.
  if (failing_) advance_head();
  if (failing_ && (!changes.empty() || marks_.head != durable_.head)) {
    commit_batch({}, changes);
    changes = {};
  }
  std::size_t begin = 0;
  while (begin < gathered.appends.size() || !changes.empty()) {
    const std::size_t end = batch_end(gathered.appends, begin);
    commit_batch(std::span(gathered.appends).subspan(begin, end - begin), changes);
    changes = {};
    begin = end;
  }
}

std::size_t FileLog::batch_end(const std::vector<Waiting>& appends, std::size_t begin) const {
  std::size_t end = begin;
  std::size_t bytes = 0;
  while (end < appends.size() && end - begin < settings_.max_batch_records &&
         (end == begin || bytes + appends[end].bytes <= settings_.max_batch_bytes)) {
    bytes += appends[end++].bytes;
  }
  return end;
}

void FileLog::commit_batch(std::span<Waiting> appends, std::span<Task> changes) {
  until_housekeeping_ = idle_after;
  std::vector<Result<void>> changed;
  for (auto& change : changes) changed.push_back(change.run());
  advance_head();
  const auto done = write_batch(appends, !changes.empty());
  if (done) {
    publish(appends);
  } else {
    marks_ = durable_;
    until_housekeeping_ = probe_interval;
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
  keys_->hand_over();  // also without a new key: the store may work again
  for (auto& waiting : appends) call_back(waiting, error);
  for (std::size_t at = 0; at < changes.size(); ++at) {
    changes[at].done.set_value(changed[at] ? done : changed[at]);
  }
}

Result<void> FileLog::write_batch(std::span<Waiting> appends, bool has_changes) {
  if (auto room = make_room(appends); !room) return room;
  if (marks_.head == 0) marks_.head = segments_.end().segment;
  const bool says_more = has_changes || failing_ || marks_.head != durable_.head;
  batch_.begin(segments_.end().segment, segments_.checksum());
  batch_.put_state(run_, marks_);
  const auto now = clock_.now();
  std::map<Name, const Keyed*> fresh;
  for (auto& waiting : appends) waiting.keyed ? put_keyed(waiting, fresh, now) : put(waiting);
  if (!says_more && std::ranges::none_of(appends, &Waiting::appended)) return {};
  const bool is_new_log = durable_.head == 0;
  if (!is_new_log) model::fault_point("log.before_commit");
  if (auto written = segments_.write(batch_); !written) return written;
  if (!is_new_log) model::fault_point("log.after_commit");
  marks_.end = segments_.end();
  return {};
}

// Appends leave some room at the end of each segment for positions. On a full disk these positions
// take the oldest segment out of use, and its file becomes the next segment.
Result<void> FileLog::make_room(std::span<const Waiting> appends) {
  const std::uint64_t state_bytes =
      256 + marks_.partitions.size() * (32 + 10 * marks_.epochs.size());
  const std::uint64_t reserved = reserved_bytes + 2 * state_bytes;
  std::uint64_t bytes = state_bytes;
  if (!appends.empty()) {
    bytes += reserved;
  } else if (marks_.head == durable_.head) {
    bytes += reserved / 2;
  }
  for (const auto& waiting : appends) bytes += waiting.bytes;
  return segments_.make_room(bytes, marks_.partitions);
}

Place FileLog::next_place() const {
  const Place end = segments_.end();
  return {end.segment, end.at + batch_.bytes().size()};
}

void FileLog::put(Waiting& waiting) {
  const auto partitions = static_cast<std::int32_t>(marks_.partitions.size());
  const std::int32_t partition = partition_of(waiting.record.key, partitions);
  PartitionRange& range = marks_.partitions[static_cast<std::size_t>(partition)];
  waiting.position = {range.epoch, partition, range.end++};
  if (waiting.keyed) {
    PlacedKey& placed = waiting.keyed->placed;
    placed.place = next_place();
    placed.key.position = waiting.position;
    batch_.put_key(placed.key);
  }
  waiting.place = next_place();
  batch_.put_record(waiting.position, waiting.record);
  waiting.appended = true;
}

void FileLog::put_keyed(Waiting& waiting, std::map<Name, const Keyed*>& fresh,
                        model::Timestamp now) {
  Keyed& keyed = *waiting.keyed;
  const AppendKey& key = keyed.key;
  auto& earlier_now = fresh[{key.scope, key.key}];
  Result<std::optional<KeptKey>> earlier;
  if (earlier_now != nullptr) {
    earlier = earlier_now->placed.key;
  } else {
    earlier = keys_->find(key.scope, key.key, now);
  }
  if (!earlier) {
    keyed.outcome = model::fail(earlier.error());
    return;
  }
  const bool is_taken = *earlier && stands(**earlier, now, settings_.key_lifetime);
  if (is_taken && (key.supersedes.empty() || key.supersedes != (*earlier)->id)) {
    keyed.outcome = repeated(**earlier, key);
    return;
  }
  if (keys_->size() + fresh.size() > settings_.max_keys) {
    keyed.outcome = model::fail(Errc::unavailable, "The store does not take the log's keys.");
    return;
  }
  keyed.placed.key = {.scope = key.scope,
                      .key = key.key,
                      .body_hash = model::hex(key.body_hash),
                      .id = waiting.record.id,
                      .position = {},
                      .created_ms = model::to_unix_ms(now),
                      .record_key = waiting.record.key};
  put(waiting);
  earlier_now = &keyed;
  keyed.outcome = KeyedAppended{waiting.record.id, waiting.position, false};
}

void FileLog::publish(std::span<Waiting> appends) {
  if (marks_.end == durable_.end) return;  // nothing was written
  durable_ = marks_;
  std::vector<PlacedRecord> records;
  records.reserve(appends.size());
  for (auto& waiting : appends) {
    if (!waiting.appended) continue;
    if (waiting.keyed) keys_->put(std::move(waiting.keyed->placed));
    records.push_back({{std::move(waiting.record), waiting.position}, waiting.place});
  }
  segments_.retire(state_.publish(durable_, segments_.segment(), std::move(records)));
}

void FileLog::advance_head() {
  if (is_held()) return;
  marks_.keys = keys_->oldest(durable_.end);
  while (const auto next = state_.behind(marks_.head)) {
    const bool finished = std::ranges::all_of(marks_.partitions, [&](const PartitionRange& range) {
      return range.committed >= next->first[static_cast<std::size_t>(range.partition)];
    });
    if (!finished || marks_.keys < Place{next->number, 0}) return;
    marks_.head = next->number;
    // Drops epochs without records.
    while (marks_.epochs.size() > 1 &&
           std::ranges::equal(marks_.epochs[1].first, next->first, std::less_equal())) {
      marks_.epochs.erase(marks_.epochs.begin());
    }
  }
}

bool FileLog::is_held() const {
  const std::lock_guard lock(mutex_);
  return pruning_held_;
}

// Without appends.
void FileLog::housekeeping() {
  if (failing_) return commit_batch({}, {});
  advance_head();
  if (marks_.head != durable_.head) return commit_batch({}, {});
  keys_->hand_over();
  until_housekeeping_ = keys_->size() > 0 ? std::optional(retry_interval) : std::nullopt;
}

}  // namespace conversed::queue
