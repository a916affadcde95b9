#include "api/operations/standing_sessions.h"

#include "api/http/error_reply.h"
#include "api/replies.h"
#include "flows/turn/standing.h"
#include "store/store.h"

namespace conversed::api {
namespace {

// Limits on one count: a page is to answer at once, and the pool has few threads.
constexpr std::size_t max_sessions = 20'000;
constexpr std::chrono::milliseconds max_time{30};
constexpr std::size_t sessions_at_once = 100;

}  // namespace

model::Result<StandingSessions> StandingSessions::of(const std::string& project,
                                                     ProjectServices& services) {
  const auto& steady_now = services.options.steady_now;
  const auto& shards = services.store.shards();
  StandingSessions found;
  for (const auto& shard : shards) {
    const auto until = steady_now() + max_time / shards.size();
    std::int64_t row = 0;
    std::size_t examined = 0;
    for (bool has_more = true; has_more; examined += sessions_at_once) {
      if (examined >= max_sessions / shards.size() || steady_now() >= until) {
        found.is_complete_ = false;
        break;
      }
      auto places = shard->sessions().places(project, row, sessions_at_once);
      if (!places) return model::fail(store_error(places.error()));
      for (const auto& place : *places) {
        row = place.row;
        for (auto& [flow, version, at] : flows::standings(place.flow_state, place.execution)) {
          ++found.places_[{std::move(flow), version, std::move(at)}];
        }
      }
      has_more = places->size() == sessions_at_once;
    }
  }
  return found;
}

}  // namespace conversed::api
