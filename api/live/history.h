#pragma once

#include <chrono>
#include <compare>
#include <cstddef>
#include <cstdint>
#include <deque>
#include <limits>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/model/clock.h"
#include "store/runtime/guarded.h"

namespace conversed::api {

// The meaning of a series' numbers: the metric's value, its growth per second, or a quantile of the
// observations since the sample before.
enum class Figure : std::uint8_t { value, rate, median, p99 };

// A figure of a metric. `metric` has its labels: `conversed_calls_total{outcome="failed"}`.
struct SeriesName {
  std::string metric;
  Figure figure = Figure::value;

  auto operator<=>(const SeriesName&) const = default;  // NOLINT(modernize-use-nullptr)
};

// The metrics of the last hour, in memory. A restart forgets them. Thread-safe.
//
// Memory: at most `max_series` series of `max_samples` numbers. Later series are left out.
// Kept by: HistoryTest.KeepsTheNewestSamples, HistoryTest.LeavesFurtherSeriesOut.
class History {
 public:
  static constexpr std::chrono::seconds interval{10};  // between two samples
  static constexpr std::size_t max_samples = 360;
  static constexpr std::size_t max_series = 400;
  static constexpr double unknown = std::numeric_limits<double>::quiet_NaN();

  struct Series {
    SeriesName name;
    std::vector<double> values;  // one for each time, maybe `unknown`
  };
  struct View {
    std::vector<model::Timestamp> times;
    std::vector<Series> series;  // by name
  };

  void add(model::Timestamp at, const std::vector<std::pair<SeriesName, double>>& sample);

  // The samples behind `after`.
  [[nodiscard]] View view(model::Timestamp after) const;

 private:
  struct State {
    std::deque<model::Timestamp> times;
    std::map<SeriesName, std::deque<double>> series;  // each as long as `times`
  };
  model::Guarded<State> state_;
};

}  // namespace conversed::api
