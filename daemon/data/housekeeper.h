#pragma once

#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>

#include "daemon/service/service.h"
#include "daemon/service/service_thread.h"
#include "store/model/clock.h"

namespace conversed::store {
class Store;
}

namespace conversed::daemon {

// How long things are kept; 0: for ever.
struct HousekeeperSettings {
  std::chrono::milliseconds transcripts{0};
  std::chrono::milliseconds dead_letters{0};
  std::chrono::milliseconds audit{0};
  // How long a webhook's replaced secret is of use; 0: not at all.
  std::chrono::milliseconds secret_overlap{24 * 3600'000};
  std::size_t batch = 500;                     // rows a transaction
  std::chrono::milliseconds interval{60'000};  // between two rounds
  std::function<void()> also{};  // in each round, whatever the store does; may be empty
  // Whether this daemon makes the round, where several share the store. Empty: it does.
  std::function<bool()> mine{};
};

// What one round removed.
struct TidyReport {
  std::int64_t outputs = 0;
  std::int64_t sessions = 0;
  std::int64_t dead_letters = 0;
  std::int64_t audit = 0;    // entries
  std::int64_t answers = 0;  // and claims
  std::int64_t secrets = 0;
};

// One round: removes what is older at `now` than it is to be kept, a batch a transaction, so that
// commits of conversations come in between, until nothing is left to remove or `stopped` says so.
// What is still to be delivered stays, and so does a session in which something waits or is under
// way. Blocks on the disk. The error is the store's; what was removed stays removed.
[[nodiscard]] model::Result<TidyReport> tidy(store::Store& store,
                                             const HousekeeperSettings& settings,
                                             model::Timestamp now,
                                             const std::function<bool()>& stopped);

// Does what has time: finishes a rotation of the master key that was cut short, then makes rounds.
// One thread of its own does the work.
class Housekeeper final : public Service {
 public:
  // Both must outlive it.
  Housekeeper(HousekeeperSettings settings, store::Store& store, const model::Clock& clock);
  ~Housekeeper() override;

  [[nodiscard]] model::Result<void> start() override;
  void stop() override;  // after the transaction in hand
  [[nodiscard]] std::string_view name() const override;

 private:
  struct Letters {
    bool stop = false;
    [[nodiscard]] bool empty() const { return !stop; }
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
