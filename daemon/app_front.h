#pragma once

#include "api/audit_trail.h"
#include "api/auth/authenticator.h"
#include "api/live/assets_cache.h"
#include "api/live/blocking_pool.h"
#include "api/live/busy_sessions.h"
#include "api/live/history.h"
#include "api/live/inject_quota.h"
#include "api/live/pending_replies.h"
#include "api/live/rate_limiter.h"
#include "api/reasons/reasons.h"
#include "api/services.h"
#include "daemon/app_ground.h"
#include "daemon/data/backup.h"

// For app*.cc only.
namespace conversed::daemon {

// State in memory that requests share with Turns and with the other daemons. The ground must
// outlive it.
struct LiveParts {
  explicit LiveParts(Ground& ground);

  // Takes over the limits of reloaded settings.
  void take_limits(const config::Settings& settings);

  api::AssetsCache assets;
  api::InjectQuota quota;
  api::RateLimiter rate_limiter;
  api::RateLimiter public_limiter;
  api::BusySessions busy;
  api::PendingReplies pending_replies;
  api::KeyWatch watch;
  api::History history;
};

// The front group: the parts between the listeners and the operations.
struct FrontParts {
  // App::Parts::connect_operations connects `services` to the other groups. The ground, `live` and
  // the clock must outlive it. `embedded`: see BackupMaker.
  FrontParts(Ground& with, LiveParts& shared, const model::Clock& schedule_clock,
             api::JwtVerifier contact_center, queue::FileLog* embedded);

  // Ends all waits for outputs and jobs, takes no new requests, and waits for the answers of
  // accepted ones. False: some requests have no answer yet.
  [[nodiscard]] bool drain(std::chrono::milliseconds limit);
  // Ends all requests. `answered`: the result of `drain`.
  void stop(bool answered);

  Ground& ground;
  LiveParts& live;
  BackupMaker backups;
  const api::ApiOptions options;
  api::Authenticator authenticator;
  api::AuditTrail audit;
  api::Reasons reasons;
  api::BlockingPool pool;
  api::BlockingPool sign_ins;
  api::BlockingPool imports;
  api::Services services;
};

}  // namespace conversed::daemon
