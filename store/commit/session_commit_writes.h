#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "store/commit/committer.h"
#include "store/commit/receipt_blocks.h"
#include "store/model/keyed_hash.h"
#include "store/sql/sql.h"

// The SQL of one SessionCommit. Used by the Committer inside its transaction;
// throws SqlError.
namespace conversed::store {

// A SessionCommit with its JSON as text, so that the Committer's thread only binds and steps.
struct EncodedCommit {
  SessionCommit commit;  // without the values that are texts now
  std::string key;
  std::string context;
  std::string flow_state;
  std::optional<std::string> execution;
  std::optional<std::string> profile;
  std::vector<std::optional<std::string>> output_data;    // in the order of commit.outputs
  std::vector<std::optional<std::string>> call_requests;  // in the order of commit.calls.started
  std::vector<std::optional<std::string>> call_targets;   // in the same order; none: a timer
  std::vector<std::string> follow_ups;                    // in the order of commit.follow_ups.added
};

[[nodiscard]] EncodedCommit encode(SessionCommit commit);

// Totals over the session commits and marks of a transaction, written once.
struct BatchTotals {
  std::map<std::pair<std::int64_t, std::int32_t>, std::int64_t> positions;
  std::map<std::pair<std::string, std::string>, std::int64_t> quota;  // organisation and counter
  struct RampCounts {
    std::int64_t turns = 0;
    std::int64_t failures = 0;
    std::int64_t stable_turns = 0;
    std::int64_t stable_failures = 0;
  };
  std::map<std::string, RampCounts> ramps;  // by ramp
  std::set<std::string> spoken;      // in a cluster: short names of sessions with new outputs
  std::set<std::string> progressed;  // inputs that other daemons' clients may wait for
  std::optional<model::Timestamp> first_timer{};  // the due time of the first new or moved timer
  ReceiptBlocks receipts;

  void flush(Connection& connection, Now now);
};

// Independent session commits of one transaction. The group asks for version, profile and claims of
// all of them, and then writes the winners. So over a network a group of any size costs a few round
// trips, and in PostgreSQL a few statements. A SessionCommit with a conflict has changed nothing
// and needs no savepoint. Kept by:
// CommitterTest.CommitAgainstAnotherVersionIsConflictAndChangesNothing,
// PostgresTest.ManyTurnsCostAFewRoundTripsAndStatements.
class CommitGroup {
 public:
  CommitGroup(Connection& connection, Now now, BatchTotals& totals, PartitionGate& gate);
  ~CommitGroup();
  CommitGroup(const CommitGroup&) = delete;
  CommitGroup& operator=(const CommitGroup&) = delete;

  // Both must outlive the next `flush`, which sets the outcome to `committed` or `conflict`. If the
  // SessionCommit depends on another in the group, the group is flushed first.
  void add(const EncodedCommit& encoded, Outcome& outcome);
  void flush();

 private:
  struct Candidate;
  [[nodiscard]] bool is_entangled(const EncodedCommit& encoded) const;
  void write_sessions();
  void write_effects();

  Connection& connection_;
  const Now now_;
  BatchTotals& totals_;
  PartitionGate& gate_;
  std::vector<Candidate> candidates_;
  std::unordered_set<std::string_view, model::KeyedHash> sessions_;
  std::unordered_set<std::string_view, model::KeyedHash> claims_;
  std::set<std::pair<std::string_view, std::string_view>> profiles_;
};

}  // namespace conversed::store
