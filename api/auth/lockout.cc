#include "api/auth/lockout.h"

#include <algorithm>

namespace conversed::api {

// A digest, so that names of any length take the same room.
std::string Lockout::name_of(std::string_view account, std::string_view address) const {
  std::string folded(account);
  std::transform(folded.begin(), folded.end(), folded.begin(), [](char c) {
    return c >= 'A' && c <= 'Z' ? static_cast<char>(c - 'A' + 'a') : c;
  });
  return digest_({folded, address});
}

bool Lockout::locked(std::string_view account, std::string_view address, Visitor visitor,
                     TimePoint now) const {
  if (visitor == Visitor::known) {
    return locked(known_, name_of(account, address), limits_.account_failures, now);
  }
  return locked(accounts_, name_of(account), limits_.account_failures, now) ||
         (limits_.address_failures > 0 &&
          locked(addresses_, digest_({address}), limits_.address_failures, now));
}

Lockout::LockedOut Lockout::failed(std::string_view account, std::string_view address,
                                   Visitor visitor, TimePoint now) {
  LockedOut locked_out;
  if (visitor == Visitor::known) {
    locked_out.account = count(known_, name_of(account, address), now) == limits_.account_failures;
    return locked_out;
  }
  locked_out.account = count(accounts_, name_of(account), now) == limits_.account_failures;
  if (limits_.address_failures > 0) {
    locked_out.address = count(addresses_, digest_({address}), now) == limits_.address_failures;
  }
  return locked_out;
}

bool Lockout::locked(const model::Guarded<Names>& names, const std::string& name,
                     std::uint32_t max_failures, TimePoint now) const {
  return names.with([&](const Names& all) {
    const auto known = all.by_name.find(name);
    return known != all.by_name.end() && known->second->failures >= max_failures &&
           now - known->second->first < limits_.window;
  });
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
