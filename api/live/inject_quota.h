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
  // Whether other daemons accept injects of the same organisations and commit injects of this one.
  bool shared = false;
};

// The quota of injects. It counts the committed injects in the store, and the injects that this
// daemon accepted and that are not committed yet. It is exact in one daemon. Several daemons on one
// store report their accepted injects once a second, so together they may exceed a quota by the
// injects of a second or two. Thread-safe.
//
// Invariant: an inject that was taken is given back if its append fails or repeats another one.
// Kept by: IdempotencyKey.RepeatsDoNotCostQuota,
// Inject.TheQuotaCountsWhatIsInFlightAndWhatIsCommitted.
class InjectQuota {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  // Both must outlive this.
  InjectQuota(const QuotaLimits& limits, store::Usage& usage, const model::Clock& clock);

  // Changes the quota; `shared` stays. Injects in flight count when they are committed.
  void set_limits(const QuotaLimits& limits);

  // Takes one inject, which is in flight from now on. `quota_exhausted` if none is left. Reads the
  // store if the last reading is older than a second, or says that no inject is left.
  [[nodiscard]] model::Result<void> take(const std::string& organisation_id, TimePoint now);

  // The inject was not accepted: its append failed without an effect.
  void give_back(const std::string& organisation_id);

  // The turn worker calls this after each commit: the commit counted this many injects of the
  // organisation in the store (model::EventType::inject, one each, dead letters included).
  void committed(const std::string& organisation_id, std::int64_t injects);

  // If `shared`: the accepted injects since the last call, minus those given back. The caller adds
  // them to store::accepted_injects_counter in the store.
  struct Accepted {
    std::string organisation_id;
    std::int64_t injects = 0;
  };
  [[nodiscard]] std::vector<Accepted> take_accepted();

 private:
  struct Count {
    std::string month;
    std::int64_t stored = 0;            // at the last reading
    std::int64_t committed = 0;         // by this daemon, in all
    std::int64_t committed_before = 0;  // `committed` at the last reading; `stored` includes these
    std::int64_t in_flight = 0;  // accepted here and not committed yet; if shared, not reported yet
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
