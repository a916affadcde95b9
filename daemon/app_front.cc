#include "daemon/app_front.h"

#include <utility>

#include "config/load.h"
#include "daemon/data/storage.h"
#include "daemon/ops/logging.h"
#include "daemon/ops/version.h"
#include "store/accounts/audit.h"
#include "store/secrets/key_rotation.h"

namespace conversed::daemon {

using std::chrono::milliseconds;

namespace {

// The threads mostly wait for the disk. A waiting call holds a request with its body.
// `waiting_of_one` is the limit of an organization.
constexpr api::BlockingPool::Limits management_limits{
    .threads = 4, .waiting = 256, .waiting_of_one = 64};
// Guessing passwords takes one core at most, and a few places per address. A browser asks on six
// connections at once. Its first check also answers the requests that wait behind it.
constexpr api::BlockingPool::Limits sign_in_limits{
    .threads = 1, .waiting = 512, .waiting_of_one = 16};
// A waiting import holds its body in memory. `waiting_of_one` is the limit of an organization.
constexpr api::BlockingPool::Limits import_limits{.threads = 1, .waiting = 16, .waiting_of_one = 4};

api::RateLimits rate_limits(const config::LimitSettings& settings,
                            std::uint32_t requests_per_second) {
  return {.requests_per_second = requests_per_second, .burst = settings.burst};
}

api::ApiOptions api_options(const config::Settings& settings, model::Timestamp started_at) {
  api::ApiOptions options;
  options.api = settings.api;
  options.limits = settings.limits;
  options.quota = model::Live<config::QuotaSettings>(settings.quota);
  options.proactive = settings.proactive;
  options.oauth = settings.oauth;
  options.runs_scripts = settings.flows.code;
  options.warnings = config::warnings_of(settings);
  options.version = version;
  options.member_name = member_name(settings);
  options.started_at = started_at;
  return options;
}

// The line names no account, since a user may have typed the password there.
void log_lockout(std::string_view what, std::string_view address) {
  log::warn("locked out after wrong passwords", {{"what", what}, {"clientAddress", address}});
}

void log_audit(const store::AuditEntry& entry) {
  log::info("audit", {{"actor", entry.actor},
                      {"signedInBy", entry.credential},  // its kind and id
                      {"clientAddress", entry.address},
                      {"operation", entry.operation},
                      {"route", entry.route},
                      {"object", entry.object},
                      {"projectId", entry.project_id},
                      {"status", entry.status},
                      {"traceId", entry.trace_id}});
}

// `conflict` while the master key is rotated, since the backup would need both keys.
model::Result<api::BackUpAnswer> back_up(BackupMaker& backups, store::KeyRotation& keys,
                                         const std::string& name) {
  const auto one_key = keys.hold();
  auto made =
      one_key ? backups.make(name) : model::Result<MadeBackup>(model::fail(one_key.error()));
  if (!made) {
    log::warn("no backup made", {{"error", made.error().message}});
    return model::fail(made.error());
  }
  log::info("backup made", {{"path", made->path.string()}, {"bytes", made->manifest.bytes()}});
  return api::BackUpAnswer{made->path.filename().string(), made->path.string(),
                           made->manifest.bytes(), made->manifest.created_at};
}

}  // namespace

LiveParts::LiveParts(Ground& ground)
    : assets(ground.store->assets()),
      quota({.injects_per_month = ground.settings.quota.injects_per_month,
             .shared = in_cluster(ground.settings)},
            ground.store->usage(), ground.clock),
      rate_limiter(rate_limits(ground.settings.limits, ground.settings.limits.requests_per_second)),
      public_limiter(
          rate_limits(ground.settings.limits, ground.settings.limits.public_requests_per_second)) {}

void LiveParts::take_limits(const config::Settings& settings) {
  const config::LimitSettings& limits = settings.limits;
  rate_limiter.set_limits(rate_limits(limits, limits.requests_per_second));
  public_limiter.set_limits(rate_limits(limits, limits.public_requests_per_second));
  quota.set_limits({.injects_per_month = settings.quota.injects_per_month});
}

FrontParts::FrontParts(Ground& with, LiveParts& shared, const model::Clock& schedule_clock,
                       api::JwtVerifier contact_center, queue::FileLog* embedded)
    : ground(with),
      live(shared),
      backups(with.settings, with.clock, embedded),
      options(api_options(with.settings, with.clock.now())),
      authenticator(*with.store, with.clock,
                    {.account_failures = with.settings.sign_in.account_failures,
                     .address_failures = with.settings.sign_in.address_failures,
                     .window = with.settings.sign_in.lockout},
                    std::move(contact_center), log_lockout),
      audit(with.store->audit(), log_audit),
      reasons(*with.store, live.assets, *with.log, schedule_clock, with.settings.limits.inbox),
      pool(management_limits),
      sign_ins(sign_in_limits),
      imports(import_limits),
      services{.entry = {.options = options,
                         .clock = ground.clock,
                         .store = *ground.store,
                         .authenticator = authenticator,
                         .audit = audit,
                         .rate_limiter = live.rate_limiter,
                         .public_limiter = live.public_limiter,
                         .pool = pool,
                         .sign_ins = sign_ins,
                         .on_inject_answered =
                             [this](int status, std::chrono::steady_clock::duration took) {
                               ground.metrics.inject_answered(status, took);
                             }},
               .messages = {.options = options,
                            .clock = ground.clock,
                            .store = *ground.store,
                            .events = ground.events,
                            .assets = live.assets,
                            .quota = live.quota,
                            .busy = live.busy,
                            .pending_replies = live.pending_replies,
                            .watch = live.watch,
                            .pool = pool},
               .sessions = {.clock = ground.clock,
                            .schedule_clock = schedule_clock,
                            .store = *ground.store,
                            .log = *ground.log,
                            .events = ground.events,
                            .assets = live.assets,
                            .busy = live.busy,
                            .pending_replies = live.pending_replies,
                            .watch = live.watch,
                            .reasons = reasons,
                            .imports = imports},
               .projects = {.options = options,
                            .clock = ground.clock,
                            .store = *ground.store,
                            .assets = live.assets,
                            .watch = live.watch,
                            .imports = imports},
               .accounts = {.options = options,
                            .clock = ground.clock,
                            .store = *ground.store,
                            .authenticator = authenticator,
                            .audit = audit,
                            .pool = pool,
                            .sign_ins = sign_ins},
               .daemon = {.options = options,
                          .clock = ground.clock,
                          .store = *ground.store,
                          .log = *ground.log,
                          .events = ground.events,
                          .pending_replies = live.pending_replies,
                          .watch = live.watch,
                          .history = live.history,
                          .back_up = [this](const std::string& name) {
                            return back_up(backups, ground.store->key_rotation(), name);
                          }}} {}

bool FrontParts::drain(milliseconds limit) {
  if (!ground.door.has_api()) return true;
  live.watch.stop();
  return ground.door.drain(limit);
}

void FrontParts::stop(bool answered) {
  if (!answered) answered = ground.door.drain(milliseconds(500));
  live.pending_replies.stop();
  // The stop of the pending replies has just answered the others 503. Their responses are still
  // being written.
  if (!answered) (void)ground.door.drain(milliseconds(200));
  ground.door.stop_api();
  sign_ins.stop();
  pool.stop();
  imports.stop();
}

}  // namespace conversed::daemon
