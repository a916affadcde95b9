#include "daemon/data/log_epoch.h"

#include <algorithm>
#include <string>
#include <utility>

#include "daemon/data/data_folder.h"
#include "daemon/data/storage.h"
#include "store/store.h"

namespace conversed::daemon {

using model::Errc;
using model::fail;

model::Result<void> check_log_against_store(std::span<const queue::PartitionRange> log,
                                            std::span<const model::Position> store) {
  for (const auto& seen : store) {
    const auto range = std::find_if(log.begin(), log.end(), [&](const auto& candidate) {
      return candidate.partition == seen.partition;
    });
    const bool behind = range == log.end() || range->epoch < seen.epoch ||
                        (range->epoch == seen.epoch && range->end <= seen.offset);
    if (behind) {
      return fail(Errc::conflict,
                  "the log is older than the store: partition " + std::to_string(seen.partition) +
                      " has to reach offset " + std::to_string(seen.offset) + " of epoch " +
                      std::to_string(seen.epoch) +
                      ". Restore the newer log, or, if it is lost, run `conversed new-epoch`");
    }
  }
  return {};
}

model::Result<std::int64_t> open_new_epoch(const config::Settings& settings,
                                           const model::Clock& clock) {
  auto folder = DataFolder::open(settings.data_dir);
  if (!folder) return fail(folder.error());
  auto store = open_store(settings, clock, store::PostgresSettings::Place::alone);
  if (!store) return fail(store.error());
  auto log = open_log(settings, **store, clock);
  if (!log) return fail(log.error());
  auto seen = (*store)->sessions().highest_positions();
  if (!seen) return fail(seen.error());
  std::int64_t highest = 0;
  for (const auto& position : *seen) highest = std::max(highest, position.epoch);
  if (log->jobs) {
    auto of_jobs = log->jobs->new_epoch(0);
    log->jobs->stop();
    if (!of_jobs) return of_jobs;
  }
  // Before the epoch: results and timers in the lost log would else never come.
  if (auto lost = (*store)->timers().log_lost(); !lost) return fail(lost.error());
  auto epoch = log->log->new_epoch(highest);
  log->log->stop();
  return epoch;
}

}  // namespace conversed::daemon
