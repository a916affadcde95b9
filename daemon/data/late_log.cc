#include "daemon/data/late_log.h"

#include <chrono>
#include <condition_variable>
#include <mutex>
#include <stop_token>
#include <utility>

#include "daemon/data/log_epoch.h"

namespace conversed::daemon {

using model::Errc;
using model::fail;
using model::Result;

namespace {

constexpr std::chrono::milliseconds retry_interval{1'000};

}  // namespace

Result<LogRanges> checked_ranges(queue::Log& log, store::Store& store) {
  // In this order, since other daemons may extend the log meanwhile.
  auto seen = store.sessions().highest_positions();
  if (!seen) return fail(seen.error());
  auto ranges = log.ranges();
  if (!ranges) return ranges;
  if (auto whole = check_log_against_store(*ranges, *seen); !whole) return fail(whole.error());
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

LateLog::~LateLog() {
  stop();
}

void LateLog::start(std::function<Result<LogRanges>()> look,
                    std::function<void(Result<LogRanges>)> done) {
  thread_ = std::jthread(
      [look = std::move(look), done = std::move(done)](const std::stop_token& stopping) {
        do {
          auto ranges = look();
          if (ranges || !may_come_back(ranges.error())) return done(std::move(ranges));
        } while (wait_a_while(stopping));
      });
}

void LateLog::stop() {
  thread_ = {};  // asks it to stop, and joins
}

}  // namespace conversed::daemon
