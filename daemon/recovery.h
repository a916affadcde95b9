#pragma once

#include <atomic>
#include <cstddef>
#include <cstdint>
#include <map>
#include <mutex>
#include <optional>
#include <span>

#include "daemon/chain.h"
#include "queue/log.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::queue {
class Lanes;
}
namespace conversed::store {
class Store;
}

namespace conversed::daemon {

// What an unclean stop asks for. What it left unfinished (records that had been taken from the log,
// and inboxes that could be drained) runs one by one, each start recorded before it, so that an
// event which brings the daemon down is known by having been the only one. How far that has to go
// is kept in the store from the first start behind that stop to the end of the recovery: what came
// later can't have run without a record, however often the daemon goes down meanwhile. Thread-safe
// once begun.
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
  [[nodiscard]] const std::map<std::int32_t, std::int64_t>& one_by_one_below() const {
    return one_by_one_below_;
  }

  // For ChainContext.
  [[nodiscard]] std::optional<model::Timestamp> suspect_before() const { return suspect_before_; }

  // For a run that the Lanes have just handed out. The first one behind the recovery clears what
  // is recorded of it; blocks on the disk then, but waits for no store that fails: as long as it
  // does, runs go on with care.
  [[nodiscard]] Care care(const queue::Lanes& lanes);

  // False if there was none, and once it is over.
  [[nodiscard]] bool going_on() const { return going_on_.load(); }

  // Whether the Lanes have come to its end, or there was none.
  [[nodiscard]] bool done(const queue::Lanes& lanes) const;

 private:
  store::Store& store_;
  const model::Clock& clock_;
  std::atomic<bool> going_on_{false};
  std::mutex end_;                // held while it is set back
  bool clearing_failed_ = false;  // once said; under `end_`
  std::optional<model::Timestamp> suspect_before_;
  std::map<std::int32_t, std::int64_t> one_by_one_below_;
};

}  // namespace conversed::daemon
