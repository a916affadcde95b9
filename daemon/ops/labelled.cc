#include "daemon/ops/labelled.h"

#include <prometheus/counter.h>
#include <prometheus/registry.h>

#include <functional>
#include <mutex>
#include <utility>

namespace conversed::daemon {

LabelledCounters::LabelledCounters(prometheus::Registry& registry, const char* label,
                                   std::vector<Column> columns, std::size_t max_series)
    : registry_(registry),
      label_(label),
      columns_(std::move(columns)),
      max_rows_(max_series / columns_.size()),
      other_(new_row("other")) {}

void LabelledCounters::add(std::string_view id, std::size_t column, double amount,
                           std::string_view owner) {
  row_of(id, owner).at(column)->Increment(amount);
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

const LabelledCounters::Row& LabelledCounters::row_of(std::string_view id, std::string_view owner) {
  const auto has_room = [&] {
    if (owner.empty() || rows_.size() >= max_rows_) return false;
    const auto of_owner = owners_.find(owner);
    return of_owner == owners_.end() || of_owner->second < rows_of_owner;
  };
  {
    const std::shared_lock lock(mutex_);
    if (const auto found = rows_.find(id); found != rows_.end()) return found->second;
    if (!has_room()) return other_;
  }
  const std::lock_guard lock(mutex_);
  if (const auto found = rows_.find(id); found != rows_.end()) return found->second;
  if (!has_room()) return other_;
  ++owners_[std::string(owner)];
  return rows_.emplace(id, new_row(std::string(id))).first->second;
}

}  // namespace conversed::daemon
