#pragma once

#include <atomic>
#include <chrono>
#include <cstdint>
#include <map>
#include <string>
#include <vector>

#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::store {
class Usage;
}

namespace conversed::api {

struct QuotaLimits {
  std::uint64_t injects_per_month = 0;  // of an organisation, by UTC months; 0: no quota
  // Whether other daemons accept injects of the same organisations, and may commit this one's.
  bool shared = false;
};

// The quota of injects: those that commits have counted in the store, and those that were accepted
// here and are not committed yet. Exact in one daemon. Several daemons on one store tell it once a
// second what they have accepted, so together they may exceed a quota by the injects of a second or
// two. Thread-safe.
//
// Invariant: an inject that was taken is given back if its append fails or repeats another one.
// Kept by: IdempotencyKey.RepeatsDoNotCostQuota,
// Inject.TheQuotaCountsWhatIsInFlightAndWhatIsCommitted.
class InjectQuota {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Both must outlive this.
  InjectQuota(const QuotaLimits& limits, store::Usage& usage, const model::Clock& clock);

  // From now on this quota holds; `shared` stays. What is in flight at this moment is counted once
  // it is committed.
  void set_limits(const QuotaLimits& limits);

  // Takes one inject, which is in flight from now on. `quota_exhausted` when there is none left.
  // Reads the store when what it knows is older than a second, or says that nothing is left.
  [[nodiscard]] model::Result<void> take(const std::string& organisation_id, TimePoint now);

  // The inject was not accepted after all: its append failed with nothing done.
  void give_back(const std::string& organisation_id);

  // For the turn worker, after each commit: so many injects of the organisation were counted in the
  // store by it (model::EventType::inject, one each, dead letters included).
  void committed(const std::string& organisation_id, std::int64_t injects);

  // Where it is shared: what was accepted here since the last call, given back taken off, to be
  // counted in the store as store::accepted_injects_counter.
  struct Accepted {
    std::string organisation_id;
    std::int64_t injects = 0;
  };
  [[nodiscard]] std::vector<Accepted> take_accepted();

 private:
  struct Count {
    std::string month;
    std::int64_t stored = 0;            // when it was read
    std::int64_t committed = 0;         // here, in all
    std::int64_t committed_before = 0;  // of these, when it was read: they are in `stored`
    std::int64_t in_flight = 0;         // accepted here, not committed yet; if shared, not told yet
    TimePoint read_at{};
    bool known = false;
  };

  [[nodiscard]] model::Result<void> refresh(const std::string& organisation_id,
                                            const std::string& month, TimePoint now);

  std::atomic<std::uint64_t> injects_per_month_;
  const bool shared_;
  store::Usage& usage_;
  const model::Clock& clock_;
  model::Guarded<std::map<std::string, Count, std::less<>>> counts_;
};

}  // namespace conversed::api
