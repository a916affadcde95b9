#include "flows/nodes/event_wait.h"

#include <algorithm>

#include "flows/json_members.h"

namespace conversed::flows {

void OnMessage::read(NodeConfig& config, const View& at, OnMessage& into) {
  into.begin = config.nodes_so_far();
  into.first = config.loop(at, "onMessage");
  into.end = config.nodes_so_far();
  // The time-out runs only while the session waits at this Node.
  config.refuse_waits(at, into.begin);
}

bool OnMessage::leads_back(const Turn& turn) const {
  const NodeIndex from = turn.came_from();
  return from != end_of_flow && from >= begin && from < end;
}

std::int64_t now_of(const Turn& turn) {
  return model::to_unix_ms(turn.scope().now);
}

std::chrono::milliseconds left_until(const Turn& turn, std::int64_t then) {
  return std::chrono::milliseconds(std::max<std::int64_t>(then - now_of(turn), 0));
}

std::int64_t first_that_counts(Turn& turn, std::chrono::milliseconds look_back) {
  for (const auto& kept : turn.untaken_events()) {
    const auto age = now_of(turn) - find_count(kept, "at").value_or(0);
    if (std::max<std::int64_t>(age, 0) < look_back.count()) {
      return find_count(kept, "n").value_or(0);
    }
  }
  return turn.execution() + 1;
}

ShownEvent::ShownEvent(Turn& turn, nlohmann::json& kept)
    : place_(turn.input_object()[Turn::input_event]), event_(kept[Turn::input_event]) {
  place_.swap(event_);
}

ShownEvent::~ShownEvent() {
  place_.swap(event_);
}

}  // namespace conversed::flows
