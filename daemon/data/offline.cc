#include "daemon/data/offline.h"

#include <algorithm>

#include "daemon/data/data_folder.h"
#include "daemon/data/storage.h"
#include "daemon/service/open_files.h"
#include "store/accounts/passwords.h"

namespace conversed::daemon {

using model::fail;

model::Result<std::string> init(const config::Settings& settings,
                                const FirstOrganisation& organisation, const model::Clock& clock) {
  // Checked before any file is made.
  if (auto good = store::check_new_password(organisation.admin_password); !good) {
    return fail(good.error());
  }
  auto folder = DataFolder::open(settings.data_dir);
  if (!folder) return fail(folder.error());

  auto store = open_store(settings, clock, store::PostgresSettings::Place::none);
  if (!store) return fail(store.error());
  (*store)->committer().start();
  auto made = (*store)->accounts().create_first_organisation(
      organisation.name, {.email = organisation.admin_email,
                          .name = organisation.admin_email,
                          .roles = {"projectAdmin", "userAdmin", "platformAdmin"},
                          .password = organisation.admin_password});
  (*store)->committer().stop();
  if (!made) return fail(made.error());
  return made->id;
}

model::Result<std::int64_t> open_new_epoch(const config::Settings& settings,
                                           const model::Clock& clock) {
  raise_limit_of_open_files();  // the log opens all of its segments
  auto folder = DataFolder::open(settings.data_dir);
  if (!folder) return fail(folder.error());
  auto store = open_store(settings, clock, store::PostgresSettings::Place::alone);
  if (!store) return fail(store.error());
  auto log = open_log(settings, **store, clock);
  if (!log) return fail(log.error());
  // Another number of partitions needs another layout of the shards, which there is not.
  if ((*store)->shards().size() > 1) {
    const auto ranges = log->log->ranges();
    if (!ranges) return fail(ranges.error());
    auto settled = (*store)->layout().settle(static_cast<std::int32_t>(ranges->size()));
    if (!settled) return fail(settled.error());
  }
  auto seen = (*store)->highest_positions();
  if (!seen) return fail(seen.error());
  std::int64_t highest = 0;
  for (const auto& position : *seen) highest = std::max(highest, position.epoch);
  // Before the new epoch: this clears the marks of results and timers whose events were in the lost
  // log.
  for (const auto& shard : (*store)->shards()) {
    if (auto lost = shard->timers().log_lost(); !lost) return fail(lost.error());
  }
  auto epoch = log->log->new_epoch(highest);
  log->log->stop();
  return epoch;
}

}  // namespace conversed::daemon
