#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <filesystem>
#include <functional>
#include <future>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "queue/file/log_keys.h"
#include "queue/file/log_state.h"
#include "queue/file/segment_writer.h"
#include "queue/keyed_append.h"
#include "queue/log.h"
#include "store/model/clock.h"
#include "store/model/keyed_hash.h"

namespace conversed::queue {

enum class Pruning : std::uint8_t { on, held };

struct FileLogSettings {
  std::int32_t partitions = 1;  // 1 to 1024, fixed when the log is made; later ignored
  Pruning pruning = Pruning::on;
  std::uint64_t segment_bytes = std::uint64_t{16} << 20;  // more for a batch that needs more

  // Bounds on appends that wait for their commit; above either, appends are refused with
  // `too_many`.
  std::size_t max_waiting_records = 65'536;
  std::size_t max_waiting_bytes = std::size_t{64} << 20;
  std::size_t max_record_bytes = std::size_t{16} << 20;

  // Bounds on one batch.
  std::size_t max_batch_records = 1'024;
  std::size_t max_batch_bytes = std::size_t{4} << 20;

  // How long an append waits while committed positions move: a millisecond for each
  // `records_a_pause` unfinished records of its share, up to `max_pause`. The consumer commits
  // positions every 100 ms (PumpSettings).
  std::size_t records_a_pause = 2'048;
  std::chrono::milliseconds max_pause{10};
  std::chrono::milliseconds finished_lately{500};  // no append waits if none has moved for so long

  // Bounds on durable records in memory for the consumer, which reads further ones from the files.
  std::size_t max_tail_records = 32'768;
  std::size_t max_tail_bytes = std::size_t{32} << 20;

  // Bound on keys that wait for the store; above, keyed appends are refused with `unavailable`.
  std::size_t max_keys = 65'536;
  std::chrono::milliseconds key_lifetime = std::chrono::hours(24);
};

// The embedded driver: files in one folder. Thread-safe, but for open and destruction.
//
// One thread writes. It writes all appends that have gathered by one write and one sync, hands
// their keys to the store, and calls back in the order in which it wrote them. It erases between
// batches.
// There is one consumer at a time. It reads from the files the records that are no longer in
// memory.
//
// No append waits for a batch to fill. But an append waits for some milliseconds if its share has
// many unfinished records. So a share's few fast clients are slowed down to the speed at which its
// records are finished, and their events do not wait longer and longer. While the consumer finishes
// nothing, no append waits for it. Kept by: FileLogPauses, Lanes.CountTheRecordsOfEachShare.
//
// If the disk has no room for the next segment, appends get `unavailable`. If a write or sync
// fails, they get `timed_out`, and the log goes on in another segment. Each further append tries
// again, and so does the thread by itself.
class FileLog final : public Log, public KeyedAppend {
 public:
  // Opens or makes the log and starts the thread. `clock` and `kept` must outlive the log. Only the
  // log may write to the folder meanwhile: the caller has locked it. Errors: `invalid_argument`
  // (settings), and the errors of `recover`.
  [[nodiscard]] static Result<std::unique_ptr<FileLog>> open(std::unique_ptr<Disk> disk,
                                                             FileLogSettings settings,
                                                             store::KeptKeys& kept,
                                                             const model::Clock& clock);
  ~FileLog() override;  // stops
  FileLog(const FileLog&) = delete;
  FileLog& operator=(const FileLog&) = delete;

  void append(Record record, AppendCallback done) override;
  void append(Record record, AppendKey key, KeyedCallback done) override;
  void look_up(const AppendKey& key, LookUpCallback done) override;  // calls back inside
  [[nodiscard]] Result<std::unique_ptr<Consumer>> subscribe(Listener& listener) override;
  [[nodiscard]] Result<std::vector<LogRecord>> read(std::span<const Position> at) override;
  [[nodiscard]] Result<std::vector<PartitionRange>> ranges() override { return state_.ranges(); }
  [[nodiscard]] Result<std::int64_t> new_epoch(std::int64_t above) override;
  [[nodiscard]] Result<void> health() override;
  [[nodiscard]] Result<std::int64_t> unfinished(const KeyRange& keys) override;
  [[nodiscard]] Result<void> forget_keys(const KeyRange& of) override;
  // Overwrites finished records and spare files, by slices. Appends are written between two slices.
  [[nodiscard]] Result<void> purge() override;
  void stop() override;

  // For a backup: while held, no segment goes out of use, and no key counts as moved to the store.
  // So if the store is copied first, the copy of this log has all records and keys that the store's
  // copy lacks. A restart ends the hold.
  void set_pruning(Pruning pruning);
  // Copies the log as of one moment after the call into a new folder, while pruning is held.
  // `go_on` is asked again and again; false ends the copy. Errors: `unavailable`.
  [[nodiscard]] Result<void> copy(const std::filesystem::path& into,
                                  const std::function<bool()>& go_on);

  // After a restore, with pruning held since the opening: makes the next consumer start at these
  // offsets, by partition, where they are below the committed ones. The sessions' positions drop
  // records that the store has seen. Errors: `invalid_argument` if there are not as many as
  // partitions; `conflict` while there is a consumer; `unavailable`.
  [[nodiscard]] Result<void> rewind(const std::vector<std::int64_t>& to);

 private:
  class FileConsumer;
  using SteadyClock = std::chrono::steady_clock;
  using Name = std::pair<std::string, std::string>;  // of a key: its scope and itself
  struct Keyed {
    AppendKey key;
    KeyedCallback done;
    Result<KeyedAppended> outcome;
    PlacedKey placed;  // if appended
  };
  // An append on its way, and its outcome.
  struct Waiting {
    Record record;
    AppendCallback done;           // of a plain append
    std::unique_ptr<Keyed> keyed;  // of a keyed one
    std::size_t bytes = 0;         // in memory, and in the file at most
    Position position;
    Place place;
    bool appended = false;
  };
  // A key with paused appends. A later append of it is paused, too.
  struct PausedKey {
    std::size_t appends = 0;
    SteadyClock::time_point last_due{};
  };
  // Other work of the thread.
  struct Task {
    std::function<Result<void>()> run;
    std::promise<Result<void>> done;
  };
  struct Gathered {
    std::vector<Waiting> appends;
    std::vector<Task> changes;  // of `marks_`
    std::vector<Task> tasks;
    bool stopping = false;
  };

  FileLog(std::unique_ptr<Disk> disk, FileLogSettings settings, store::KeptKeys& kept,
          const model::Clock& clock, const LogMarks& marks, LogState::Segments segments);
  [[nodiscard]] Result<void> begin(RecoveredLog& log);

  void enqueue(Waiting waiting);
  static void call_back(Waiting& waiting, const std::optional<Error>& error);
  // References in `run` must be valid until the future is ready. A change of `marks_` is then
  // durable.
  [[nodiscard]] std::future<Result<void>> change(std::function<Result<void>()> run);
  [[nodiscard]] std::future<Result<void>> task(std::function<Result<void>()> run);
  [[nodiscard]] std::future<Result<void>> enqueue(std::vector<Task>& to,
                                                  std::function<Result<void>()> run);
  // Runs `step` on the thread until it returns false. Appends are written between two steps.
  [[nodiscard]] Result<void> in_steps(const std::function<Result<bool>()>& step);
  [[nodiscard]] bool is_stopped() const;

  // Need the lock. `add` returns whether the thread has to wake up.
  [[nodiscard]] bool add(Waiting waiting);
  [[nodiscard]] std::chrono::microseconds pause_of(const std::string& key) const;
  [[nodiscard]] bool has_work() const;
  void end_pauses();

  // The rest is the thread's own.
  void run();
  // Waits for work or the stop; false when the time for housekeeping has come.
  [[nodiscard]] bool gather(Gathered& gathered);
  [[nodiscard]] bool is_held() const;
  void commit_all(Gathered& gathered);
  [[nodiscard]] std::size_t batch_end(const std::vector<Waiting>& appends, std::size_t begin) const;
  void commit_batch(std::span<Waiting> appends, std::span<Task> changes);
  // Writes the batch, unless it has nothing to write. `unavailable`: the batch was not written;
  // `timed_out`: the outcome is unknown.
  [[nodiscard]] Result<void> write_batch(std::span<Waiting> appends, bool has_changes);
  [[nodiscard]] Result<void> make_room(std::span<const Waiting> appends);
  [[nodiscard]] Place next_place() const;
  void put(Waiting& waiting);
  void put_keyed(Waiting& waiting, std::map<Name, const Keyed*>& fresh, model::Timestamp now);
  void publish(std::span<Waiting> appends);
  // Takes segments out of use if their records are finished and the store has their keys.
  void advance_head();
  void housekeeping();

  const std::unique_ptr<Disk> disk_;
  const FileLogSettings settings_;
  const model::Clock& clock_;
  const std::uint64_t run_;
  LogState state_;
  const std::shared_ptr<LogKeys> keys_;  // the store may answer after the end of the log

  // The thread's own.
  SegmentWriter segments_;
  BatchWriter batch_;
  LogMarks durable_;  // as of the last batch
  LogMarks marks_;    // with the changes of the next one
  bool failing_ = false;
  // Until housekeeping; without a value the thread waits for work only.
  std::optional<std::chrono::milliseconds> until_housekeeping_{0};

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting> appends_;
  std::vector<Task> changes_;
  std::vector<Task> tasks_;
  std::size_t waiting_records_ = 0;  // with the records of the batch in hand
  std::size_t waiting_bytes_ = 0;
  // Appends that wait for their share, by the time when they are written, and their keys.
  std::multimap<SteadyClock::time_point, Waiting> paused_;
  std::unordered_map<std::string, PausedKey, model::KeyedHash, std::equal_to<>> paused_keys_;
  const Backlog* backlog_ = nullptr;  // of the consumer; its locks are taken after this one
  bool is_behind_ = false;            // whether the backlog was long when the last batch began
  SteadyClock::time_point finished_at_ = SteadyClock::time_point::min();
  bool stopping_ = false;
  bool pruning_held_ = false;
  std::optional<Error> trouble_;

  std::mutex purging_;  // held by one caller of `purge` at a time
  std::once_flag stopped_;
  std::jthread thread_;  // last: it uses all others
};

}  // namespace conversed::queue
