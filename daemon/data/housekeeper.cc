#include "daemon/data/housekeeper.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "daemon/ops/logging.h"
#include "store/shards/move.h"
#include "store/store.h"

namespace conversed::daemon {
namespace {

using model::fail;
using model::Result;
using model::Timestamp;
using std::chrono::milliseconds;

// A repeated event is recognized if it waits in the log or an inbox for no longer than this.
constexpr milliseconds claim_lifetime = std::chrono::days(7);
// Sessions stay this long, even if transcripts are kept for a shorter time.
constexpr milliseconds min_session_age = std::chrono::hours(1);

Result<store::Sessions::Finished> finished_records(const HousekeeperSettings& settings) {
  if (settings.finished) return settings.finished();
  return [](const model::Position&) { return true; };
}

// Walks a table page by page; `prune` returns how far it has looked.
Result<void> walk(std::int64_t& removed, const std::function<bool()>& stopped, const auto& prune) {
  for (std::optional<std::int64_t> after = 0; after && !stopped();) {
    const auto page = prune(*after);
    if (!page) return fail(page.error());
    removed += page->removed;
    after = page->last_row;
  }
  return {};
}

Result<void> prune_transcripts(store::Shard& shard, const HousekeeperSettings& settings,
                               Timestamp now, const std::function<bool()>& stopped,
                               TidyReport& report) {
  const std::size_t batch = settings.batch;
  auto done = walk(report.outputs, stopped, [&](std::int64_t after) {
    return shard.outbox().prune(now - settings.transcripts, after, batch);
  });
  if (!done) return done;
  const auto finished = finished_records(settings);
  if (!finished) return fail(finished.error());
  // Reads all sessions. An index by activity would make every Turn write more.
  const auto session_age = std::max(settings.transcripts, min_session_age);
  return walk(report.sessions, stopped, [&](std::int64_t after) {
    return shard.sessions().prune(now - session_age, *finished, now - settings.receipts, after,
                                  batch);
  });
}

Result<void> erase_deleted_projects(store::Store& store, const HousekeeperSettings& settings,
                                    Timestamp now, const std::function<bool()>& stopped,
                                    TidyReport& report) {
  const auto finished = finished_records(settings);
  if (!finished) return fail(finished.error());
  auto erased =
      store::RemovedProjects(store.shards())
          .erase({.stopped = stopped, .finished = *finished, .forget_keys = settings.forget_keys},
                 now);
  if (!erased) return fail(erased.error());
  report.deleted_projects = *erased;
  return {};
}

// Repeats `prune` until it removes less than a whole batch.
Result<void> prune_all(std::size_t batch, std::int64_t& removed,
                       const std::function<bool()>& stopped, const auto& prune) {
  while (!stopped()) {
    const Result<std::int64_t> count = prune();
    if (!count) return fail(count.error());
    removed += *count;
    if (*count < static_cast<std::int64_t>(batch)) break;
  }
  return {};
}

Result<void> tidy_shard(store::Shard& shard, const HousekeeperSettings& settings, Timestamp now,
                        const std::function<bool()>& stopped, TidyReport& report) {
  const std::size_t batch = settings.batch;
  auto done = prune_all(batch, report.answers, stopped, [&] {
    const auto at = shard.timer_now();
    return shard.answers().prune(at, at - claim_lifetime, batch);
  });
  // Before the sessions, which stay while they have receipts.
  if (done) {
    done = prune_all(batch, report.receipts, stopped,
                     [&] { return shard.receipts().prune(now - settings.receipts, batch); });
  }
  if (done && settings.transcripts.count() > 0) {
    done = prune_transcripts(shard, settings, now, stopped, report);
  }
  if (done && settings.dead_letters.count() > 0) {
    done = prune_all(batch, report.dead_letters, stopped, [&] {
      return shard.dead_letters().prune(now - settings.dead_letters, batch);
    });
  }
  return done;
}

// Prunes old secrets of webhooks and old audit entries. Only the first shard has them.
Result<void> tidy_first(store::Store& store, const HousekeeperSettings& settings, Timestamp now,
                        const std::function<bool()>& stopped, TidyReport& report) {
  auto secrets = store.assets().forget_previous_secrets(now - settings.secret_overlap);
  if (!secrets) return fail(secrets.error());
  report.secrets = *secrets;
  if (settings.audit.count() == 0) return {};
  return prune_all(settings.batch, report.audit, stopped,
                   [&] { return store.audit().prune(now - settings.audit, settings.batch); });
}

// Deletes counts of ended ramps and, with several shards, leftovers of moves, old versions of
// Flows, and the health of deleted Endpoints: two shards have to be read for each.
Result<void> tidy_across_shards(store::Store& store) {
  store.assets().forget_ramp_counts();
  auto left = store::remove_leftovers(store.shards(), store.layout());
  if (!left) return fail(left.error());
  auto pruned = store.assets().prune_all_flow_versions();
  if (!pruned) return fail(pruned.error());
  return store.removals().forget_health();
}

}  // namespace

Result<TidyReport> tidy(store::Store& store, const HousekeeperSettings& settings, Timestamp now,
                        const std::function<bool()>& stopped) {
  TidyReport report;
  // A shard that fails keeps nothing else from being tidied.
  Result<void> done;
  const auto note = [&](Result<void> tidied) {
    if (!tidied) done = std::move(tidied);
  };
  for (const auto& shard : store.shards()) {
    note(tidy_shard(*shard, settings, now, stopped, report));
  }
  note(tidy_first(store, settings, now, stopped, report));
  note(tidy_across_shards(store));
  // Last: a large project takes long.
  note(erase_deleted_projects(store, settings, now, stopped, report));
  if (!done) return fail(done.error());
  return report;
}

Housekeeper::Housekeeper(HousekeeperSettings settings, store::Store& store,
                         const model::Clock& clock)
    : settings_(std::move(settings)), store_(store), clock_(clock) {}

Housekeeper::~Housekeeper() {
  stop();
}

Result<void> Housekeeper::start() {
  // Without a heartbeat: a round may take long, and no conversation waits for it.
  return thread_.start("housekeeper", nullptr, [this] { run(); });
}

void Housekeeper::stop() {
  stopping_ = true;
  thread_.stop();
}

void Housekeeper::run() {
  finish_key_rotation();
  for (;;) {
    make_round();
    const auto until = std::chrono::steady_clock::now() + settings_.interval;
    if (thread_.mailbox()->take(until).stop) return;
  }
}

void Housekeeper::finish_key_rotation() {
  if (!store_.key_rotation().is_unfinished()) return;
  auto done = store_.key_rotation().resume();
  if (done) {
    log::info(
        "secrets sealed anew by the newest master key",
        {{"key", done->key}, {"count", done->resealed}, {"replacedKey", done->kept.string()}});
  } else {
    log::error("the rotation of the master key can't be finished; the next start tries again",
               {{"error", done.error().message}});
  }
}

void Housekeeper::make_round() {
  if (settings_.also) settings_.also();
  if (!store_.committer().healthy() || (settings_.mine && !settings_.mine())) return;
  auto report = tidy(store_, settings_, clock_.now(), [this] { return stopping_.load(); });
  if (!report) {
    log::warn("old data could not be removed", {{"error", report.error().message}});
    return;
  }
  if (const auto& erased = report->deleted_projects; erased != store::RemovedProjects::Erased()) {
    log::info("data of deleted projects erased",
              {{"sessions", erased.sessions}, {"rows", erased.rows}});
  }
  if (report->outputs + report->sessions + report->dead_letters + report->audit +
          report->receipts ==
      0) {
    return;
  }
  log::info("old data removed", {{"outputs", report->outputs},
                                 {"sessions", report->sessions},
                                 {"deadLetters", report->dead_letters},
                                 {"receiptRows", report->receipts},
                                 {"auditEntries", report->audit}});
}

}  // namespace conversed::daemon
