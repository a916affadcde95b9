#pragma once

#include <cstdint>
#include <limits>
#include <optional>
#include <set>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/sql/sql.h"

// Writes that are not of one Unit alone: marks of deliveries, answers, dead letters, and what ends
// an execution. Inside a Writer's transaction; throw SqlError.
namespace conversed::store {

// Of the session with this key, if there is one.
[[nodiscard]] std::optional<std::int64_t> session_row(Connection& connection,
                                                      const std::string& key);

// Of the session with this key.
[[nodiscard]] std::string endpoint_of(const std::string& key);

// The session's pending outputs, if there are any, are due at once, unless they wait for a retry.
// `endpoint_id`: the session's.
void wake_outbox(Connection& connection, std::int64_t session, const std::string& endpoint_id);
// What is held in the session before the output `before` becomes pending.
void release_held(Connection& connection, std::int64_t session, std::int64_t before);
// All of it; it is no answer of another daemon's client any more.
void release_all_held(Connection& connection, std::int64_t session);
// What is held of the input's outputs is nobody's any more but the client's who has them.
void keep_held(Connection& connection, std::int64_t session, const std::string& input_id);
// What the input's outputs of this delivery were held for, or not made for, becomes a delivery.
void make_pending(Connection& connection, std::int64_t session, const std::string& input_id,
                  model::Delivery from);

// Ends what the session waits for: all its calls and timers lose their claim, and what was held for
// a waiting client goes to the webhook.
void abandon_execution(Connection& connection, std::int64_t session,
                       const std::string& endpoint_id);

// The inputs of a session that end with it when it is erased: the one that runs, and the messages
// that wait. A keyed one has failed now, so that its key may be used for another attempt; the row
// that says so names nobody.
std::vector<std::string> end_inputs(Connection& connection, std::int64_t session,
                                    const std::string& key, model::Timestamp now);

void mark_delivered(Connection& connection, const std::string& key, std::int64_t seq,
                    const std::string& output_id);
// `due_at`: by the clock of timers.
void mark_rescheduled(Connection& connection, const std::string& key, model::Timestamp due_at,
                      int attempts);

// Outputs of the input that nobody was to get become pending, unless the webhook gets something of
// the session behind `up_to` (null: behind the first of them): whoever says so late, as a daemon
// that stood still, must not change the order. They can be read then, and are not sent. Turns that
// have read the session before are conflicts: what they say comes behind these.
void release_outputs(Connection& connection, const std::string& key, const std::string& input_id,
                     std::optional<std::int64_t> up_to);

// `key`: the session's.
void insert_answer(Connection& connection, const std::string& key, const NewAnswer& answer);

// The Unit's answers for clients of other daemons: for those that are named, and, if they are kept
// under a key, for whoever waits for them. `key`: the session's.
void write_replies(Connection& connection, const std::string& key, const Unit& unit);

// Tells other daemons which sessions have said something, by their short names: as many in one
// announcement as it can hold.
void announce_spoken(Connection& connection, const std::set<std::string>& names);

// Adds a dead letter; `output_seq` is set for an undelivered output.
void insert_dead_letter(Connection& connection, const NewDeadLetter& letter,
                        const std::string& project_id, const std::string& key,
                        std::optional<std::int64_t> output_seq, model::Timestamp now);

void add_usage(Connection& connection, const std::string& organisation_id,
               const std::string& counter, std::int64_t amount, model::Timestamp now);

}  // namespace conversed::store
