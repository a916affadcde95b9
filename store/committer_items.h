#pragma once

#include <cstdint>
#include <functional>
#include <string>
#include <variant>
#include <vector>

#include "store/committer.h"
#include "store/sql.h"
#include "store/unit_writes.h"

// What waits for the Committer. For committer*.cc alone.
namespace conversed::store {

struct UnitItem {
  EncodedUnit unit;
  Committer::Done done;
  Outcome outcome = Outcome::conflict;
};
// Once its caller has been told, `work` and `done` are gone.
struct WriteItem {
  Committer::Work work;
  Committer::WriteDone done;
  Committer::Patience patience = Committer::Patience::until_it_works;
  model::Result<void> result;                    // of the last try
  std::vector<std::function<void()>> on_commit;  // of the last try
  bool alone = false;                            // outside of any transaction
};
struct DeliveredItem {
  std::string key;
  std::int64_t seq;
};
struct RescheduleItem {
  std::string key;
  model::Timestamp due_at;
  int attempts;
};
using Item = std::variant<UnitItem, WriteItem, DeliveredItem, RescheduleItem>;

// The same, if it is one that runs outside of transactions; else null.
[[nodiscard]] WriteItem* to_run_alone(Item& item);
// The same, if its caller does not wait for a store that fails; else null.
[[nodiscard]] WriteItem* impatient(Item& item);
// Tells the caller, who is gone then.
void end(WriteItem& write, model::Result<void> result);

// What callers are told while the store fails: nothing was done, or nobody knows.
[[nodiscard]] model::Error failing_error();
[[nodiscard]] model::Error unknown_error();

// Runs the work in a transaction that is open. A savepoint confines what it does wrong. Throws
// SqlError for failures of the database itself alone: they concern the whole transaction.
void run_work(Connection& connection, WriteItem& write, model::Timestamp now);
[[nodiscard]] model::Result<void> run_outside(Connection& connection, const Committer::Work& work,
                                              model::Timestamp now);

}  // namespace conversed::store
