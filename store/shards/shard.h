#pragma once

#include <filesystem>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/cluster/notifications.h"
#include "store/commit/committer.h"
#include "store/conversation/answers.h"
#include "store/conversation/attempts.h"
#include "store/conversation/calls.h"
#include "store/conversation/dead_letters.h"
#include "store/conversation/deliveries.h"
#include "store/conversation/endpoint_health.h"
#include "store/conversation/outbox.h"
#include "store/conversation/receipts.h"
#include "store/conversation/schedules.h"
#include "store/conversation/sessions.h"
#include "store/conversation/timers.h"
#include "store/conversation/user_data.h"
#include "store/model/clock.h"
#include "store/sql/database.h"
#include "store/sql/postgres_watch.h"

namespace conversed::store {

// Where a shard's rows are: in a file, or on a server.
struct ShardPlace {
  std::filesystem::path file{};
  std::optional<PostgresSettings> postgres{};
};

// The conversations of one database, the Committer that writes them, and the notifications of
// other daemons about them. Most stores are one shard (store.h). One thread opens and destroys it;
// the objects of the accessors are thread-safe.
class Shard {
 public:
  // `pulse`: of the database's server; null: it is a file. `clock` must outlive the shard.
  Shard(ShardPlace place, std::unique_ptr<Database> database, std::shared_ptr<PostgresPulse> pulse,
        const CommitterSettings& committer, const model::Clock& clock);
  Shard(const Shard&) = delete;
  Shard& operator=(const Shard&) = delete;
  ~Shard();  // stops

  // Begins to listen to the server. `heard` is called with each notification, before subscribers
  // are. Call it once, before the Committer starts. Does nothing for a file.
  [[nodiscard]] model::Result<void> watch(const std::function<void(std::string_view)>& heard);

  // Stops the Committer and the watch. Tolerates a second call.
  void stop();

  // Deletes the rows in `writers` of daemons that have been gone for a week. Fails fast.
  [[nodiscard]] model::Result<void> forget_writers();

  // The time by the clock of timers (daemon/timers/timer_clock.h), for due times and expiry.
  [[nodiscard]] model::Timestamp timer_now() const { return timer_clock_.now(); }

  // False while writes fail, and while the server is silent: then reads fail at once.
  [[nodiscard]] bool healthy() const;
  // Why it is not healthy: the last error, with the file of a store in a file. Contains no secret.
  // Empty: it is healthy.
  [[nodiscard]] std::string failure() const;

  // With its URL, which is never shown.
  [[nodiscard]] const ShardPlace& place() const { return place_; }

  // For other classes of the store.
  [[nodiscard]] Database& database() { return *database_; }

  [[nodiscard]] Committer& committer() { return committer_; }
  [[nodiscard]] Sessions& sessions() { return sessions_; }
  [[nodiscard]] Outbox& outbox() { return outbox_; }
  [[nodiscard]] Deliveries& deliveries() { return deliveries_; }
  [[nodiscard]] EndpointHealth& endpoint_health() { return endpoint_health_; }
  [[nodiscard]] Receipts& receipts() { return receipts_; }
  [[nodiscard]] Calls& calls() { return calls_; }
  [[nodiscard]] Schedules& schedules() { return schedules_; }
  [[nodiscard]] Timers& timers() { return timers_; }
  [[nodiscard]] DeadLetters& dead_letters() { return dead_letters_; }
  [[nodiscard]] Attempts& attempts() { return attempts_; }
  [[nodiscard]] Answers& answers() { return answers_; }
  [[nodiscard]] UserData& user_data() { return user_data_; }
  // Notifications of other daemons; none of a file.
  [[nodiscard]] Notifications& notifications() { return notifications_; }

 private:
  const ShardPlace place_;
  const std::unique_ptr<Database> database_;
  const model::Clock& timer_clock_;
  const std::shared_ptr<PostgresPulse> pulse_;
  Committer committer_;
  Sessions sessions_{*database_, committer_};
  Outbox outbox_{*database_, committer_};
  Deliveries deliveries_{*database_, committer_};
  EndpointHealth endpoint_health_{*database_, committer_};
  Receipts receipts_{*database_, committer_};
  Calls calls_{*database_, committer_};
  Schedules schedules_{*database_, committer_};
  Timers timers_{*database_, committer_};
  DeadLetters dead_letters_{*database_, committer_};
  Attempts attempts_{*database_, committer_};
  Answers answers_{*database_, committer_};
  UserData user_data_{*database_, committer_};
  Notifications notifications_;
  std::optional<PostgresWatch> watch_;
};

// Never empty. The first shard also has the rows that no session owns: accounts, assets, jobs.
using Shards = std::vector<std::unique_ptr<Shard>>;

}  // namespace conversed::store
