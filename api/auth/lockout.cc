#include "api/auth/lockout.h"

#include <algorithm>

#include "api/http/http_syntax.h"

namespace conversed::api {

// Counters are named by digests, so each name takes the same memory.
std::vector<Lockout::Counter> Lockout::counters(std::string_view account, std::string_view address,
                                                Visitor visitor) const {
  const std::string folded = lower_case(account);
  if (visitor == Visitor::known) {
    return {{digest_({"known", folded, address}), limits_.account_failures}};
  }
  std::vector<Counter> counted{{digest_({"account", folded}), limits_.account_failures}};
  if (limits_.address_failures > 0) {
    counted.push_back({digest_({"address", address}), limits_.address_failures});
  }
  return counted;
}

bool Lockout::locked(std::string_view account, std::string_view address, Visitor visitor,
                     TimePoint now) const {
  const auto counted = counters(account, address, visitor);
  const auto& names = visitor == Visitor::known ? known_ : strangers_;
  return names.with([&](const Names& all) {
    return std::ranges::any_of(counted, [&](const Counter& counter) {
      const auto known = all.by_name.find(counter.name);
      return known != all.by_name.end() && known->second->failures >= counter.max_failures &&
             now - known->second->first < limits_.window;
    });
  });
}

Lockout::LockedOut Lockout::failed(std::string_view account, std::string_view address,
                                   Visitor visitor, TimePoint now) {
  const auto counted = counters(account, address, visitor);
  auto& names = visitor == Visitor::known ? known_ : strangers_;
  const auto is_last = [&](const Counter& counter) {
    return count(names, counter.name, now) == counter.max_failures;
  };
  return {.account = is_last(counted.front()),
          .address = counted.size() > 1 && is_last(counted.back())};
}

std::uint32_t Lockout::count(model::Guarded<Names>& names, const std::string& name,
                             TimePoint now) const {
  return names.with([&](Names& all) {
    auto known = all.by_name.find(name);
    if (known == all.by_name.end()) {
      if (all.entries.size() >= limits_.max_names) {
        all.by_name.erase(all.entries.front().name);
        all.entries.pop_front();
      }
      all.entries.push_back({name, 0, now});
      known = all.by_name.emplace(name, std::prev(all.entries.end())).first;
    }
    Entry& entry = *known->second;
    if (now - entry.first >= limits_.window) {
      entry.failures = 0;
      entry.first = now;
    }
    ++entry.failures;
    all.entries.splice(all.entries.end(), all.entries, known->second);
    return entry.failures;
  });
}

}  // namespace conversed::api
