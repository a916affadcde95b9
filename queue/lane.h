#pragma once

#include <algorithm>
#include <cstddef>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "queue/log.h"

namespace conversed::queue {

// A record of a run in hand, for the run's Finish.
struct InHand {
  std::int32_t partition;
  std::uint64_t generation;
  std::int64_t offset;
};

// The positions of records that are in the log only, in order. Taking from the front takes constant
// time an item, however many there are.
class Parked {
 public:
  [[nodiscard]] bool empty() const { return size() == 0; }
  [[nodiscard]] std::size_t size() const { return positions_.size() - taken_; }
  void push_back(const Position& position) { positions_.push_back(position); }

  // Removes the first ones, at most `count`.
  [[nodiscard]] std::vector<Position> take(std::size_t count) {
    const auto begin = positions_.begin() + static_cast<std::ptrdiff_t>(taken_);
    std::vector<Position> first(begin,
                                begin + static_cast<std::ptrdiff_t>(std::min(count, size())));
    taken_ += first.size();
    if (taken_ * 2 >= positions_.size()) drop_taken();
    return first;
  }
  void put_back(std::span<const Position> first) {
    drop_taken();
    positions_.insert(positions_.begin(), first.begin(), first.end());
  }
  // Removes those for which `is_lost` is true. Returns how many these were.
  template <typename IsLost>
  std::size_t erase_if(const IsLost& is_lost) {
    drop_taken();
    return std::erase_if(positions_, is_lost);
  }

 private:
  void drop_taken() {
    positions_.erase(positions_.begin(), positions_.begin() + static_cast<std::ptrdiff_t>(taken_));
    taken_ = 0;
  }
  std::vector<Position> positions_;
  std::size_t taken_ = 0;  // of these, at the front
};

struct Share;

// The records of one key, for Lanes only.
struct Lane {
  enum class State : std::uint8_t { idle, ready, in_hand };
  State state = State::idle;
  bool touched = false;            // a run is due even without records
  std::vector<LogRecord> waiting;  // in order
  Parked parked;                   // behind `waiting`
  std::vector<InHand> in_hand;
  Share* share = nullptr;

  [[nodiscard]] bool has_nothing_to_do() const {
    return waiting.empty() && parked.empty() && !touched;
  }
};
using LaneNode = std::pair<const std::string, Lane>;  // in the map; its address is the lane's name

}  // namespace conversed::queue
