#pragma once

#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "queue/log.h"

namespace conversed::queue {

// What of a run its Finish has to account for.
struct InHand {
  std::int32_t partition;
  std::uint64_t generation;
  std::int64_t offset;
};

struct Share;

// The records of one key, for Lanes only.
struct Lane {
  enum class State : std::uint8_t { idle, ready, in_hand };
  State state = State::idle;
  bool touched = false;            // a run is due even without records
  std::vector<LogRecord> waiting;  // in order
  std::vector<InHand> in_hand;
  Share* share = nullptr;
};
using LaneNode = std::pair<const std::string, Lane>;  // in the map; its address is the lane's name

}  // namespace conversed::queue
