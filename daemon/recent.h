#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <optional>
#include <string>
#include <unordered_map>

#include "store/model/keyed_hash.h"

namespace conversed::daemon {

// What is worth remembering of the last so many keys: a number each. One thread.
class Recent {
 public:
  explicit Recent(std::size_t most) : most_(most) {}

  // A number that is noted never falls.
  void note(const std::string& key, std::int64_t number = 0) {
    const auto [known, is_new] = numbers_.try_emplace(key, number);
    known->second = std::max(known->second, number);
    if (!is_new) return;
    order_.push_back(key);
    if (order_.size() <= most_) return;
    numbers_.erase(order_.front());
    order_.pop_front();
  }

  [[nodiscard]] std::optional<std::int64_t> find(const std::string& key) const {
    const auto known = numbers_.find(key);
    if (known == numbers_.end()) return std::nullopt;
    return known->second;
  }
  [[nodiscard]] bool contains(const std::string& key) const { return numbers_.contains(key); }

 private:
  const std::size_t most_;
  std::unordered_map<std::string, std::int64_t, model::KeyedHash, std::equal_to<>> numbers_;
  std::deque<std::string> order_;
};

}  // namespace conversed::daemon
