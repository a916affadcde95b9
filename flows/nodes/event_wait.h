#pragma once

#include <chrono>
#include <cstdint>
#include <optional>

#include "flows/node_config.h"
#include "flows/turn/turn.h"

// Parts of the Nodes that wait for injects.
namespace conversed::flows {

// The Nodes that run if the user writes meanwhile. Behind them the Node runs again.
struct OnMessage {
  std::optional<NodeIndex> first;
  NodeIndex begin = end_of_flow;  // its Nodes are in [begin, end)
  NodeIndex end = end_of_flow;

  static void read(NodeConfig& config, const View& at, OnMessage& into);
  // Whether one of them led to the current Node.
  [[nodiscard]] bool leads_back(const Turn& turn) const;
};

// The Turn's time in Unix milliseconds.
[[nodiscard]] std::int64_t now_of(const Turn& turn);

// The time from now until then, not below 0.
[[nodiscard]] std::chrono::milliseconds left_until(const Turn& turn, std::int64_t then);

// The number of the first execution whose inject counts for a Node that begins to wait now. Clocks
// decide only how far back the Node looks, since another daemon's clock may be ahead. Every later
// inject counts.
[[nodiscard]] std::int64_t first_that_counts(Turn& turn, std::chrono::milliseconds look_back);

// Shows the event of an untaken inject to a condition as `input.event`, for the lifetime of this
// object.
class ShownEvent {
 public:
  ShownEvent(Turn& turn, nlohmann::json& kept);
  ~ShownEvent();
  ShownEvent(const ShownEvent&) = delete;
  ShownEvent& operator=(const ShownEvent&) = delete;

 private:
  nlohmann::json& place_;
  nlohmann::json& event_;
};

}  // namespace conversed::flows
