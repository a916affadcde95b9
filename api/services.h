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
  std::vector<std::string> warnings;  // about its settings (config/load.h)
  model::Timestamp started_at{};
  // The tests' seam for time that only moves forward; limits and time-outs count by it.
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

// A daemon that shares the store and the log, as `status` shows it.
struct MemberView {
  std::string name;
  std::vector<std::string> roles;
  std::string version;
  std::vector<std::int32_t> partitions{};  // of the log, that it has now
  model::Timestamp seen_at{};              // when it last said that it is there
};

// The services of operations and of the router, by families of operations. An operation sees the
// services of its family only. The daemon's App owns all services. Each must outlive the last
// request and is thread-safe.
//
// The store needs a reading connection for each thread that calls in here: those of the HTTP
// server, those of `pool`, `sign_ins` and `imports`, and one each for `pending_replies` and
// `watch`.
//
// To stop: stop accepting requests and drain the server, then `sign_ins`, `pool`, `imports`,
// `pending_replies` and `watch`, then the log and the store.

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

// Operators look after conversations: sessions, schedules, timers, dead letters, a user's data.
struct SessionServices {
  const model::Clock& clock;
  const model::Clock& schedule_clock;  // that schedules and timers are planned by
  store::Store& store;
  queue::Log& log;
  Events& events;
  AssetsCache& assets;
  BusySessions& busy;
  PendingReplies& pending_replies;

  // Runs the session's lane once more (queue::Lanes::touch) if the session is this daemon's: a
  // reset may have freed its inbox. Other daemons hear of it
  // (store/cluster/notifications.h).
  std::function<void(const model::SessionKey&)> touch = {};
  // Delivers outputs that have become pending in the store (Deliverer::offer_earlier). Called on
  // the Committer's thread.
  std::function<void(const model::SessionKey&)> deliver = {};
  // Tells the scheduler of a schedule whose next time has just been stored.
  std::function<void(const model::Schedule&)> schedule = {};
  // Tells the scheduler that a timer falls due then, by the clock of timers
  // (store::Timers::Place): an operator has moved it.
  std::function<void(model::Timestamp due)> timer = {};
};

// For operations on a project's assets, and on the jobs that change them.
struct ProjectServices {
  const ApiOptions& options;
  const model::Clock& clock;
  store::Store& store;
  AssetsCache& assets;
  KeyWatch& watch;
  // Reads and imports bundles. The memory of one import is bounded, and one thread bounds the
  // memory of all.
  BlockingPool& imports;
};

// Organisations, users and what they sign in with, and the audit trail.
struct AccountServices {
  const ApiOptions& options;
  const model::Clock& clock;
  store::Store& store;
  Authenticator& authenticator;
  AuditTrail& audit;
  BlockingPool& pool;
  BlockingPool& sign_ins;
};

// The daemon itself: its state, its backups and key, and what describes it.
struct DaemonServices {
  const ApiOptions& options;
  const model::Clock& clock;
  store::Store& store;
  queue::Log& log;
  Events& events;
  PendingReplies& pending_replies;
  KeyWatch& watch;
  // Makes a backup of log and store under the name. An empty name stands for the time. Takes as
  // long as the disk does. Empty if there is nothing to back up (daemon/data/backup.h).
  std::function<model::Result<BackUpAnswer>(const std::string& name)> back_up = {};
  // The daemons that share the store, this one included. Empty: this one is alone.
  std::function<std::vector<MemberView>()> members = {};
};

// From a request to its operation: credentials, rates, the audit trail, the pools.
struct EntryServices {
  const ApiOptions& options;
  const model::Clock& clock;
  store::Store& store;
  Authenticator& authenticator;
  AuditTrail& audit;
  RateLimiter& rate_limiter;    // of keys and users
  RateLimiter& public_limiter;  // of addresses
  BlockingPool& pool;           // 2 threads and a queue of 64 do
  // Checks passwords and nothing else, so that it bounds the cost of guesses. One thread does. Its
  // names are addresses (api/auth/authenticator.h).
  BlockingPool& sign_ins;
  // For metrics: told of the answer of each inject that had a route, refused ones included.
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
