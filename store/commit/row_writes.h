#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/sql/sql.h"

// Writes that are not of one SessionCommit alone: marks of deliveries, answers, dead letters, and
// what ends an execution. Inside a Writer's transaction; throw SqlError.
namespace conversed::store {

// Of the session with this key, if there is one.
[[nodiscard]] std::optional<std::int64_t> session_row(Connection& connection,
                                                      const std::string& key);

// Of the session with this key.
[[nodiscard]] std::string endpoint_of(const std::string& key);

// The session's pending outputs, if there are any, are due at once, unless they wait for a retry.
// `endpoint_id`: the session's.
void wake_outbox(Connection& connection, std::int64_t session, const std::string& endpoint_id);

// Ends what the session waits for: all its calls and timers lose their claim.
void abandon_execution(Connection& connection, std::int64_t session);

// A user's message with a deadline comes to nothing: its client is told so, and its key may be used
// for another attempt; but not if it is cut, as its client has had an answer then. The row that
// says so names nobody.
void fail_input(Connection& connection, const std::string& input_id, model::Timestamp now);

// The inputs of a session that end with it when it is erased: the one that runs, and the messages
// that wait. Those with a deadline have failed now.
std::vector<std::string> end_inputs(Connection& connection, std::int64_t session,
                                    const std::string& key, model::Timestamp now);

void mark_delivered(Connection& connection, const std::string& key, std::int64_t seq,
                    const std::string& output_id);
// `due_at`: by the clock of timers.
void mark_rescheduled(Connection& connection, const std::string& key, model::Timestamp due_at,
                      int attempts);

// `key`: the session's.
void insert_answer(Connection& connection, const std::string& key, const NewAnswer& answer);

// `now`: by the clock of timers. An earlier cut of the input stays.
void insert_cut(Connection& connection, const NewCut& cut, model::Timestamp now);

// Tells other daemons which inputs clients may read about (AnswerChanges::progressed), and which
// sessions have said something, by their short names: as many in one announcement as it can hold.
void announce_progress(Connection& connection, const std::set<std::string>& input_ids);
void announce_spoken(Connection& connection, const std::set<std::string>& names);

// Adds a dead letter; `output_seq` is set for an undelivered output.
void insert_dead_letter(Connection& connection, const NewDeadLetter& letter,
                        const std::string& project_id, const std::string& key,
                        std::optional<std::int64_t> output_seq, model::Timestamp now);

void add_usage(Connection& connection, const std::string& organisation_id,
               const std::string& counter, std::int64_t amount, model::Timestamp now);

}  // namespace conversed::store
