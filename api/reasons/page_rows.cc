#include "api/reasons/page_rows.h"

#include <nlohmann/json.hpp>
#include <utility>

namespace conversed::api {

model::Result<PageRows> read_page_rows(const store::Store& store,
                                       const std::vector<store::SessionSummary>& sessions) {
  std::map<store::Shard*, std::vector<std::int64_t>> by_shard;
  for (const auto& session : sessions) by_shard[&store.of(session.key)].push_back(session.row);
  PageRows rows;
  for (const auto& [shard, of_shard] : by_shard) {
    auto calls = shard->calls().of_sessions(of_shard);
    if (!calls) return model::fail(calls.error());
    for (auto& each : *calls) {
      (each.is_time_out ? rows.questions : rows.running)[each.session] = std::move(each);
    }
    auto states = shard->sessions().flow_states_of_idle(of_shard);
    if (!states) return model::fail(states.error());
    rows.idle.merge(*std::move(states));
  }
  return rows;
}

}  // namespace conversed::api
