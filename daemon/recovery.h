#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <set>
#include <span>
#include <string>
#include <vector>

#include "daemon/chain.h"
#include "queue/log.h"
#include "store/model/clock.h"
#include "store/model/guarded.h"
#include "store/model/result.h"

namespace conversed::queue {
class Lanes;
}
namespace conversed::store {
class Store;
struct RecoveryMark;
}  // namespace conversed::store

namespace conversed::daemon {

// What an unclean stop asks for. What it left unfinished (records that had been taken from the log,
// and inboxes that could be drained) runs one by one, each start recorded before it, so that an
// event which brings the daemon down is known by having been the only one. How far that has to go
// is kept in the store from the first start behind that stop to the end of the recovery: what came
// later can't have run without a record, however often the daemon goes down meanwhile.
//
// One daemon that reads the whole log recovers it at its start (`begin`). Of several, each recovers
// the partitions that it takes up, wherever they were read before. Thread-safe once begun; taking
// up and giving up are for the one thread that consumes.
class Recovery {
 public:
  // Both must outlive it.
  Recovery(store::Store& store, const model::Clock& clock) : store_(store), clock_(clock) {}

  // Before anything runs; the Committer must be started. `ranges` are all partitions of the log, of
  // each of which at most `in_flight` records were taken and not finished. What it has found is
  // durable when it returns.
  [[nodiscard]] model::Result<void> begin(std::span<const queue::PartitionRange> ranges,
                                          std::size_t in_flight);

  // Where Lanes go one by one: partition -> offset, below what can have been taken. Empty without a
  // recovery.
  using Limits = std::map<std::int32_t, std::int64_t>;
  [[nodiscard]] const Limits& one_by_one_below() const { return one_by_one_below_; }

  // Instead of `begin`: this daemon's run of its own, new at each start.
  void begin_run(std::string run) { run_ = std::move(run); }
  // Takes these up: what a crash has left of them the Lanes have to go through one by one, as
  // above. Durable when it returns. `unavailable`, `timed_out`: to be asked again.
  [[nodiscard]] model::Result<Limits> take_up(std::span<const queue::PartitionRange> ranges,
                                              std::size_t in_flight);
  // The Lanes have been given what `take_up` returned.
  void taken_up();
  // These are about to go to another daemon, which goes on with what is recorded.
  void giving_up(std::span<const std::int32_t> partitions);
  // Nothing that was begun of them is unfinished; else they count as left behind.
  [[nodiscard]] model::Result<void> given_up(std::span<const std::int32_t> partitions);
  // Likewise of all.
  [[nodiscard]] model::Result<void> stopped();

  // For ChainContext: what was accepted before this may have brought a daemon down without a
  // record.
  [[nodiscard]] std::optional<model::Timestamp> suspect_before(std::int32_t partition) const;

  // For a run that the Lanes have just handed out. The first one behind the recovery clears what
  // is recorded of it; blocks on the disk then, but waits for no store that fails: as long as it
  // does, runs go on with care. `partition`: the run's, where partitions are recovered one by one;
  // of one that is not, there is nothing to record.
  [[nodiscard]] Care care(const queue::Lanes& lanes,
                          std::optional<std::int32_t> partition = std::nullopt);

  // False if there was none, and once it is over.
  [[nodiscard]] bool going_on() const { return going_on_.load(); }

  // Whether the Lanes have come to its end, or there was none.
  [[nodiscard]] bool done(const queue::Lanes& lanes) const;

 private:
  [[nodiscard]] model::Result<void> clear();
  void suspect(const store::RecoveryMark& mark);

  store::Store& store_;
  const model::Clock& clock_;
  std::atomic<bool> going_on_{false};
  std::atomic<bool> taking_up_{false};  // the Lanes are about to have what is to be recovered
  std::mutex end_;                      // held while it is set back; guards the next three
  bool clearing_failed_ = false;        // once said
  std::set<std::int32_t> taken_up_;     // partitions to be recovered that the Lanes don't have yet
  std::set<std::int32_t> recovering_;   // those that they have
  model::Guarded<std::map<std::int32_t, model::Timestamp>> suspects_;
  Limits one_by_one_below_;
  std::string run_;  // empty: of a daemon that reads the whole log
};

}  // namespace conversed::daemon
