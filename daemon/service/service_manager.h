#pragma once

#include <chrono>
#include <string_view>

namespace conversed::daemon {

// What started the daemon and wants to know how it is: systemd, or whoever else speaks sd_notify's
// protocol and names its socket in $NOTIFY_SOCKET. Where there is none, nothing is said. A message
// that can't be sent is dropped: a manager that went away is no reason to stop working.
//
// Thread-safe; the environment must not be changed while it is in use.
class ServiceManager {
 public:
  ServiceManager();

  // After this long without `feed` the manager ends the daemon; zero: it doesn't.
  [[nodiscard]] std::chrono::milliseconds watchdog() const { return watchdog_; }

  void ready(std::string_view status) const;
  void reloading(std::string_view status) const;
  void stopping(std::string_view status) const;
  void status(std::string_view status) const;  // one line
  void feed() const;                           // the watchdog
  // The start or the stop that goes on may take this long from now, if less was allowed before.
  void extend(std::chrono::milliseconds by) const;

 private:
  std::chrono::milliseconds watchdog_{0};
};

}  // namespace conversed::daemon
