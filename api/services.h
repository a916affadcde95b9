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
class History;
class InjectQuota;
class KeyWatch;
class RateLimiter;
class Reasons;

// The settings that the operations read.
struct ApiOptions {
  config::ApiSettings api;
  config::LimitSettings limits;
  model::Live<config::QuotaSettings> quota;
  config::ProactiveSettings proactive;
  config::OauthSettings oauth;
  bool runs_scripts = false;          // of `code` Nodes
  std::string version;                // of the program, as `status` shows it
  std::string member_name;            // this daemon's
  std::vector<std::string> warnings;  // about the daemon's settings (config/load.h)
  model::Timestamp started_at{};
  // A test can replace this steady clock. Limits and time-outs use it.
  std::function<std::chrono::steady_clock::time_point()> steady_now = [] {
    return std::chrono::steady_clock::now();
  };
};

struct BackUpAnswer {
  std::string name;
  std::string path;  // on the daemon's machine
  std::int64_t bytes = 0;
  model::Timestamp created_at{};
};

// The POSTs to an Endpoint's webhook in the last minutes, by this daemon.
struct DeliveryRate {
  std::chrono::seconds time{0};  // how long they were counted
  std::int64_t posts = 0;
  std::int64_t failed = 0;  // without an answer of 2xx
};
using DeliveryRates = std::function<DeliveryRate(const std::string& endpoint_id)>;

// A daemon that shares the store and the log, as `status` shows it.
struct MemberView {
  std::string name;
  std::vector<std::string> roles;
  std::string version;
  std::vector<std::int32_t> partitions{};  // of the log, that it owns now
  model::Timestamp seen_at{};              // when it last wrote its presence
};

// The services of the router and of operations, by families of operations. An operation sees only
// the services of its family. The daemon's App owns all services. Each must outlive the last
// request and is thread-safe.
//
// The store needs a reading connection for each thread that calls it from here: the threads of the
// HTTP server, of `pool`, `sign_ins` and `imports`, and one each for `pending_replies` and `watch`.
//
// Stop in this order: stop accepting requests and drain the server, then stop `sign_ins`, `pool`,
// `imports`, `pending_replies` and `watch`, then the log and the store.

// Users' messages, injects, notifies, and the outputs of a session.
struct MessageServices {
  const ApiOptions& options;
  const model::Clock& clock;
  store::Store& store;
  Events& events;
  AssetsCache& assets;
  InjectQuota& quota;
  BusySessions& busy;
  PendingReplies& pending_replies;
  KeyWatch& watch;
  BlockingPool& pool;
};

// Operators' work on conversations: sessions, schedules, timers, dead letters, a user's data.
struct SessionServices {
  const model::Clock& clock;
  const model::Clock& schedule_clock;  // the clock of schedules and timers
  store::Store& store;
  queue::Log& log;
  Events& events;
  AssetsCache& assets;
  BusySessions& busy;
  PendingReplies& pending_replies;
  KeyWatch& watch;
  const Reasons& reasons;
  // Runs tries of dead letters, too (ProjectServices::imports): one at a time.
  BlockingPool& imports;

  // Runs the session's lane once more (queue::Lanes::touch) if this daemon owns the session,
  // because a reset may have freed its inbox. Other daemons receive a notification
  // (store/cluster/notifications.h).
  std::function<void(const model::SessionKey&)> touch = {};
  // Drops the sessions in memory (store::RecentSessions), because a user was erased.
  std::function<void()> forget = {};
  // Delivers outputs that have become pending in the store (Deliverer::offer_earlier). Called on
  // the Committer's thread.
  std::function<void(const model::SessionKey&)> deliver = {};
  // Delivers the session's outputs now, even if its Endpoint fails or is paused
  // (Deliverer::retry).
  std::function<void(const model::SessionKey&)> retry = {};
  // Tries the Endpoint now that the end of its pause is stored (Deliverer::resume). In a cluster
  // both are empty: a notification reaches the sessions' owners.
  std::function<void(const std::string& endpoint_id)> resume_endpoint = {};
  // Empty: this daemon does not deliver.
  DeliveryRates delivery_rate = {};
  // Passes a schedule to the scheduler when its next time is stored.
  std::function<void(const model::Schedule&)> schedule = {};
  // Tells the scheduler the new due time of a timer that an operator has moved, by the clock of
  // timers (store::Timers::Place).
  std::function<void(model::Timestamp due)> timer = {};
};

// For operations on a project's assets, and on the jobs that change them.
struct ProjectServices {
  const ApiOptions& options;
  const model::Clock& clock;
  store::Store& store;
  AssetsCache& assets;
  KeyWatch& watch;
  // Reads and imports bundles. The memory of one import is bounded, and one thread runs all
  // imports, so their memory is bounded, too.
  BlockingPool& imports;
  // Empty: this daemon does not deliver.
  DeliveryRates delivery_rate = {};
};

// Organisations, users, their credentials, and the audit trail.
struct AccountServices {
  const ApiOptions& options;
  const model::Clock& clock;
  store::Store& store;
  Authenticator& authenticator;
  AuditTrail& audit;
  BlockingPool& pool;
  BlockingPool& sign_ins;
};

// The daemon itself: its state, its backups, its key, and the documents about it.
struct DaemonServices {
  const ApiOptions& options;
  const model::Clock& clock;
  store::Store& store;
  queue::Log& log;
  Events& events;
  PendingReplies& pending_replies;
  KeyWatch& watch;
  const History& history;
  // Makes a backup of log and store under the name, or under the time if the name is empty. Takes
  // as long as the disk needs. Empty if there is nothing to back up (daemon/data/backup.h).
  std::function<model::Result<BackUpAnswer>(const std::string& name)> back_up = {};
  // The daemons that share the store, this one included. Empty: this daemon runs alone.
  std::function<std::vector<MemberView>()> members = {};
};

// The way of a request to its operation: credentials, rates, the audit trail, the pools.
struct EntryServices {
  const ApiOptions& options;
  const model::Clock& clock;
  store::Store& store;
  Authenticator& authenticator;
  AuditTrail& audit;
  RateLimiter& rate_limiter;    // of keys and users
  RateLimiter& public_limiter;  // of addresses
  BlockingPool& pool;           // 2 threads and a queue of 64 are enough
  // Verifies passwords and nothing else. One thread is enough, and it bounds the cost of guesses.
  // Its names are addresses (api/auth/authenticator.h).
  BlockingPool& sign_ins;
  // Receives the answer of each inject that had a route, refused ones included. For metrics.
  AnswerObserver on_inject_answered = {};
};

struct Services {
  EntryServices entry;
  MessageServices messages;
  SessionServices sessions;
  ProjectServices projects;
  AccountServices accounts;
  DaemonServices daemon;
};

}  // namespace conversed::api
