#include "daemon/ops/labelled.h"

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <functional>
#include <mutex>
#include <utility>

namespace conversed::daemon {

LabelledCounters::LabelledCounters(prometheus::Registry& registry, const char* label,
                                   std::vector<Column> columns,
                                   std::atomic<std::size_t>& series_left)
    : registry_(registry),
      label_(label),
      columns_(std::move(columns)),
      series_left_(series_left),
      other_(new_row("other")) {}

void LabelledCounters::add(std::string_view id, std::size_t column, double amount) {
  row_of(id).at(column)->Increment(amount);
}

LabelledCounters::Row LabelledCounters::new_row(const std::string& id) {
  Row row;
  for (const auto& column : columns_) {
    auto labels = column.labels;
    labels.emplace(label_, id);
    // The registry returns the same family for the same name.
    auto& family =
        prometheus::BuildCounter().Name(column.name).Help(column.help).Register(registry_);
    row.push_back(&family.Add(labels));
  }
  return row;
}

const LabelledCounters::Row& LabelledCounters::row_of(std::string_view id) {
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = rows_.find(id); found != rows_.end()) return found->second;
  }
  if (series_left_ < columns_.size()) return other_;
  const std::lock_guard lock(mutex_);
  if (const auto found = rows_.find(id); found != rows_.end()) return found->second;
  if (!take_series()) return other_;
  return rows_.emplace(id, new_row(std::string(id))).first->second;
}

bool LabelledCounters::take_series() {
  auto left = series_left_.load();
  while (left >= columns_.size()) {
    if (series_left_.compare_exchange_weak(left, left - columns_.size())) return true;
  }
  return false;
}

}  // namespace conversed::daemon
