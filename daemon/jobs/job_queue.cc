#include "daemon/jobs/job_queue.h"

#include <chrono>
#include <utility>

#include "daemon/log/job_wake_up.h"
#include "daemon/ops/logging.h"

namespace conversed::daemon {

using model::Error;
using model::Result;

namespace {

// The handlers are quick.
constexpr std::chrono::seconds stop_wait{1};

void report_unread(const Error& error) {
  log::error("jobs' wake-ups can't be read: jobs are found in the store, some seconds later",
             {{"error", error.message}});
}

}  // namespace

JobQueue::JobQueue(std::unique_ptr<queue::Log> log, std::function<void(const std::string&)> woken)
    : log_(std::move(log)), woken_(std::move(woken)) {}

JobQueue::~JobQueue() {
  stop();
}

Result<void> JobQueue::start() {
  if (!woken_) return {};
  queue::LanesSettings settings;
  settings.workers = 1;
  lanes_ = std::make_unique<queue::Lanes>(settings, [this](queue::Run&& run, queue::Finish finish) {
    for (const auto& logged : run.records) {
      if (const auto id = woken_job(logged.record)) woken_(*id);
    }
    finish(queue::Next::idle);
  });
  late_log_ = look_for_log([this] { return log_->ranges(); },
                           [this](const Result<LogRanges>& found) { read(found); });
  return {};
}

void JobQueue::read(const Result<LogRanges>& found) {
  if (!found) return report_unread(found.error());
  queue::PumpSettings settings;
  settings.report = [](const Error& error) {
    log::warn("jobs' wake-ups can't be read; trying again", {{"error", error.message}});
  };
  settings.broken = report_unread;
  auto started = queue::Pump::start(std::move(settings), *log_, *lanes_);
  if (!started) return report_unread(started.error());
  pump_ = std::move(*started);
}

void JobQueue::stop() {
  late_log_ = {};  // asks it to stop, and joins
  if (pump_) {
    pump_->stop(stop_wait);
  } else if (lanes_) {
    (void)lanes_->stop(stop_wait);
  }
  log_->stop();
}

}  // namespace conversed::daemon
