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
#include <thread>
#include <vector>

#include "queue/keyed_append.h"
#include "queue/log.h"
#include "queue/sqlite/sqlite_log.h"
#include "queue/sqlite/sqlite_log_file.h"
#include "queue/sqlite/sqlite_log_state.h"
#include "store/model/clock.h"
#include "store/runtime/guarded.h"

namespace conversed::queue {

// The log, with the thread that owns its file: commits what has gathered, calls back, prunes and
// checkpoints. Thread-safe. `clock` must outlive it.
class SqliteLogWriter final : public SqliteLog {
 public:
  SqliteLogWriter(SqliteLogSettings settings, std::unique_ptr<SqliteLogFile> file, LogMarks marks,
                  std::unique_ptr<SqliteLogReader> keys, std::unique_ptr<SqliteLogReader> records,
                  const model::Clock& clock);
  ~SqliteLogWriter() override;  // stops
  SqliteLogWriter(const SqliteLogWriter&) = delete;
  SqliteLogWriter& operator=(const SqliteLogWriter&) = delete;

  void append(Record record, AppendCallback done) override;
  void append(Record record, AppendKey key, KeyedCallback done) override;
  void look_up(const AppendKey& key, LookUpCallback done) override;
  [[nodiscard]] Result<std::unique_ptr<Consumer>> subscribe(Listener& listener) override;
  [[nodiscard]] Result<std::vector<LogRecord>> read(std::span<const Position> at) override;
  [[nodiscard]] Result<std::vector<PartitionRange>> ranges() override { return state_.ranges(); }
  [[nodiscard]] Result<std::int64_t> new_epoch(std::int64_t above) override;
  [[nodiscard]] Result<void> health() override;
  [[nodiscard]] Result<std::int64_t> unfinished(std::span<const KeyRange> keys) override;
  [[nodiscard]] Result<void> forget_keys(const std::vector<KeyRange>& of) override;
  // By slices of a megabyte, between which appends are committed: what is free in the file is
  // overwritten, and the write-ahead log emptied. Takes time in proportion to what is free.
  [[nodiscard]] Result<void> purge() override;
  void stop() override;
  void set_pruning(Pruning pruning) override;
  [[nodiscard]] Result<void> rewind(std::vector<std::int64_t> to) override;

  // For the consumer. `waiting` is told while this waits for its transaction. Errors:
  // `unavailable`, `timed_out`.
  [[nodiscard]] Result<void> commit_positions(std::vector<Position> finished, Listener& waiting);

 private:
  struct Keyed {
    AppendKey key;
    KeyedCallback done;
    Result<KeyedAppended> outcome;
  };
  // An append on its way: what was asked for, and what has become of it.
  struct Waiting {
    Record record;
    AppendCallback done;           // of a plain append
    std::unique_ptr<Keyed> keyed;  // of a keyed one
    std::size_t bytes = 0;
    Position position;
    bool appended = false;
  };
  // Something else to do in a transaction; it changes `marks_`.
  struct Control {
    std::function<Result<void>()> apply;
    std::promise<Result<void>> done;
  };
  struct Gathered {
    std::vector<Waiting> appends;
    std::vector<Control> controls;
    bool stopping = false;
  };

  void enqueue(Waiting waiting);
  static void call_back(Waiting& waiting, const std::optional<Error>& error);
  // What `apply` refers to must live until the outcome is there.
  [[nodiscard]] std::future<Result<void>> run_control(std::function<Result<void>()> apply);

  // The rest is the thread's own.
  void run();
  // Waits for something to commit or the stop; false when the time for housekeeping has come.
  [[nodiscard]] bool gather(Gathered& gathered);
  [[nodiscard]] std::optional<std::chrono::milliseconds> next_housekeeping() const;
  void commit_all(Gathered& gathered);
  [[nodiscard]] std::size_t batch_end(const std::vector<Waiting>& appends, std::size_t begin) const;
  void commit_batch(std::span<Waiting> appends, std::span<Control> controls);
  [[nodiscard]] Result<void> transact(std::span<Waiting> appends, std::span<Control> controls);
  [[nodiscard]] Result<void> write_batch(std::span<Waiting> appends, std::span<Control> controls);
  [[nodiscard]] Result<void> write(Waiting& waiting);
  [[nodiscard]] Result<void> write_keyed(Waiting& waiting, std::int64_t now_ms);
  void publish(std::span<Waiting> appends);

  enum class Prune : std::uint8_t { due, all };
  // Deletes a bounded number of finished records and expired keys inside the transaction.
  [[nodiscard]] Result<void> prune(Prune which, std::int64_t keys, std::int64_t now_ms);
  // A transaction that does nothing but prune.
  [[nodiscard]] Result<void> prune_alone(std::int64_t keys);
  // One bounded step of what purges ask for.
  void purge_step();
  void end_purge(const Result<void>& done);
  void housekeeping();
  void checkpoint_when_due();
  void note(const std::optional<Error>& error);

  const SqliteLogSettings settings_;
  const std::unique_ptr<SqliteLogFile> file_;
  const model::Clock& clock_;
  SqliteLogState state_;
  // Null once stopped.
  model::Guarded<std::unique_ptr<SqliteLogReader>> keys_;
  model::Guarded<std::unique_ptr<SqliteLogReader>> records_;

  // The thread's own. A purge goes through these, one bounded step at a time, between the commits.
  // Those who ask while it is at work get one of their own together.
  enum class Purge : std::uint8_t {
    none,
    pruning,      // finished records are deleted
    overwriting,  // so are the pages that they have left free; nothing else is pruned meanwhile
    releasing,    // what was taken for that is given back
    emptying,     // the write-ahead log, which readers may be in the way of
  };
  Purge purge_ = Purge::releasing;  // what an end of the process in the middle of one has left
  bool in_the_way_ = false;         // a reader was, at the last try of `emptying`
  std::chrono::steady_clock::time_point empty_until_{};
  std::vector<std::promise<Result<void>>> purging_;
  LogMarks durable_;                     // as of the last commit
  LogMarks marks_;                       // with what the open transaction has done
  std::vector<bool> pruning_partition_;  // between the upper and the lower mark
  std::optional<std::int64_t> oldest_key_ms_;
  std::size_t checkpoint_at_bytes_;
  bool failing_ = false;        // the last transaction failed
  bool more_to_prune_ = false;  // the last pruning reached its bound
  bool held_back_ = false;      // the last pruning left finished records for a backup
  bool tidy_ = false;           // nothing to prune, all checkpointed

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
