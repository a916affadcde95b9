#pragma once

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
// A row takes as many series as it has counters. It begins with a count that names its owner, an
// organisation, which has a bounded number of rows. The counts of ids without a row go to the row
// `other`. A row stays until the end of the process.
// Kept by: Metrics.SeriesAboveTheLimitAreCountedAsOther,
// Metrics.OneOrganisationLeavesSeriesToTheOthers.
class LabelledCounters {
 public:
  struct Column {
    const char* name;
    const char* help;
    std::map<std::string, std::string> labels{};  // further ones, of this column
  };

  // `label`: a constant, such as `endpoint`. The registry must outlive it.
  LabelledCounters(prometheus::Registry& registry, const char* label, std::vector<Column> columns,
                   std::size_t max_series);
  LabelledCounters(const LabelledCounters&) = delete;
  LabelledCounters& operator=(const LabelledCounters&) = delete;

  // `owner`: empty if it is not known.
  void add(std::string_view id, std::size_t column, double amount, std::string_view owner);

  static constexpr std::size_t rows_of_owner = 20;

 private:
  using Row = std::vector<prometheus::Counter*>;

  [[nodiscard]] Row new_row(const std::string& id);
  [[nodiscard]] const Row& row_of(std::string_view id, std::string_view owner);

  prometheus::Registry& registry_;
  const char* const label_;
  const std::vector<Column> columns_;
  const std::size_t max_rows_;
  const Row other_;
  std::shared_mutex mutex_;
  std::unordered_map<std::string, Row, model::FastHash, std::equal_to<>> rows_;
  std::unordered_map<std::string, std::size_t, model::FastHash, std::equal_to<>> owners_;
};

}  // namespace conversed::daemon
