#include "api/live/history.h"

#include <algorithm>

namespace conversed::api {

void History::add(model::Timestamp at, const std::vector<std::pair<SeriesName, double>>& sample) {
  state_.with([&](State& state) {
    const std::size_t before = state.times.size();
    for (const auto& [name, value] : sample) {
      auto series = state.series.find(name);
      if (series == state.series.end()) {
        if (state.series.size() == max_series) continue;
        series = state.series.emplace(name, std::deque<double>(before, unknown)).first;
      }
      series->second.push_back(value);
    }
    state.times.push_back(at);
    for (auto& [name, values] : state.series) values.resize(state.times.size(), unknown);
    if (state.times.size() <= max_samples) return;
    state.times.pop_front();
    for (auto& [name, values] : state.series) values.pop_front();
  });
}

History::View History::view(model::Timestamp after) const {
  return state_.with([&](const State& state) {
    const auto first = std::ranges::upper_bound(state.times, after) - state.times.begin();
    View view{.times = {state.times.begin() + first, state.times.end()}, .series = {}};
    for (const auto& [name, values] : state.series) {
      view.series.push_back({name, {values.begin() + first, values.end()}});
    }
    return view;
  });
}

}  // namespace conversed::api
