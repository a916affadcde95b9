#pragma once

#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <future>
#include <memory>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <thread>
#include <vector>

#include "queue/keyed_append.h"
#include "queue/log.h"
#include "queue/sqlite/sqlite_log_file.h"
#include "queue/sqlite/sqlite_log_state.h"
#include "store/model/clock.h"
#include "store/runtime/guarded.h"

namespace conversed::queue {

struct SqliteLogSettings {
  std::string path;             // of the log's file; its folder exists
  std::int32_t partitions = 1;  // 1 to 1024, fixed when the file is made; later ignored

  // Bounds on what waits for its commit; above either, appends are refused with `too_many`.
  std::size_t max_waiting_records = 65'536;
  std::size_t max_waiting_bytes = std::size_t{64} << 20;
  std::size_t max_record_bytes = std::size_t{16} << 20;

  // Bounds on one transaction. No append waits for a transaction to fill.
  std::size_t max_batch_records = 1'024;
  std::size_t max_batch_bytes = std::size_t{4} << 20;

  // Bounds on committed records kept in memory for the consumer; what is beyond is read from disk.
  std::size_t max_tail_records = 32'768;
  std::size_t max_tail_bytes = std::size_t{32} << 20;

  // Finished records are deleted once this many have gathered in a partition, or when idle.
  std::int64_t prune_after_records = 8'192;
  std::chrono::milliseconds key_lifetime = std::chrono::hours(24);

  // A commit moves the write-ahead log into the file once it holds this much.
  std::size_t checkpoint_bytes = std::size_t{8} << 20;
  std::size_t max_file_bytes = 0;  // above: `unavailable`, until records are finished; 0: no bound
};

enum class Pruning : std::uint8_t { on, held };

// The embedded driver: one SQLite file. Thread-safe, but for open and destruction.
//
// One thread owns the only connection that writes and checkpoints. It commits all appends that have
// gathered in one transaction (`synchronous=FULL`: a callback's success survives loss of power) and
// calls back in the order of the appends. Between the commits it prunes finished records. One
// consumer at a time, which reads through a connection of its own what is no longer in memory.
// `read` and `look_up` each have a connection of their own, so a full disk does not stop them.
//
// Disk full and I/O errors: `unavailable`, or `timed_out` when a COMMIT failed in a way that leaves
// its outcome open. A file that refuses the record, or is damaged: `bad_upstream`. Each further
// append tries again, and the thread does by itself.
class SqliteLog final : public Log, public KeyedAppend {
 public:
  // Opens or makes the file and starts the thread. `clock` must outlive the log. Nobody else may
  // write to the file meanwhile. Errors: `invalid_argument` (settings), `not_supported` (made by a
  // newer version), `unavailable` (can't be opened), `internal` (not a log, or damaged).
  [[nodiscard]] static Result<std::unique_ptr<SqliteLog>> open(SqliteLogSettings settings,
                                                               const model::Clock& clock);
  ~SqliteLog() override;  // stops
  SqliteLog(const SqliteLog&) = delete;
  SqliteLog& operator=(const SqliteLog&) = delete;

  void append(Record record, AppendCallback done) override;
  void append(Record record, AppendKey key, KeyedCallback done) override;
  void look_up(const AppendKey& key, LookUpCallback done) override;  // calls back inside
  [[nodiscard]] Result<std::unique_ptr<Consumer>> subscribe(Listener& listener) override;
  [[nodiscard]] Result<std::vector<LogRecord>> read(std::span<const Position> at) override;
  [[nodiscard]] Result<std::vector<PartitionRange>> ranges() override { return state_.ranges(); }
  [[nodiscard]] Result<std::int64_t> new_epoch(std::int64_t above) override;
  [[nodiscard]] Result<void> health() override;
  [[nodiscard]] Result<std::int64_t> unfinished(std::span<const KeyRange> keys) override;
  [[nodiscard]] Result<void> forget_keys(const std::vector<KeyRange>& of) override;
  // Overwrites the free pages of the file and empties the write-ahead log, by slices of a megabyte,
  // between which appends are committed. Takes time in proportion to the free pages.
  [[nodiscard]] Result<void> purge() override;
  void stop() override;

  // For a backup: while held, finished records are kept, so that a copy of the store taken before
  // the copy of this file finds all that it has not seen. Not kept across a restart.
  void set_pruning(Pruning pruning);

  // After a restore: makes the next consumer start at these offsets, by partition, where they are
  // below what is committed; what the store has seen behind them is dropped there by its position.
  // Errors: `invalid_argument` if there are not as many as partitions; `conflict` while there is a
  // consumer; `unavailable`.
  [[nodiscard]] Result<void> rewind(std::vector<std::int64_t> to);

 private:
  class FileConsumer;
  struct Keyed {
    AppendKey key;
    KeyedCallback done;
    Result<KeyedAppended> outcome;
  };
  // An append on its way, and its outcome.
  struct Waiting {
    Record record;
    AppendCallback done;           // of a plain append
    std::unique_ptr<Keyed> keyed;  // of a keyed one
    std::size_t bytes = 0;
    Position position;
    bool appended = false;
  };
  // Something else to do in a transaction; it changes `marks_`. It may throw store::SqliteError.
  struct Control {
    std::function<void()> apply;
    std::promise<Result<void>> done;
  };
  struct Gathered {
    std::vector<Waiting> appends;
    std::vector<Control> controls;
    bool stopping = false;
  };

  SqliteLog(SqliteLogSettings settings, std::unique_ptr<SqliteLogFile> file,
            std::unique_ptr<store::Connection> keys, std::unique_ptr<store::Connection> records,
            const model::Clock& clock);

  void enqueue(Waiting waiting);
  static void call_back(Waiting& waiting, const std::optional<Error>& error);
  // References in `apply` must live until the outcome is there.
  [[nodiscard]] std::future<Result<void>> run_control(std::function<void()> apply);

  // The rest is the thread's own.
  void run();
  // Waits for something to commit or the stop; false when the time for housekeeping has come.
  [[nodiscard]] bool gather(Gathered& gathered);
  [[nodiscard]] std::optional<std::chrono::milliseconds> next_housekeeping() const;
  void commit_all(Gathered& gathered);
  [[nodiscard]] std::size_t batch_end(const std::vector<Waiting>& appends, std::size_t begin) const;
  void commit_batch(std::span<Waiting> appends, std::span<Control> controls);
  // Commits the changes that `work` makes to the file and to `marks_`. After an error nothing of
  // them has happened, except after `timed_out`, where that is unknown.
  [[nodiscard]] Result<void> in_transaction(const std::function<void()>& work);
  void write_batch(std::span<Waiting> appends, std::span<Control> controls);
  void write(Waiting& waiting);
  void write_keyed(Waiting& waiting, std::int64_t now_ms);
  void publish(std::span<Waiting> appends);

  enum class Prune : std::uint8_t { due, all };
  // Deletes a bounded number of finished records and expired keys inside the transaction.
  void prune(Prune which, std::int64_t keys, std::int64_t now_ms);
  // A transaction that only prunes.
  [[nodiscard]] Result<void> prune_alone();
  // One bounded step of a purge, if there is one.
  void purge_step();
  void end_purge(const Result<void>& done);
  void housekeeping();
  void note(const std::optional<Error>& error);

  const SqliteLogSettings settings_;
  const std::unique_ptr<SqliteLogFile> file_;
  const model::Clock& clock_;
  SqliteLogState state_;
  // Null once stopped.
  model::Guarded<std::unique_ptr<store::Connection>> keys_;
  model::Guarded<std::unique_ptr<store::Connection>> records_;

  // The thread's own. A purge goes through these, one bounded step at a time, between the commits.
  // Callers that ask meanwhile share the next one.
  enum class Purge : std::uint8_t {
    none,
    pruning,      // deletes finished records
    overwriting,  // allocates the pages that pruning has freed; nothing else is pruned meanwhile
    releasing,    // frees the allocated pages
    emptying,     // empties the write-ahead log, unless readers are in the way
  };
  Purge purge_ = Purge::releasing;  // pages of a purge that ended with the last process
  bool in_the_way_ = false;         // a reader was, at the last try of `emptying`
  std::chrono::steady_clock::time_point empty_until_{};
  std::vector<std::promise<Result<void>>> purging_;
  LogMarks durable_;                     // as of the last commit
  LogMarks marks_;                       // with the changes of the open transaction
  std::vector<bool> pruning_partition_;  // between the upper and the lower mark
  bool appending_ = false;               // the transaction has come to its records
  bool failing_ = false;                 // the last transaction failed
  bool more_to_prune_ = false;           // the last pruning reached its bound
  bool held_back_ = false;               // the last pruning left finished records for a backup
  bool tidy_ = false;                    // nothing to prune

  mutable std::mutex mutex_;
  std::condition_variable changed_;
  std::vector<Waiting> appends_;
  std::vector<Control> controls_;
  std::vector<std::promise<Result<void>>> purges_;
  std::size_t waiting_records_ = 0;  // committing ones included
  std::size_t waiting_bytes_ = 0;
  bool stopping_ = false;
  bool pruning_held_ = false;
  std::optional<Error> trouble_;

  std::once_flag stopped_;
  std::jthread thread_;  // last: everything it uses is there before and after it
};

}  // namespace conversed::queue
