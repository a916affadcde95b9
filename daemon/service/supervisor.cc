#include "daemon/service/supervisor.h"

#include <algorithm>
#include <condition_variable>
#include <iomanip>
#include <sstream>
#include <stop_token>
#include <utility>

#include "daemon/ops/joined.h"
#include "daemon/ops/logging.h"
#include "store/runtime/thread_name.h"

namespace conversed::daemon {
namespace {

using std::chrono::milliseconds;

constexpr milliseconds usual_interval{5'000};
// Without a watchdog, stalls are still logged.
constexpr milliseconds usual_stall_limit{30'000};
// The time that each look asks for; several looks may be late.
constexpr milliseconds start_extension{60'000};
// After the drain: joining threads, closing files.
constexpr milliseconds stop_margin{10'000};

}  // namespace

std::string describe(const Progress& before, const Progress& now,
                     std::chrono::duration<double> between) {
  if (!now.consuming) return "Starting: " + std::string(now.waits_for);
  std::string state = "Ready";
  if (!now.store_healthy) {
    state = "Not ready: the store can't be written to";
  } else if (!now.log_healthy) {
    state = "Not ready: the log can't be reached";
  }
  const auto rate = [&](std::uint64_t earlier, std::uint64_t later) {
    return between.count() > 0 ? static_cast<double>(later - earlier) / between.count() : 0.0;
  };
  std::ostringstream text;
  text << std::fixed << std::setprecision(1) << state
       << ". Events accepted: " << rate(before.appended, now.appended)
       << "/s, Turns: " << rate(before.turns, now.turns)
       << "/s, delivered: " << rate(before.delivered, now.delivered)
       << "/s, in flight: " << now.in_flight;
  return std::move(text).str();
}

Supervisor::Supervisor(ServiceManager manager, model::Heartbeats& heartbeats,
                       std::function<Progress()> progress)
    : manager_(manager),
      heartbeats_(heartbeats),
      progress_(std::move(progress)),
      stall_limit_(manager.watchdog() > milliseconds(0) ? manager.watchdog() / 2
                                                        : usual_stall_limit),
      last_at_(std::chrono::steady_clock::now()) {}

Supervisor::~Supervisor() {
  stop();
}

milliseconds Supervisor::interval() const {
  const milliseconds watchdog = manager_.watchdog();
  return watchdog > milliseconds(0) ? std::min(usual_interval, watchdog / 4) : usual_interval;
}

model::Result<void> Supervisor::start() {
  thread_ = std::jthread([this](const std::stop_token& stopping) {
    model::name_this_thread("supervisor");
    std::mutex mutex;
    std::condition_variable_any never;
    std::unique_lock lock(mutex);
    while (!stopping.stop_requested()) {
      look(std::chrono::steady_clock::now());
      never.wait_for(lock, stopping, interval(), [] { return false; });
    }
  });
  return {};
}

void Supervisor::stop() {
  thread_ = {};  // asks it to stop, and joins
}

void Supervisor::consuming() {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::starting) return;
  phase_ = Phase::ready;
  last_ = progress_();
  last_at_ = std::chrono::steady_clock::now();
  said_ = describe(last_, last_, {});
  manager_.ready(said_);
}

void Supervisor::reloading() {
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::ready) manager_.reloading("Reads the settings again");
}

void Supervisor::reloaded(const std::string& outcome) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::ready) return;
  said_ = outcome;
  manager_.ready(outcome);
}

void Supervisor::stopping(milliseconds limit) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(phase_, Phase::stopping) == Phase::stopping) return;
  manager_.stopping("Answers and commits what was accepted, then ends");
  manager_.extend(limit + stop_margin);
}

void Supervisor::look(Time now) {
  const auto stalled = heartbeats_.stalled(now, stall_limit_);
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::stopping) return;
  if (const std::string names = joined(stalled); names != stalled_) {
    if (!names.empty()) {
      log::error("loops make no progress", {{"loops", names}, {"forMs", stall_limit_.count()}});
    } else {
      log::warn("all loops make progress again");
    }
    stalled_ = names;
  }
  // Repeated at each look, so that the last status before the watchdog acts names the loops.
  if (!stalled.empty()) return manager_.status("No progress: " + stalled_);
  if (manager_.watchdog() > milliseconds(0)) manager_.feed();
  if (phase_ == Phase::starting) manager_.extend(start_extension);
  say_progress(now);
}

void Supervisor::say_progress(Time now) {
  const Progress progress = progress_();
  std::string status = describe(last_, progress, now - last_at_);
  last_ = progress;
  last_at_ = now;
  if (status == said_) return;
  said_ = std::move(status);
  manager_.status(said_);
}

}  // namespace conversed::daemon
