#include "daemon/service/service_manager.h"

#include <systemd/sd-daemon.h>

#include <algorithm>
#include <cstdint>
#include <string>

namespace conversed::daemon {
namespace {

using std::chrono::microseconds;
using std::chrono::milliseconds;

constexpr int keep_environment = 0;

void send(const std::string& message) {
  // The result is ignored: a failed message can't be reported to the manager either.
  (void)sd_notify(keep_environment, message.c_str());
}

// A line break would begin the next assignment of the message.
std::string status_of(std::string_view status) {
  std::string line(status);
  std::replace(line.begin(), line.end(), '\n', ' ');
  return "STATUS=" + line;
}

}  // namespace

ServiceManager::ServiceManager() {
  std::uint64_t limit_us = 0;
  if (sd_watchdog_enabled(keep_environment, &limit_us) > 0) {
    watchdog_ = std::chrono::duration_cast<milliseconds>(microseconds(limit_us));
  }
}

void ServiceManager::ready(std::string_view status) const {
  send("READY=1\n" + status_of(status));
}

// With the time since boot, by which a manager tells this reload from an earlier one.
void ServiceManager::reloading(std::string_view status) const {
  const auto now =
      std::chrono::duration_cast<microseconds>(std::chrono::steady_clock::now().time_since_epoch());
  send("RELOADING=1\nMONOTONIC_USEC=" + std::to_string(now.count()) + "\n" + status_of(status));
}

void ServiceManager::stopping(std::string_view status) const {
  send("STOPPING=1\n" + status_of(status));
}

void ServiceManager::status(std::string_view status) const {
  send(status_of(status));
}

void ServiceManager::feed() const {
  send("WATCHDOG=1");
}

void ServiceManager::extend(milliseconds by) const {
  send("EXTEND_TIMEOUT_USEC=" + std::to_string(microseconds(by).count()));
}

}  // namespace conversed::daemon
