#pragma once

#include <atomic>
#include <cstddef>
#include <map>
#include <shared_mutex>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "store/model/keyed_hash.h"

namespace prometheus {
class Counter;
class Registry;
}  // namespace prometheus

namespace conversed::daemon {

// Counters of one kind of thing, such as Endpoints: a row of counters for each id that occurs.
// Thread-safe: a count costs a look-up under a shared lock.
//
// A row takes as many series as it has counters. Once all series that the kinds share are taken,
// the counts of further ids go to the row `other`. A row stays until the end of the process.
// Kept by: Metrics.SeriesAboveTheLimitAreCountedAsOther.
class LabelledCounters {
 public:
  struct Column {
    const char* name;
    const char* help;
    std::map<std::string, std::string> labels{};  // further ones, of this column
  };

  // `label`: a constant, such as `endpoint`. `series_left` is shared with other kinds. The registry
  // and `series_left` must outlive it.
  LabelledCounters(prometheus::Registry& registry, const char* label, std::vector<Column> columns,
                   std::atomic<std::size_t>& series_left);
  LabelledCounters(const LabelledCounters&) = delete;
  LabelledCounters& operator=(const LabelledCounters&) = delete;

  void add(std::string_view id, std::size_t column, double amount);

 private:
  using Row = std::vector<prometheus::Counter*>;

  [[nodiscard]] Row new_row(const std::string& id);
  [[nodiscard]] const Row& row_of(std::string_view id);
  [[nodiscard]] bool take_series();

  prometheus::Registry& registry_;
  const char* const label_;
  const std::vector<Column> columns_;
  std::atomic<std::size_t>& series_left_;
  const Row other_;
  std::shared_mutex mutex_;
  std::unordered_map<std::string, Row, model::KeyedHash, std::equal_to<>> rows_;
};

}  // namespace conversed::daemon
