#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <memory>
#include <string>
#include <vector>

#include "queue/keyed_append.h"
#include "queue/log.h"
#include "store/model/clock.h"

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

  // The write-ahead log is moved into the file once it holds this much.
  std::size_t checkpoint_bytes = std::size_t{8} << 20;
  std::size_t max_file_bytes = 0;  // above: `unavailable`, until records are finished; 0: no bound
};

enum class Pruning : std::uint8_t { on, held };

// The embedded driver: one SQLite file. Thread-safe, but for open and destruction.
//
// One thread owns the only connection that writes and checkpoints. It commits all appends that have
// gathered in one transaction (`synchronous=FULL`: a callback's success survives loss of power) and
// calls back in the order of the appends. One consumer at a time, which reads through a connection
// of its own what is no longer in memory. `read` and `look_up` each have a connection of their own,
// so a full disk does not stop them.
//
// Disk full and I/O errors: `unavailable`, or `timed_out` when a COMMIT failed in a way that leaves
// its outcome open. A file that refuses the record, or is damaged: `bad_upstream`. Each further
// append tries again, and the thread does by itself.
class SqliteLog : public Log, public KeyedAppend {
 public:
  // Opens or makes the file and starts the thread. `clock` must outlive the log. Nobody else may
  // write to the file meanwhile. Errors: `invalid_argument` (settings), `not_supported` (made by a
  // newer version), `unavailable` (can't be opened), `internal` (not a log, or damaged).
  [[nodiscard]] static Result<std::unique_ptr<SqliteLog>> open(SqliteLogSettings settings,
                                                               const model::Clock& clock);
  using KeyedAppend::append;  // a `look_up` calls back inside
  using Log::append;

  // For a backup: while held, finished records are kept, so that a copy of the store taken before
  // the copy of this file finds all that it has not seen. Not kept across a restart.
  virtual void set_pruning(Pruning pruning) = 0;

  // After a restore: makes the next consumer start at these offsets, by partition, where they are
  // below what is committed; what the store has seen behind them is dropped there by its position.
  // Errors: `invalid_argument` if there are not as many as partitions; `conflict` while there is a
  // consumer; `unavailable`.
  [[nodiscard]] virtual Result<void> rewind(std::vector<std::int64_t> to) = 0;
};

}  // namespace conversed::queue
