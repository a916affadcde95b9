#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

namespace conversed::api {

// The number of something that waits. None is used twice.
using Ticket = std::uint64_t;

// Values by ticket, and by name, which several may share. One thread at a time.
template <typename Value>
class Tickets {
 public:
  // The ticket of the next `add`.
  Ticket next() { return ++last_; }

  void add(Ticket ticket, std::string name, Value value) {
    names_.emplace(name, ticket);
    entries_.emplace(ticket, Entry{std::move(name), std::move(value)});
  }

  // Null once the ticket has been taken.
  Value* find(Ticket ticket) {
    const auto entry = entries_.find(ticket);
    return entry == entries_.end() ? nullptr : &entry->second.value;
  }

  [[nodiscard]] std::vector<Ticket> named(const std::string& name) const {
    std::vector<Ticket> found;
    for (auto at = names_.lower_bound({name, 0}); at != names_.end() && at->first == name; ++at) {
      found.push_back(at->second);
    }
    return found;
  }

  [[nodiscard]] std::vector<Ticket> all() const {
    std::vector<Ticket> found;
    for (const auto& [ticket, entry] : entries_) found.push_back(ticket);
    return found;
  }

  // The tickets under these names (separated by spaces).
  [[nodiscard]] std::vector<Ticket> heard(std::string_view names) const {
    std::vector<Ticket> found;
    while (!names.empty() && !entries_.empty()) {
      const auto name = names.substr(0, names.find(' '));
      for (const Ticket ticket : named(std::string(name))) found.push_back(ticket);
      names.remove_prefix(std::min(names.size(), name.size() + 1));
    }
    return found;
  }

  // False once the ticket has been taken.
  bool rename(Ticket ticket, std::string name) {
    auto value = take(ticket);
    if (value) add(ticket, std::move(name), *std::move(value));
    return value.has_value();
  }

  std::optional<Value> take(Ticket ticket) {
    const auto entry = entries_.extract(ticket);
    if (entry.empty()) return std::nullopt;
    names_.erase({entry.mapped().name, ticket});
    return std::move(entry.mapped().value);
  }

  std::vector<Value> take_all(const std::vector<Ticket>& tickets) {
    std::vector<Value> taken;
    for (const Ticket ticket : tickets) {
      if (auto value = take(ticket)) taken.push_back(*std::move(value));
    }
    return taken;
  }

  [[nodiscard]] std::size_t size() const { return entries_.size(); }

 private:
  struct Entry {
    std::string name;
    Value value;
  };
  std::map<Ticket, Entry> entries_;
  std::set<std::pair<std::string, Ticket>> names_;
  Ticket last_ = 0;
};

}  // namespace conversed::api
