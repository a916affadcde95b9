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
  // Remembered names of strangers, and as many of known visitors: over an hour of guesses.
  std::size_t max_names = 300'000;
};

// Whether an address has signed in to the account before.
enum class Visitor : std::uint8_t { known, stranger };

// Counts wrong passwords and refuses further guesses. All strangers share one counter for each
// account, and each address has a counter. An address that has signed in to the account before has
// its own counter for this account, so guesses from other addresses do not lock its user out.
// Unknown accounts are counted like existing ones, so the answer does not show which accounts
// exist. Thread-safe.
//
// A name that has reached its limit is refused until `window` has passed since the first failure
// that counts. Passwords in that time are not verified and not counted. A right password clears no
// counter, because a guesser may have an account, too. Beyond `max_names` Lockout forgets the name
// whose last failure is the oldest. Guesses of strangers never make Lockout forget a known visitor.
// A restart clears all counters.
// Kept by: Lockout.StrangersNeverMakeItForgetAKnownVisitor.
class Lockout {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;

  explicit Lockout(const LockoutLimits& limits) : limits_(limits) {}

  [[nodiscard]] bool locked(std::string_view account, std::string_view address, Visitor visitor,
                            TimePoint now) const;
  // The limits that this failure reached.
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
  // Ordered by the last failure, the oldest first.
  struct Names {
    std::list<Entry> entries;
    std::unordered_map<std::string, std::list<Entry>::iterator> by_name;
  };

  // A counted name, and the number of failures that locks it out.
  struct Counter {
    std::string name;
    std::uint32_t max_failures = 0;
  };
  // The account's counter. For a stranger, the address's counter follows.
  [[nodiscard]] std::vector<Counter> counters(std::string_view account, std::string_view address,
                                              Visitor visitor) const;
  std::uint32_t count(model::Guarded<Names>& names, const std::string& name, TimePoint now) const;

  const LockoutLimits limits_;
  const KeyedDigest digest_;
  model::Guarded<Names> strangers_;
  model::Guarded<Names> known_;
};

}  // namespace conversed::api
