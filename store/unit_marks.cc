// What is written about outputs, answers and dead letters outside of Units, too.
#include "store/unit_writes.h"
#include "store/usage.h"

namespace conversed::store {

using model::to_unix_ms;

void insert_answer(Connection& connection, const std::string& key, const NewAnswer& answer) {
  connection.run(
      "INSERT INTO answers (input_id, status, body, expires_at, session_key)"
      " VALUES (:i, :s, :b, :e, :k)"
      " ON CONFLICT (input_id) DO UPDATE SET status = excluded.status, body = excluded.body,"
      " expires_at = excluded.expires_at",
      answer.input_id, answer.status, answer.body, to_unix_ms(answer.expires_at), key);
}

void mark_delivered(Connection& connection, const std::string& key, std::int64_t seq,
                    model::Timestamp now) {
  // What follows in the session is due now, but not because something was delivered twice.
  connection.run(
      "UPDATE outbox SET due_at = :d, attempts = 0 WHERE session ="
      " (SELECT session FROM deliveries WHERE session = (SELECT id FROM sessions WHERE key = :k)"
      " AND seq = :q)",
      to_unix_ms(now), key, seq);
  connection.run(
      "DELETE FROM deliveries WHERE session = (SELECT id FROM sessions WHERE key = :k)"
      " AND seq = :q",
      key, seq);
  connection.run(
      "DELETE FROM outbox WHERE session = (SELECT id FROM sessions WHERE key = :k)"
      " AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.session = outbox.session)",
      key);
}

void mark_rescheduled(Connection& connection, const std::string& key, model::Timestamp due_at,
                      int attempts) {
  connection.run(
      "UPDATE outbox SET due_at = :d, attempts = :a"
      " WHERE session = (SELECT id FROM sessions WHERE key = :k)",
      to_unix_ms(due_at), attempts, key);
}

void insert_dead_letter(Connection& connection, const NewDeadLetter& letter,
                        const std::string& project_id, const std::string& key,
                        std::optional<std::int64_t> output_seq, model::Timestamp now) {
  connection.run(
      "INSERT INTO dead_letters (id, n, project_id, key, event_id, type, trace_id, value,"
      " output_seq, reason, state, created_at) VALUES (:i,"
      " (SELECT COALESCE(MAX(n), 0) + 1 FROM dead_letters), :p, :k, :e, :t, :r, :v, :o, :w, 'new',"
      " :c)",
      letter.id, project_id, key, letter.event.event_id, letter.event.type, letter.event.trace_id,
      letter.event.value, output_seq, letter.reason, to_unix_ms(now));
}

void add_usage(Connection& connection, const std::string& organisation_id,
               const std::string& counter, std::int64_t amount, model::Timestamp now) {
  connection.run(
      "INSERT INTO usage (organisation_id, counter, month, amount) VALUES (:o, :c, :m, :a)"
      " ON CONFLICT (organisation_id, counter, month)"
      " DO UPDATE SET amount = usage.amount + excluded.amount",
      organisation_id, counter, month_of(now), amount);
}

}  // namespace conversed::store
