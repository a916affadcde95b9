#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <list>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "api/live/digest.h"
#include "store/runtime/guarded.h"

namespace conversed::api {

struct LockoutLimits {
  std::uint32_t account_failures = 100;
  std::uint32_t address_failures = 100;  // 0: addresses are not counted
  std::chrono::milliseconds window = std::chrono::hours(1);
  // Remembered of strangers, and as many of known visitors: more than an hour of guesses.
  std::size_t max_names = 300'000;
};

// Whether an address has signed in to the account before.
enum class Visitor : std::uint8_t { known, stranger };

// Counts wrong passwords and refuses further guesses. Strangers are counted by account, all
// together, and by address. An address that has signed in to the account before is counted for
// this account by itself, so that nobody else's guesses keep its user out. Accounts are counted
// whether or not they exist, so that nothing tells which do. Thread-safe.
//
// A name that has reached its limit is refused until `window` has passed since the first failure
// that counts. Passwords that are tried meanwhile are not verified and do not count. A right
// password clears nothing: a guesser may have an account, too. Beyond `max_names` the name that
// failed longest ago is forgotten; guesses of strangers never make Lockout forget a known visitor.
// Kept by: Lockout.StrangersNeverMakeItForgetAKnownVisitor. Nothing is kept over a restart.
class Lockout {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Lockout(const LockoutLimits& limits) : limits_(limits) {}

  [[nodiscard]] bool locked(std::string_view account, std::string_view address, Visitor visitor,
                            TimePoint now) const;
  // What this failure was the last one of.
  struct LockedOut {
    bool account = false;
    bool address = false;
  };
  LockedOut failed(std::string_view account, std::string_view address, Visitor visitor,
                   TimePoint now);

 private:
  struct Entry {
    std::string name;
    std::uint32_t failures = 0;
    TimePoint first;
  };
  // In the order of the last failure, the oldest first.
  struct Names {
    std::list<Entry> entries;
    std::unordered_map<std::string, std::list<Entry>::iterator> by_name;
  };

  // A name that is counted, and how many failures lock it out.
  struct Counter {
    std::string name;
    std::uint32_t max_failures = 0;
  };
  // The account's counter; for a stranger the address's follows.
  [[nodiscard]] std::vector<Counter> counters(std::string_view account, std::string_view address,
                                              Visitor visitor) const;
  std::uint32_t count(model::Guarded<Names>& names, const std::string& name, TimePoint now) const;

  const LockoutLimits limits_;
  const KeyedDigest digest_;
  model::Guarded<Names> strangers_;
  model::Guarded<Names> known_;
};

}  // namespace conversed::api
