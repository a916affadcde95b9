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
// event which brings the daemon down is known by having been the only one. Thread-safe once begun.
class Recovery {
 public:
  // Both must outlive it.
  Recovery(store::Store& store, const model::Clock& clock) : store_(store), clock_(clock) {}

  // Before anything runs; the Committer must be started.
  [[nodiscard]] model::Result<void> begin();

  // Where Lanes go one by one: below what can have been taken, if `in_flight` records a partition
  // are taken at most. Empty without a recovery.
  [[nodiscard]] std::map<std::int32_t, std::int64_t> one_by_one_below(
      std::span<const queue::PartitionRange> ranges, std::size_t in_flight) const;

  // For ChainContext.
  [[nodiscard]] std::optional<model::Timestamp> suspect_before() const { return suspect_before_; }

  // For a run that the Lanes have just handed out. The first one behind the recovery clears all
  // counts; blocks on the disk then.
  [[nodiscard]] Care care(const queue::Lanes& lanes);

  // False if there was none, and once it is over.
  [[nodiscard]] bool going_on() const { return going_on_.load(); }

  // Whether the Lanes have come to its end, or there was none.
  [[nodiscard]] bool done(const queue::Lanes& lanes) const;

 private:
  store::Store& store_;
  const model::Clock& clock_;
  std::atomic<bool> going_on_{false};
  std::mutex end_;  // held while it is set back
  std::optional<model::Timestamp> suspect_before_;
};

}  // namespace conversed::daemon
