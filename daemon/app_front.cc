#include "daemon/app_front.h"

#include <utility>

#include "daemon/part_settings.h"
#include "daemon/reports.h"

namespace conversed::daemon {

using std::chrono::milliseconds;

namespace {

// They mostly wait for the disk; what waits for them holds a request with its body.
// The places of one are those of an organisation.
constexpr api::BlockingPool::Limits management_limits{
    .threads = 4, .waiting = 256, .waiting_of_one = 64};
// One core's worth at most for whoever guesses passwords, a few places for each address.
constexpr api::BlockingPool::Limits sign_in_limits{
    .threads = 1, .waiting = 512, .waiting_of_one = 4};
// A waiting import holds its body in memory. `waiting_of_one` is the limit of an organisation.
constexpr api::BlockingPool::Limits import_limits{.threads = 1, .waiting = 16, .waiting_of_one = 4};

}  // namespace

LiveParts::LiveParts(Ground& ground)
    : assets(ground.store->assets()),
      quota({.injects_per_month = ground.settings.quota.injects_per_month,
             .shared = in_cluster(ground.settings)},
            ground.store->usage(), ground.clock),
      rate_limiter(rate_limits(ground.settings.limits)),
      public_limiter(public_rate_limits(ground.settings.limits)) {}

FrontParts::FrontParts(Ground& with, LiveParts& shared, const model::Clock& schedule_clock,
                       api::JwtVerifier contact_center, queue::SqliteLog* embedded,
                       FrontPorts ports)
    : ground(with),
      live(shared),
      backups(with.settings, with.clock, embedded),
      options(api_options(with.settings, with.clock.now())),
      authenticator(*with.store, with.clock, lockout_limits(with.settings.sign_in),
                    std::move(contact_center), log_lockout),
      audit(with.store->audit(), log_audit),
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
                            .touch = std::move(ports.touch),
                            .deliver = std::move(ports.deliver),
                            .schedule = std::move(ports.schedule),
                            .timer = std::move(ports.timer)},
               .projects = {.options = options,
                            .clock = ground.clock,
                            .store = *ground.store,
                            .assets = live.assets,
                            .job_watch = live.job_watch,
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
                          .back_up =
                              [this](const std::string& name) {
                                return back_up(backups, ground.store->key_rotation(), name);
                              },
                          .members = std::move(ports.members)}} {}

bool FrontParts::drain(milliseconds limit) {
  if (!ground.door.has_api()) return true;
  live.watch.stop();
  live.job_watch.stop();
  return ground.door.drain(limit);
}

void FrontParts::stop(bool answered) {
  if (!answered) answered = ground.door.drain(milliseconds(500));
  live.pending_replies.stop();
  // The stop of the pending replies has just answered the rest 503.
  if (!answered) (void)ground.door.drain(milliseconds(200));
  ground.door.stop_api();
  sign_ins.stop();
  pool.stop();
  imports.stop();
}

}  // namespace conversed::daemon
