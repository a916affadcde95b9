#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>

#include "api/auth/digest.h"
#include "store/model/guarded.h"

namespace conversed::api {

struct LockoutLimits {
  std::uint32_t account_failures = 10;
  std::uint32_t address_failures = 100;  // 0: addresses are not counted
  std::chrono::milliseconds duration = std::chrono::minutes(5);
  std::size_t max_names = 16'384;  // remembered, of accounts and of addresses each
};

// Counts wrong passwords by account and by address, and says when to listen to neither any more.
// Accounts are counted whether or not they exist, so that nothing tells which do. Thread-safe.
//
// Whoever is locked out stays so until `duration` has passed since the last failure that counted;
// what is tried meanwhile is not looked at and does not count. A right password clears its account
// but not its address: a guesser may have an account, too. Beyond `max_names` the name that failed
// longest ago is forgotten. Nothing is kept over a restart.
class Lockout {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Lockout(const LockoutLimits& limits) : limits_(limits) {}

  [[nodiscard]] bool locked(std::string_view account, std::string_view address, TimePoint now);
  // What this failure was the last one of.
  struct LockedOut {
    bool account = false;
    bool address = false;
  };
  LockedOut failed(std::string_view account, std::string_view address, TimePoint now);
  void succeeded(std::string_view account);

 private:
  struct Entry {
    std::string name;
    std::uint32_t failures = 0;
    TimePoint last;
  };
  // In the order of the last failure, the oldest first.
  struct Names {
    std::list<Entry> entries;
    std::unordered_map<std::string, std::list<Entry>::iterator> by_name;
  };

  [[nodiscard]] std::string name_of(std::string_view account) const;
  [[nodiscard]] bool locked(const model::Guarded<Names>& names, const std::string& name,
                            std::uint32_t max_failures, TimePoint now) const;
  // How many there are now.
  std::uint32_t count(model::Guarded<Names>& names, const std::string& name, TimePoint now) const;

  const LockoutLimits limits_;
  const KeyedDigest digest_;
  model::Guarded<Names> accounts_;
  model::Guarded<Names> addresses_;
};

}  // namespace conversed::api
