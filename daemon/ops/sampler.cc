#include "daemon/ops/sampler.h"

#include <utility>
#include <vector>

#include "store/runtime/thread_name.h"

namespace conversed::daemon {
namespace {

using api::Figure;
using api::History;

// Estimates the quantile `share` of the observations since `before`, by linear interpolation within
// a bucket. Unknown without observations.
double quantile(const Reading& now, const Reading& before, double share) {
  const double total = now.value - before.value;
  if (total <= 0) return History::unknown;
  double lower = 0;
  double below = 0;
  for (std::size_t i = 0; i < now.buckets.size(); ++i) {
    const double upper = now.buckets[i].upper;
    const double count = now.buckets[i].count - before.buckets[i].count;
    if (count >= share * total) {
      const double within = count > below ? (share * total - below) / (count - below) : 0;
      return lower + (upper - lower) * within;
    }
    lower = upper;
    below = count;
  }
  return lower;  // above the last bucket that has a bound
}

}  // namespace

void Sampler::sample(std::chrono::duration<double> passed) {
  std::map<std::string, Reading> now;
  for (Reading& reading : metrics_.read()) {
    std::string metric = reading.metric;
    now.emplace(std::move(metric), std::move(reading));
  }
  std::vector<std::pair<api::SeriesName, double>> sample;
  for (const auto& [metric, reading] : now) {
    if (reading.kind == Reading::Kind::gauge) {
      sample.emplace_back(api::SeriesName{metric, Figure::value}, reading.value);
      continue;
    }
    const auto earlier = before_.find(metric);
    if (earlier == before_.end() || passed.count() <= 0) continue;
    const Reading& before = earlier->second;
    sample.emplace_back(api::SeriesName{metric, Figure::rate},
                        (reading.value - before.value) / passed.count());
    if (reading.kind != Reading::Kind::histogram) continue;
    sample.emplace_back(api::SeriesName{metric, Figure::median}, quantile(reading, before, 0.5));
    sample.emplace_back(api::SeriesName{metric, Figure::p99}, quantile(reading, before, 0.99));
  }
  history_.add(clock_.now(), sample);
  before_ = std::move(now);
}

void Sampler::start() {
  thread_ = std::jthread([this](const std::stop_token& stop) { run(stop); });
}

void Sampler::stop() {
  thread_ = {};  // requests its stop, and joins it
}

void Sampler::run(const std::stop_token& stop) {
  model::name_this_thread("history");
  auto last = std::chrono::steady_clock::now();
  sample({});
  std::unique_lock lock(mutex_);
  while (!stop.stop_requested()) {
    stopped_.wait_until(lock, stop, last + History::interval, [] { return false; });
    if (stop.stop_requested()) return;
    const auto now = std::chrono::steady_clock::now();
    sample(now - last);
    last = now;
  }
}

}  // namespace conversed::daemon
