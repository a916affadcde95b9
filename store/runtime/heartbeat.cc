#include "store/runtime/heartbeat.h"

namespace conversed::model {

Heartbeat Heartbeats::add(std::string name) {
  auto count = std::make_shared<Heartbeat::Count>(0);
  loops_.with([&](std::vector<Watched>& loops) {
    loops.push_back({.name = std::move(name), .count = count});
  });
  return Heartbeat(std::move(count));
}

std::vector<std::string> Heartbeats::stalled(Time now, std::chrono::milliseconds limit) {
  return loops_.with([&](std::vector<Watched>& loops) {
    std::erase_if(loops, [](const Watched& loop) { return loop.count.expired(); });
    std::vector<std::string> names;
    for (Watched& loop : loops) {
      const auto count = loop.count.lock();
      if (!count) continue;
      const std::uint64_t beats = count->load(std::memory_order_relaxed);
      if (!loop.looked_at || beats != loop.seen) {
        loop.looked_at = true;
        loop.seen = beats;
        loop.seen_at = now;
      } else if (now - loop.seen_at >= limit) {
        names.push_back(loop.name);
      }
    }
    return names;
  });
}

}  // namespace conversed::model
