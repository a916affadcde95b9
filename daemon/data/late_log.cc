#include "daemon/data/late_log.h"

#include <algorithm>
#include <chrono>
#include <condition_variable>
#include <mutex>
#include <span>
#include <stop_token>
#include <string>
#include <utility>

#include "store/model/event.h"

namespace conversed::daemon {

using model::Errc;
using model::fail;
using model::Result;

namespace {

constexpr std::chrono::milliseconds retry_interval{1'000};

// `conflict`, with a way out, if the log ends below a position of the store or is in an older
// epoch. Such a log was restored from an earlier state: its next records would look like
// redeliveries and be dropped.
Result<void> check_log_against_store(std::span<const queue::PartitionRange> log,
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

}  // namespace

Result<LogRanges> checked_ranges(queue::Log& log, store::Store& store) {
  // First the store, then the log: other daemons may extend the log meanwhile.
  const auto seen = store.highest_positions();
  if (!seen) return fail(seen.error());
  auto ranges = log.ranges();
  if (!ranges) return ranges;
  if (auto whole = check_log_against_store(*ranges, *seen); !whole) return fail(whole.error());
  auto settled = store.layout().settle(static_cast<std::int32_t>(ranges->size()));
  if (!settled) return fail(settled.error());
  return ranges;
}

bool may_come_back(const model::Error& error) {
  return error.code == Errc::unavailable || error.code == Errc::timed_out ||
         error.code == Errc::bad_upstream;
}

bool wait_a_while(const std::stop_token& stopping) {
  std::mutex mutex;
  std::condition_variable_any never;
  std::unique_lock lock(mutex);
  never.wait_for(lock, stopping, retry_interval, [] { return false; });
  return !stopping.stop_requested();
}

std::jthread look_for_log(std::function<Result<LogRanges>()> look,
                          std::function<void(Result<LogRanges>)> done) {
  return std::jthread(
      [look = std::move(look), done = std::move(done)](const std::stop_token& stopping) {
        do {
          auto ranges = look();
          if (ranges || !may_come_back(ranges.error())) return done(std::move(ranges));
        } while (wait_a_while(stopping));
      });
}

}  // namespace conversed::daemon
