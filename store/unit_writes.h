#pragma once

#include <map>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <unordered_set>
#include <utility>
#include <vector>

#include "store/committer.h"
#include "store/sql.h"

// The SQL of one Unit and of the delivery marks. Used by the Committer inside its transaction;
// throws SqlError.
namespace conversed::store {

// A Unit with its JSON written out, so that the Committer's thread only binds and steps.
struct EncodedUnit {
  Unit unit;  // without the JSON that was written out
  std::string key;
  std::string context;
  std::string flow_state;
  std::optional<std::string> execution;
  std::optional<std::string> profile;
  std::vector<std::optional<std::string>> output_data;    // beside unit.outputs
  std::vector<std::optional<std::string>> call_requests;  // beside unit.calls_started
  std::vector<std::string> follow_ups;                    // beside unit.follow_ups
};

[[nodiscard]] EncodedUnit encode(Unit unit);

// What a transaction gathers over its Units and writes once.
struct BatchTotals {
  std::map<std::pair<std::int64_t, std::int32_t>, std::int64_t> positions;
  std::map<std::pair<std::string, std::string>, std::int64_t> quota;  // organisation and counter

  void flush(Connection& connection, model::Timestamp now) const;
};

// Units that have nothing to do with each other: first all is asked that decides about them, their
// version, profile and claims, and only then are the winners written. So over a network a group
// costs a few round trips, whatever its size. Of one transaction.
class UnitGroup {
 public:
  UnitGroup(Connection& connection, model::Timestamp now, BatchTotals& totals);
  ~UnitGroup();
  UnitGroup(const UnitGroup&) = delete;
  UnitGroup& operator=(const UnitGroup&) = delete;

  // Both must outlive the next `flush`, which sets the outcome to `committed` or `conflict`. One
  // that has to do with a Unit of the group flushes the group first.
  void add(const EncodedUnit& encoded, Outcome& outcome);
  void flush();

 private:
  struct Candidate;
  [[nodiscard]] bool is_entangled(const EncodedUnit& encoded) const;

  Connection& connection_;
  const model::Timestamp now_;
  BatchTotals& totals_;
  std::vector<Candidate> candidates_;
  std::unordered_set<std::string_view> sessions_;
  std::unordered_set<std::string_view> claims_;
  std::set<std::pair<std::string_view, std::string_view>> profiles_;
};

// Ends what the session waits for: all its calls and timers lose their claim, and what was held for
// a waiting client goes to the webhook.
void abandon_execution(Connection& connection, std::int64_t session, model::Timestamp now);

// The inputs of a session that end with it when it is erased: the one that runs, and the messages
// that wait. A keyed one has failed now, so that its key may be used for another attempt; the row
// that says so names nobody.
std::vector<std::string> end_inputs(Connection& connection, std::int64_t session,
                                    const std::string& key, model::Timestamp now);

void mark_delivered(Connection& connection, const std::string& key, std::int64_t seq,
                    const std::string& output_id, model::Timestamp now);
void mark_rescheduled(Connection& connection, const std::string& key, model::Timestamp due_at,
                      int attempts);

// Outputs of the input that nobody was to get become pending.
void release_outputs(Connection& connection, const std::string& key, const std::string& input_id,
                     model::Timestamp now);

// `key`: the session's.
void insert_answer(Connection& connection, const std::string& key, const NewAnswer& answer);

// Adds a dead letter; `output_seq` is set for an undelivered output.
void insert_dead_letter(Connection& connection, const NewDeadLetter& letter,
                        const std::string& project_id, const std::string& key,
                        std::optional<std::int64_t> output_seq, model::Timestamp now);

void add_usage(Connection& connection, const std::string& organisation_id,
               const std::string& counter, std::int64_t amount, model::Timestamp now);

}  // namespace conversed::store
