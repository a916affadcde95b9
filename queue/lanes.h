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

// What one call of the handler is given: the next records of one key, in order.
struct Run {
  std::string key;
  std::vector<LogRecord> records;  // at most max_run; none after `touch` or Next::again
  // The lane held more than lane_limit: `records` then has all of it up to spill_limit, and the
  // handler moves them elsewhere (the session's inbox) rather than work through them.
  bool spill = false;
  // Of the worker that calls the handler, which shows it between pieces of work that may take long;
  // good until the handler returns.
  model::Heartbeat* heartbeat = nullptr;
};

enum class Next : std::uint8_t {
  idle,   // call the handler again when there are records
  again,  // call it again in any case, in turn with the other keys
  // The run came to nothing and will not be tried again in this process, which is about to end: its
  // records stay unfinished, and nothing of its key runs any more.
  abandoned,
};

// How partitions were given up.
struct Revoked {
  std::vector<Position> finished;  // what to commit, as Lanes::finished has it
  bool complete = false;           // none of their runs is in hand any more
};

class Lanes;

// Says that a run is finished: its records need not be delivered again. To be called exactly once,
// from any thread, inside the handler or after it; destroyed uncalled it aborts the program, since
// its key would stand still for ever.
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

// Called on a worker thread with the next run of a key. Must not throw; may return before the run
// is finished.
using Handler = std::function<void(Run&&, Finish)>;

struct LanesSettings {
  std::size_t workers = 2;              // threads
  std::size_t max_run = 64;             // records
  std::size_t lane_limit = 256;         // records waiting in one lane; above, its next run spills
  std::size_t spill_limit = 4'096;      // records of a run that spills
  std::size_t in_flight_limit = 4'096;  // records taken in and not finished, over all keys
  // How many partitions the log has, where others read some of them: keys of partitions that are
  // not assigned are then not run for `touch` and Next::again, and `revoke` waits for such runs,
  // too. 0: all are read here.
  std::int32_t partitions = 0;
  // Where each worker has a heartbeat; must outlive the lanes. Null: nobody watches.
  model::Heartbeats* heartbeats = nullptr;
  // Whose the key is: the workers are divided fairly among these (shares.h). Asked when a lane
  // begins, under the lock: it must not block, nor call the lanes. Null: all are one's, who has all
  // workers.
  std::function<std::string(const std::string& key)> share_of{};
  // How time passes while workers run; for tests.
  std::function<std::chrono::steady_clock::time_point()> now = std::chrono::steady_clock::now;
};

// Keeps each key's records in order while any number of keys run side by side, and knows what is
// finished. Thread-safe; `offer`, `assign` and `revoke` are for the one thread that consumes.
//
// A run is in hand from the call of the handler until its Finish; one key has at most one in hand.
// The destructor waits for all runs in hand: whoever keeps a Finish calls it.
class Lanes {
 public:
  Lanes(LanesSettings settings, Handler handler);  // starts the workers
  ~Lanes();
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Takes in records of assigned partitions, in the order of their partitions; those of others are
  // dropped. Does not block; at most `room()` records a call keep the limit on what is in flight.
  void offer(std::vector<LogRecord> records);

  // Schedules a run of the key even if there are no records for it, unless one is scheduled
  // already. A run that is in hand does not count: another follows it.
  void touch(std::string key);

  // Records that may be taken in now.
  [[nodiscard]] std::size_t room() const;
  // Records taken in and not finished.
  [[nodiscard]] std::size_t in_flight() const;

  // Waits until a quarter of the limit is free (so that a full house does not cause a wake-up a
  // record), `interrupt` is called or the time is up; true when there is that much room.
  bool wait_for_room(std::chrono::milliseconds at_most);
  // Ends the `wait_for_room` that waits, or else the next one.
  void interrupt();

  // Starts to track partitions, each from its `committed`, and touches these keys.
  void assign(std::span<const PartitionRange> partitions, std::vector<std::string> touched = {});
  // Drops the waiting records of these partitions and waits up to `at_most` for those in hand. From
  // then on the partitions are not tracked.
  [[nodiscard]] Revoked revoke(std::span<const std::int32_t> partitions,
                               std::chrono::milliseconds at_most);

  // For each partition whose lowest unfinished position has moved since the last call, the last
  // position before it: what to commit.
  [[nodiscard]] std::vector<Position> finished();
  // Makes the next `finished` name every partition that has moved at all: after a failed commit.
  void forget_reported();

  // Starts no more runs, drops what waits and waits up to `at_most` for the runs in hand; true when
  // none is left. `touch` and `offer` do nothing from here on. May be called again.
  bool stop(std::chrono::milliseconds at_most);

 private:
  friend class Finish;
  class Impl;
  void finish(void* lane, Next next);
  std::unique_ptr<Impl> impl_;
};

}  // namespace conversed::queue
