#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <string>
#include <vector>

#include "api/http/http.h"
#include "config/settings.h"
#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"
#include "store/model/schedule.h"
#include "store/runtime/live.h"

namespace conversed::store {
class Store;
}
namespace conversed::queue {
class Log;
}

namespace conversed::api {

class PendingReplies;
class AssetsCache;
class AuditTrail;
class Authenticator;
class BlockingPool;
class BusySessions;
class Events;
class InjectQuota;
class KeyWatch;
class OutputWatch;
class RateLimiter;

// What the operations read of the settings.
struct ApiOptions {
  config::ApiSettings api;
  config::LimitSettings limits;
  model::Live<config::QuotaSettings> quota;
  config::ProactiveSettings proactive;
  config::OauthSettings oauth;
  std::string version;                // of the program, as `status` shows it
  std::string member_name;            // this daemon's
  std::vector<std::string> warnings;  // about its settings (config/warnings.h)
  model::Timestamp started_at{};
  // The tests' seam for time that only moves forward; limits and time-outs count by it.
  std::function<std::chrono::steady_clock::time_point()> steady_now = [] {
    return std::chrono::steady_clock::now();
  };
};

// A backup that was made.
struct BackUpAnswer {
  std::string name;
  std::string path;  // on the daemon's machine
  std::int64_t bytes = 0;
  model::Timestamp created_at{};
};

// A daemon that shares the store and the log, as `status` shows it.
struct MemberView {
  std::string name;
  std::vector<std::string> roles;
  std::string version;
  std::vector<std::int32_t> partitions;  // of the log, that it has now
  model::Timestamp seen_at{};            // when it last said that it is there
};

// What the operations work with. The daemon's App owns all of it; everything must outlive the last
// request, and each is thread-safe.
//
// The store needs a reading connection for each thread that calls in here: those of the HTTP
// server, those of `pool`, `sign_ins` and `imports`, and one each for `pending_replies`, `watch`
// and `job_watch`.
//
// To stop: stop accepting requests and drain the server, then `sign_ins`, `pool`, `imports`,
// `pending_replies`, `watch` and `job_watch`, then the log and the store.
struct Services {
  const ApiOptions& options;
  const model::Clock& clock;
  const model::Clock& schedule_clock;  // that schedules and timers are planned by
  store::Store& store;
  queue::Log& log;
  Events& events;
  AssetsCache& assets;
  Authenticator& authenticator;
  AuditTrail& audit;
  RateLimiter& rate_limiter;    // of keys and users
  RateLimiter& public_limiter;  // of addresses
  InjectQuota& quota;
  BusySessions& busy;
  PendingReplies& pending_replies;
  OutputWatch& watch;
  KeyWatch& job_watch;
  BlockingPool& pool;  // 2 threads and a queue of 64 do
  // Checks passwords and nothing else: it is what bounds the cost of guesses. One thread does. Its
  // names are addresses (api/auth/sign_in_queue.h).
  BlockingPool& sign_ins;
  // Reads bundles and imports them: what each takes of memory is bounded, and one thread bounds
  // what they take together.
  BlockingPool& imports;

  // Has the session's lane run once more (queue::Lanes::touch), if it is this daemon's, from any
  // thread: a reset may have freed its inbox. Others hear of it
  // (store/cluster/session_notifications.h).
  std::function<void(const model::SessionKey&)> touch = {};

  // Has outputs delivered that have become pending in the store (Deliverer::offer_earlier), as
  // above. Called on the Committer's thread.
  std::function<void(const model::SessionKey&)> deliver = {};

  // Has the scheduler know of a schedule whose next time has just been stored.
  std::function<void(const model::Schedule&)> schedule = {};
  // Has the scheduler know that a timer falls due then, by the clock of timers
  // (store::PendingTimers::Place): an operator has put it off or forward.
  std::function<void(model::Timestamp due)> timer = {};
  // Makes a backup of log and store under the name, or one of its own choice if that is empty
  // (daemon/data/backup.h). Takes as long as the disk does. Empty where there is nothing to back
  // up.
  std::function<model::Result<BackUpAnswer>(const std::string& name)> back_up = {};

  // The daemons that are there, this one included; at least that one. Empty: there is one.
  std::function<std::vector<MemberView>()> members = {};

  // For metrics: told of the answer of each inject that had a route, refused ones included.
  AnswerObserver on_inject_answered = {};
};

}  // namespace conversed::api
