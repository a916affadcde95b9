#pragma once

#include <cstdint>
#include <string>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::store {

// The calendar month in UTC that a quota counts in: "2026-07".
[[nodiscard]] std::string month_of(model::Timestamp time);

// Names of counters. The counter of jobs is "jobs".
inline constexpr const char* injects_counter = "injects";
// In a cluster: counts an inject when a daemon accepts it, not at its commit.
inline constexpr const char* accepted_injects_counter = "acceptedInjects";
inline constexpr const char* model_tokens_counter = "modelTokens";  // as the models report them

// An organisation's use of its plan, by month. The Committer counts in the transaction of the
// counted change. Thread-safe; blocks on the disk. Errors: `unavailable`.
class Usage {
 public:
  // Must outlive it.
  explicit Usage(Database& database) : database_(database) {}

  [[nodiscard]] model::Result<std::int64_t> used(const std::string& organisation_id,
                                                 const std::string& counter,
                                                 const std::string& month) const;

  // Counts within a transaction, in the Writer's month.
  static void add(Writer& writer, const QuotaUse& use);

 private:
  Database& database_;
};

}  // namespace conversed::store
