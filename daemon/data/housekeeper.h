#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "daemon/service/service.h"
#include "daemon/service/service_thread.h"
#include "store/conversation/sessions.h"
#include "store/model/clock.h"
#include "store/model/session_keys.h"
#include "store/shards/removed_projects.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

// How long each kind of data is kept; 0: forever, but no receipts.
struct HousekeeperSettings {
  std::chrono::milliseconds transcripts{0};
  std::chrono::milliseconds dead_letters{0};
  std::chrono::milliseconds audit{0};
  std::chrono::milliseconds receipts{0};
  // How long a webhook's replaced secret signs beside the new one; 0: not at all.
  std::chrono::milliseconds secret_overlap{24 * 3600'000};
  std::size_t batch = 500;                     // rows a transaction
  std::chrono::milliseconds interval{60'000};  // between two rounds
  std::function<void()> also{};                // in each round; may be empty
  // Asks the log which records are finished. A session with an unfinished record stays. Empty: all
  // records are finished.
  std::function<model::Result<store::Sessions::Finished>()> finished{};
  // Frees Idempotency-Keys of sessions in the log. May be empty.
  std::function<model::Result<void>(const model::KeyRange&)> forget_keys{};
  // In a cluster: whether this daemon makes the round. Empty: it always does.
  std::function<bool()> mine{};
};

struct TidyReport {
  std::int64_t outputs = 0;
  std::int64_t sessions = 0;
  std::int64_t dead_letters = 0;
  std::int64_t audit = 0;    // entries
  std::int64_t answers = 0;  // and claims
  std::int64_t secrets = 0;
  std::int64_t receipts = 0;  // or rows of plain deliveries, if more
  store::RemovedProjects::Erased deleted_projects{};
};

// One round: erases conversations of deleted projects, and removes rows that are older at `now`
// than their settings allow. Each batch is a transaction, so that commits of conversations need not
// wait for the whole round. Ends when no old rows are left, or when `stopped` returns true.
// Undelivered outputs stay, and so do sessions in which something waits or runs. Blocks on the
// disk. Errors: the store's; removed rows stay removed. Kept by:
// HousekeeperTest.PendingDeliveriesStay, HousekeeperTest.SessionWithAPendingTimerStays.
[[nodiscard]] model::Result<TidyReport> tidy(store::Store& store,
                                             const HousekeeperSettings& settings,
                                             model::Timestamp now,
                                             const std::function<bool()>& stopped);

// Background maintenance: finishes an interrupted rotation of the master key, then makes rounds of
// retention. One thread of its own does the work.
class Housekeeper final : public Service {
 public:
  // Both must outlive it.
  Housekeeper(HousekeeperSettings settings, store::Store& store, const model::Clock& clock);
  ~Housekeeper() override;

  [[nodiscard]] model::Result<void> start() override;
  void stop() override;  // waits for the running transaction

 private:
  struct Letters {
    bool stop = false;
  };
  void run();
  void finish_key_rotation();
  void make_round();

  const HousekeeperSettings settings_;
  store::Store& store_;
  const model::Clock& clock_;
  std::atomic<bool> stopping_{false};
  ServiceThread<Letters> thread_;  // last: it uses all others
};

}  // namespace conversed::daemon
