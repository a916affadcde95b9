#pragma once

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <mutex>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <thread>
#include <unordered_map>
#include <utility>
#include <vector>

#include "queue/log.h"
#include "queue/progress.h"
#include "queue/shares.h"
#include "store/model/keyed_hash.h"
#include "store/runtime/heartbeat.h"

namespace conversed::queue {

// The next records of one key, in order, for one call of the handler.
struct Run {
  std::string key;
  std::vector<LogRecord> records;  // at most max_run; none after `touch` or Next::again
  // The calling worker's heartbeat. The handler beats it between long pieces of work. Valid until
  // the handler returns.
  model::Heartbeat* heartbeat = nullptr;
  // On the first of the runs that the worker handles in a row: the keys of all of them, in their
  // order, so that the handler can read ahead. Empty on the others. Valid until the handler
  // returns.
  std::span<const std::string_view> in_a_row{};
};

enum class Next : std::uint8_t {
  idle,   // call the handler again when the lane has records
  again,  // call it again, even without records, behind the other ready lanes
  // The process is about to end and does not try the run again. Its records stay unfinished, and
  // its key does not run again.
  abandoned,
};

struct Revoked {
  std::vector<Position> finished;  // the positions to commit; see Lanes::finished
  bool complete = false;           // no run of the partitions is in hand
};

class Lanes;

// Marks a run as finished: its records need no second delivery. Call it exactly once, from any
// thread, inside the handler or later. Its destruction without a call aborts the program, because
// its lane would never run again.
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
  Finish(Lanes* lanes, LaneNode* lane) : lanes_(lanes), lane_(lane) {}
  Lanes* lanes_;
  LaneNode* lane_;
};

// Called on a worker thread with the next run of a key. Must not throw. May return before the run
// is finished.
using Handler = std::function<void(Run&&, Finish)>;

struct LanesSettings {
  std::size_t workers = 2;              // threads
  std::size_t max_run = 64;             // records
  std::size_t in_flight_limit = 4'096;  // records in memory; further records are parked
  std::size_t parked_limit = 0;         // parked records: the lanes keep only their positions
  // The records of runs in hand. A worker that finds this many begins no further run.
  std::size_t in_hand_limit = SIZE_MAX;
  // Log::read, for parked records; needed with a `parked_limit`. The workers call it side by side.
  // After an error the run's records are parked again, and its worker pauses for `retry_interval`.
  std::function<Result<std::vector<LogRecord>>(std::span<const Position>)> read{};
  std::chrono::milliseconds retry_interval{100};
  // The number of the log's partitions, where other daemons read some of them. `touch` and
  // Next::again then do not run keys of partitions that are not assigned here, and `revoke` waits
  // for such runs, too. 0: this daemon reads all partitions.
  std::int32_t partitions = 0;
  // Gets a heartbeat for each worker; must outlive the lanes. Null: none.
  model::Heartbeats* heartbeats = nullptr;
  // Names the share of a key, such as its organisation. Shares divide the workers fairly
  // (shares.h). Called under the lock, also by threads that append, which hold the log's lock: it
  // must not block, nor call the lanes or the log.
  // Null: one share has all workers.
  std::function<std::string(const std::string& key)> share_of{};
  // The clock of runs; for tests.
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
//   consumer before the records of others.
//   Kept by: ParkedRecords.LetAnotherShareRunBehindABacklog.
// - Records that can't be read stay unfinished, in front of their lane.
//   Kept by: ParkedRecords.ThatCanNotBeReadAreReadLaterAndStayInFrontOfNewRecords.
// - Parked records are read into memory no faster than runs are finished, so a stalled store does
//   not bring the backlog into memory.
//   Kept by: ParkedRecords.ComeIntoMemoryNoFasterThanRunsAreFinished.
class Lanes final : public Backlog {
 public:
  Lanes(LanesSettings settings, Handler handler);  // starts the workers
  ~Lanes() override;
  Lanes(const Lanes&) = delete;
  Lanes& operator=(const Lanes&) = delete;

  // Takes in records of assigned partitions, in the order of each partition, and drops all others.
  // Does not block. The caller offers at most `room()` records to keep within the limits.
  void offer(std::vector<LogRecord> records);

  // Schedules a run of the key, even without records, unless a run is scheduled. A run in hand does
  // not count: another run follows it.
  void touch(const std::string& key);

  // The number of records that `offer` may take in now.
  [[nodiscard]] std::size_t room() const;
  // The number of records taken in and not finished, parked ones included.
  [[nodiscard]] std::size_t in_flight() const override;
  [[nodiscard]] std::size_t in_flight_of_share(const std::string& key) const override;

  // Whether the key's lane is ready, but its share has as many workers as it may have.
  [[nodiscard]] bool waits_for_share(const std::string& key) const;

  // Waits until there is room for a quarter of `in_flight_limit`, `interrupt` is called or the time
  // is up. True: there is that much room. A quarter, because full lanes would otherwise wake the
  // caller for each record.
  bool wait_for_room(std::chrono::milliseconds at_most);
  // Ends the current `wait_for_room`, else the next one.
  void interrupt();

  // Begins to track partitions, each from its `committed` position, and touches these keys.
  void assign(std::span<const PartitionRange> partitions,
              const std::vector<std::string>& touched = {});
  // Drops the waiting records of these partitions and waits up to `at_most` for their runs in hand.
  // Then stops tracking the partitions. Records that are still in hand take no room any more.
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
  // Runs that one worker takes at once, which needs the lock less often than run by run.
  struct Taken {
    struct One {
      Run run;
      LaneNode* lane;
      std::vector<Position> parked;  // the run's records that must still be read
    };
    std::vector<One> runs;
    std::optional<Shares::Hold> hold;
    std::chrono::steady_clock::duration longest{};
  };

  void finish(LaneNode& node, Next next);
  void work(model::Heartbeat heartbeat);
  // Gives back the runs that were taken before, waits for runs and takes some. False: the lanes
  // stop.
  [[nodiscard]] bool take(Taken& taken, model::Heartbeat& heartbeat);
  // Reads the parked records of a run. False: the read failed, and the run is put off.
  [[nodiscard]] bool read(Taken::One& one);
  // Parks the run's records again, in front of all others of their lane. Records of a partition
  // that is lost, or about to be revoked, are dropped: its next owner reads them.
  void put_off(LaneNode& node, std::span<const Position> run);

  // The following functions need the lock.
  void begin_stop();
  void mark_touched(const std::string& key);
  [[nodiscard]] LaneNode& lane_of(const std::string& key);
  void make_ready(LaneNode& node);
  // Takes the lane's next run in hand. None: a revocation has left no records and no touch.
  [[nodiscard]] std::optional<Taken::One> next_run(LaneNode& node);
  void take_in_hand(Lane& lane, const Position& position);
  void give_up_in_hand(std::span<const std::int32_t> partitions);
  // Counts records of the lane that are in flight no more.
  void drop(Lane& lane, std::size_t records) {
    in_flight_ -= records;
    lane.share->records -= records;
  }
  // The lane's run is no longer in hand.
  void let_go(LaneNode& node);
  void erase(const LaneNode& node);
  // Whether this daemon certainly does not read the key's partition, or is about to give it up.
  [[nodiscard]] bool is_lost(std::string_view key) const;
  // Whether its partition is still in the same assignment as when the record was taken in.
  [[nodiscard]] bool is_tracked(const InHand& record) const;
  [[nodiscard]] bool roomy() const;
  // Parked records come into memory with their run. So the records in hand have their own bound,
  // besides the bound by the number of workers.
  [[nodiscard]] bool may_take() const { return in_hand_ < most_in_hand_ && shares_.may_take(); }
  void wake_workers();
  void wake_room();

  const LanesSettings settings_;
  const std::size_t most_ = settings_.in_flight_limit + settings_.parked_limit;  // in flight
  const std::size_t most_in_hand_ = std::min(
      settings_.in_hand_limit,
      settings_.in_flight_limit + settings_.workers * Shares::max_taken * settings_.max_run);
  const Handler handler_;

  mutable std::mutex mutex_;  // guards all following members except the threads
  std::condition_variable work_;
  std::condition_variable room_;
  std::condition_variable quiet_;
  std::unordered_map<std::string, Lane, model::KeyedHash, std::equal_to<>>
      lanes_;                                  // only lanes with records or a touch
  Shares shares_;                              // of ready lanes
  std::map<std::int32_t, Progress> progress_;  // by partition
  std::uint64_t generation_ = 0;
  std::size_t in_flight_ = 0;  // records taken in and not finished
  std::size_t parked_ = 0;     // of the records in flight
  std::size_t in_hand_ = 0;    // of the records in flight
  std::size_t runs_in_hand_ = 0;
  std::size_t idle_workers_ = 0;
  std::span<const std::int32_t> leaving_;  // of the running `revoke`
  bool waiting_for_room_ = false;
  bool interrupted_ = false;
  bool stopping_ = false;
  bool ended_ = false;

  std::vector<std::jthread> workers_;  // last: joined before the rest is destroyed
};

}  // namespace conversed::queue
