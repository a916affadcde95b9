#include "daemon/service/supervisor.h"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <condition_variable>
#include <iomanip>
#include <sstream>
#include <stop_token>
#include <utility>

#include "daemon/ops/logging.h"
#include "store/runtime/thread_name.h"
#include "store/text/joined.h"

namespace conversed::daemon {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr milliseconds usual_interval{5'000};
// Without a watchdog, stalls are still logged.
constexpr milliseconds usual_stall_limit{30'000};
// The extension that each look asks for. It allows several late looks.
constexpr milliseconds start_extension{60'000};
// After the drain: joining threads, closing files.
constexpr milliseconds stop_margin{10'000};

constexpr int keep_environment = 0;

void tell(const std::string& message) {
  (void)sd_notify(keep_environment, message.c_str());
}

// A line break would begin the next assignment of the message.
std::string status_line(std::string line) {
  std::ranges::replace(line, '\n', ' ');
  return "STATUS=" + line;
}

// Asks the manager to allow the running start or stop at least this long from now.
void extend(milliseconds by) {
  tell("EXTEND_TIMEOUT_USEC=" + std::to_string(microseconds(by).count()));
}

milliseconds watchdog_of_manager() {
  std::uint64_t limit_us = 0;
  if (sd_watchdog_enabled(keep_environment, &limit_us) <= 0) return milliseconds(0);
  return std::chrono::duration_cast<milliseconds>(microseconds(limit_us));
}

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

Supervisor::Supervisor(model::Heartbeats& heartbeats, std::function<Progress()> progress)
    : heartbeats_(heartbeats),
      progress_(std::move(progress)),
      watchdog_(watchdog_of_manager()),
      stall_limit_(watchdog_ > milliseconds(0) ? watchdog_ / 2 : usual_stall_limit),
      last_at_(std::chrono::steady_clock::now()) {}

milliseconds Supervisor::interval() const {
  return watchdog_ > milliseconds(0) ? std::min(usual_interval, watchdog_ / 4) : usual_interval;
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

void Supervisor::consuming() {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::starting) return;
  phase_ = Phase::ready;
  last_ = progress_();
  last_at_ = std::chrono::steady_clock::now();
  said_ = describe(last_, last_, {});
  tell("READY=1\n" + status_line(said_));
}

void Supervisor::reloading() {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::ready) return;
  // The time since boot tells the manager this reload from an earlier one.
  const auto now =
      std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now().time_since_epoch());
  tell("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now.count()) + "\n" +
       status_line("Reading the settings again"));
}

void Supervisor::reloaded(const std::string& outcome) {
  const std::lock_guard lock(mutex_);
  if (phase_ != Phase::ready) return;
  said_ = outcome;
  tell("READY=1\n" + status_line(said_));
}

void Supervisor::stopping(milliseconds limit) {
  const std::lock_guard lock(mutex_);
  if (std::exchange(phase_, Phase::stopping) == Phase::stopping) return;
  tell("STOPPING=1\n" + status_line("Answering and committing accepted requests, then ending"));
  extend(limit + stop_margin);
}

void Supervisor::look(Time now) {
  const auto stalled = heartbeats_.stalled(now, stall_limit_);
  const std::lock_guard lock(mutex_);
  if (phase_ == Phase::stopping) return;
  if (const std::string names = text::joined(stalled); names != stalled_) {
    if (!names.empty()) {
      log::error("loops make no progress", {{"loops", names}, {"forMs", stall_limit_.count()}});
    } else {
      log::warn("all loops make progress again");
    }
    stalled_ = names;
  }
  // Repeated at each look, so that the last status before the watchdog acts names the loops.
  if (!stalled.empty()) return tell(status_line("No progress: " + stalled_));
  if (watchdog_ > milliseconds(0)) tell("WATCHDOG=1");
  if (phase_ == Phase::starting) extend(start_extension);
  say_progress(now);
}

void Supervisor::say_progress(Time now) {
  const Progress progress = progress_();
  std::string status = describe(last_, progress, now - last_at_);
  last_ = progress;
  last_at_ = now;
  if (status == said_) return;
  said_ = std::move(status);
  tell(status_line(said_));
}

}  // namespace conversed::daemon
