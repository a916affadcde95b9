#pragma once

#include <cstdint>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/sql/sql.h"

// Writes that SessionCommits share with other transactions: marks of deliveries, answers, dead
// letters, the end of an execution. Functions that take a Connection are called inside a Writer's
// transaction and throw SqlError.
namespace conversed::store {

// The number of rows that one transaction of a long deletion deletes. Other writers wait for the
// transaction.
inline constexpr std::int64_t rows_a_batch = 500;

// Writes one statement; returns how many rows it changed.
template <typename... In>
[[nodiscard]] model::Result<std::int64_t> write_counted(Committer& committer, std::string_view sql,
                                                        const In&... in) {
  return committer.write_and_wait(
      [&](Writer& writer) { return writer.connection().run_counted(sql, in...); });
}

// Changes one row. `not_found`, with `missing` as message, if there is no such row.
template <typename... In>
[[nodiscard]] model::Result<void> change_one(Connection& connection, const char* missing,
                                             std::string_view sql, const In&... in) {
  if (connection.run_counted(sql, in...) == 1) return {};
  return model::fail(model::Errc::not_found, missing);
}

// Adds the delivery of an output: it is due at once, or with the session's other deliveries if they
// wait for a retry. `endpoint_id`: of the session.
void insert_delivery(Connection& connection, std::int64_t session, const std::string& endpoint_id,
                     std::int64_t seq, const std::string& output_id, bool withdrawable);

// The output needs no further try. A missing row is no error. Compares the output's id, too, since
// numbers begin again after the erasure of a session. `attempts` above 0: the session's other
// outputs are due now.
void mark_delivered(Connection& connection, const std::string& key, const std::string& output_id,
                    std::int64_t seq, int attempts);

// All calls and timers of the session lose their claim.
void abandon_execution(Connection& connection, std::int64_t session);

// Notes that a user's message with a deadline has failed: its client gets an error, and its key is
// free. Does nothing for a cut message, since its client has an answer. The row names no user.
void fail_input(Connection& connection, const std::string& input_id, model::Timestamp now);

// Returns the inputs that end when their session is erased: the running input and the messages in
// the inbox. Inputs with a deadline fail now.
std::vector<std::string> end_inputs(Connection& connection, std::int64_t session,
                                    const std::string& key, model::Timestamp now);

// Deletes a session with its inbox, calls, timers and follow-ups. Its receipts and outputs are gone
// already. Returns the number of rows beside the session's own.
std::int64_t delete_session(Connection& connection, std::int64_t session);

// Adds a cut, unless the input is cut already. `now`: by the clock of timers.
void insert_cut(Connection& connection, const NewCut& cut, model::Timestamp now);

// Notifies other daemons of inputs that waiting clients can read about (AnswerChanges::progressed),
// and of sessions with new outputs, by their short names: as many as fit into each notification.
void announce_progress(Connection& connection, const std::set<std::string>& input_ids);
void announce_spoken(Connection& connection, const std::set<std::string>& names);
// Notifies the schedulers of other daemons of a new or moved timer.
void announce_timer(Connection& connection, model::Timestamp due_at);

// Adds a dead letter; `output_seq` is set for an undelivered output.
void insert_dead_letter(Connection& connection, const NewDeadLetter& letter,
                        const std::string& project_id, const std::string& key,
                        std::optional<std::int64_t> output_seq, model::Timestamp now);

// Adds a step to a receipt. Does nothing if there is no receipt, such as after its retention. If
// the later steps have `most_later_characters`, this one replaces them.
inline constexpr std::int64_t most_later_characters = 64 * 1024;
void add_to_receipt(Connection& connection, const std::string& input_id, const std::string& body,
                    model::Timestamp now);
void add_to_receipt(Connection& connection, const std::optional<ReceiptMark>& row);
// The same, if the receipt is one of the session.
void add_to_receipt(Connection& connection, const NewReceiptRow& row, std::int64_t session,
                    model::Timestamp now);
// An operator dropped a waiting output, or replayed or discarded an output that was given up.
struct DeliverySettled {
  std::string input_id;  // of the output
  std::int64_t seq = 0;
  std::string_view done;  // "dropped", "replayed" or "discarded"
  std::string by;         // the user; empty: not known
  std::string dead_letter;
};
void add_to_receipt(Connection& connection, const DeliverySettled& settled, model::Timestamp now);
// Adds a try that failed and will be repeated. A webhook may be down for weeks, so after
// some tries with the same outcome, the next one joins the step of the try before it. No try joins
// a damaged step. Kept by: ReceiptsTest.ManyEqualTriesInARowShareTheLastStep.
void join_to_receipt(Connection& connection, const std::optional<ReceiptMark>& row);

void add_usage(Connection& connection, const std::string& organisation_id,
               const std::string& counter, std::int64_t amount, model::Timestamp now);

}  // namespace conversed::store
