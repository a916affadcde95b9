#pragma once

#include <chrono>
#include <string_view>

namespace conversed::daemon {

// Tells systemd, or another service manager with sd_notify's protocol, how the daemon is. The
// manager names its socket in $NOTIFY_SOCKET; without one nothing is sent. A message that can't be
// sent is dropped: the daemon works without its manager.
//
// Thread-safe; the environment must not be changed while it is in use.
class ServiceManager {
 public:
  ServiceManager();

  // The manager ends the daemon after this long without `feed`. Zero: it does not.
  [[nodiscard]] std::chrono::milliseconds watchdog() const { return watchdog_; }

  void ready(std::string_view status) const;
  void reloading(std::string_view status) const;
  void stopping(std::string_view status) const;
  void status(std::string_view status) const;  // one line
  void feed() const;                           // the watchdog
  // Asks for at least this long, from now, for the start or the stop that goes on.
  void extend(std::chrono::milliseconds by) const;

 private:
  std::chrono::milliseconds watchdog_{0};
};

}  // namespace conversed::daemon
