#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <memory>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "queue/log.h"
#include "store/runtime/heartbeat.h"

namespace conversed::queue {

// The next records of one key, in order, for one call of the handler.
struct Run {
  std::string key;
  std::vector<LogRecord> records;  // at most max_run; none after `touch` or Next::again
  // The calling worker's heartbeat. The handler beats it between long pieces of work. Valid until
  // the handler returns.
  model::Heartbeat* heartbeat = nullptr;
};

enum class Next : std::uint8_t {
  idle,   // call the handler again when the lane has records
  again,  // call it again without records, too, behind the other ready lanes
  // The process is about to end, and the run is not tried again in it. Its records stay unfinished,
  // and nothing more of its key runs.
  abandoned,
};

// The outcome of a revocation.
struct Revoked {
  std::vector<Position> finished;  // to be committed; see Lanes::finished
  bool complete = false;           // no run of the partitions is in hand
};

class Lanes;

// Marks a run as finished: its records need no second delivery. Call it exactly once, from any
// thread, inside the handler or after it. Destroyed uncalled it aborts the program, because its
// lane would never run again.
class Finish {
 public:
  Finish(Finish&& other) noexcept
      : lanes_(std::exchange(other.lanes_, nullptr)), lane_(std::exchange(other.lane_, nullptr)) {}
  Finish& operator=(Finish&& other) noexcept;
  Finish(const Finish&) = delete;
  Finish& operator=(const Finish&) = delete;
  ~Finish();

  void operator()(Next next);

 private:
  friend class Lanes;
  Finish(Lanes* lanes, void* lane) : lanes_(lanes), lane_(lane) {}
  Lanes* lanes_;
  void* lane_;
};

// Called on a worker thread with the next run of a key. Must not throw. May return before the run
// is finished.
using Handler = std::function<void(Run&&, Finish)>;

struct LanesSettings {
  std::size_t workers = 2;              // threads
  std::size_t max_run = 64;             // records
  std::size_t in_flight_limit = 4'096;  // records in memory; further ones are parked
  std::size_t parked_limit = 0;         // records of which the lanes keep the position only
  // Records of runs that are in hand. A worker that finds as many begins no further run.
  std::size_t in_hand_limit = SIZE_MAX;
  // Log::read, for parked records; needed with a `parked_limit`. The workers call it side by side.
  // After an error the run's records are parked again, and its worker pauses for `retry_interval`.
  std::function<Result<std::vector<LogRecord>>(std::span<const Position>)> read{};
  std::chrono::milliseconds retry_interval{100};
  // The number of the log's partitions, where other daemons read some of them. `touch` and
  // Next::again then do not run keys of partitions that are not assigned here, and `revoke` waits
  // for such runs, too. 0: this daemon reads all partitions.
  std::int32_t partitions = 0;
  // Has a heartbeat for each worker; must outlive the lanes. Null: there are none.
  model::Heartbeats* heartbeats = nullptr;
  // Names the share of a key, such as its organisation. Shares divide the workers fairly
  // (shares.h). Called under the lock when a lane begins: it must not block, nor call the lanes.
  // Null: one share has all workers.
  std::function<std::string(const std::string& key)> share_of{};
  // How time passes while workers run; for tests.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// Runs the records of each key in order, and any number of keys side by side. Tracks which records
// are finished. Thread-safe; `offer`, `assign` and `revoke` are for the one consuming thread.
//
// A run is in hand from the call of the handler until its Finish. A key has at most one run in
// hand. The destructor waits for all runs in hand, so every Finish has to be called.
//
// - A record that finds `in_flight_limit` records in memory is parked: its lane keeps the position,
//   and a worker reads the record when its run begins. So one share's backlog does not stop the
//   consumer before the records of others. Kept by:
//   ParkedRecords.LetAnotherShareRunBehindABacklog.
// - Records that can't be read stay unfinished, in front of their lane. Kept by:
//   ParkedRecords.ThatCanNotBeReadAreReadLaterAndStayInFrontOfWhatComesMeanwhile.
// - Parked records come into memory no faster than runs are finished, so a store that stands still
//   does not bring the backlog into memory. Kept by:
//   ParkedRecords.ComeIntoMemoryNoFasterThanRunsAreFinished.
class Lanes {
 public:
  Lanes(LanesSettings settings, Handler handler);  // starts the workers
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Takes in records of assigned partitions, in the order of their partitions, and drops all
  // others. Does not block. At most `room()` records a call keep within the limits.
  void offer(std::vector<LogRecord> records);

  // Schedules a run of the key, even without records, unless one is scheduled already. A run in
  // hand does not count as scheduled: another one follows it.
  void touch(const std::string& key);

  // The number of records that `offer` may take in now.
  [[nodiscard]] std::size_t room() const;
  // The number of records taken in and not finished, parked ones included.
  [[nodiscard]] std::size_t in_flight() const;

  // Waits until there is room for a quarter of `in_flight_limit`, `interrupt` is called or the time
  // is up. True when there is that much room. A quarter, because full lanes would else wake the
  // caller for each record.
  bool wait_for_room(std::chrono::milliseconds at_most);
  // Ends the `wait_for_room` that waits, or else the next one.
  void interrupt();

  // Begins to track partitions, each from its `committed` position, and touches the given keys.
  void assign(std::span<const PartitionRange> partitions,
              const std::vector<std::string>& touched = {});
  // Drops the waiting records of these partitions and waits up to `at_most` for their runs in hand.
  // Then stops tracking the partitions.
  [[nodiscard]] Revoked revoke(std::span<const std::int32_t> partitions,
                               std::chrono::milliseconds at_most);

  // The positions to commit: for each partition whose lowest unfinished position has moved since
  // the last call, the position before it.
  [[nodiscard]] std::vector<Position> finished();
  // After a failed commit: the next `finished` names every partition that has ever moved.
  void forget_reported();

  // Starts no more runs, drops the waiting records and waits up to `at_most` for the runs in hand.
  // True when no run is left. `touch` and `offer` do nothing from then on. May be called again.
  bool stop(std::chrono::milliseconds at_most);

 private:
  friend class Finish;
  class Impl;
  void finish(void* lane, Next next);
  std::unique_ptr<Impl> impl_;
};

}  // namespace conversed::queue
