#pragma once

#include <cstdint>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::store {

// The calendar month in UTC that a quota counts in: "2026-07".
[[nodiscard]] std::string month_of(model::Timestamp time);

// Names of counters. The counter of jobs is "jobs".
inline constexpr const char* injects_counter = "injects";
// In a cluster: counts an inject when a daemon accepts it, not at its commit.
inline constexpr const char* accepted_injects_counter = "acceptedInjects";
inline constexpr const char* model_tokens_counter = "modelTokens";  // as the models report them

// An organisation's use of its plan, by month. The Committer counts in the transaction of the
// counted change, in the shard of that change. Thread-safe; blocks on the disk. Errors:
// `unavailable`.
class Usage {
 public:
  // The databases of all shards, the first one first. They must outlive it.
  explicit Usage(std::vector<Database*> databases) : databases_(std::move(databases)) {}

  // The sum over the shards. A shard other than the first that can't be read counts with the amount
  // that this process last read from it in that month: an absent server must not refuse the
  // requests of all users. Kept by: ShardsTest.UsageIsTheSumEvenIfAShardIsAway.
  [[nodiscard]] model::Result<std::int64_t> used(const std::string& organisation_id,
                                                 const std::string& counter,
                                                 const std::string& month) const;

  // Counts within a transaction, in the Writer's month.
  static void add(Writer& writer, const QuotaUse& use);

 private:
  // An organisation's counter, as each shard had it at the last read.
  struct Last {
    std::string month;
    std::vector<std::int64_t> amounts;  // by shard
  };
  using LastRead = std::map<std::pair<std::string, std::string>, Last>;

  const std::vector<Database*> databases_;
  mutable model::Guarded<LastRead> last_;  // empty with one shard
};

}  // namespace conversed::store
