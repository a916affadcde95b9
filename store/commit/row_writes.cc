#include "store/commit/row_writes.h"

#include <algorithm>
#include <iterator>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/commit/receipt_blocks.h"
#include "store/commit/row_numbers.h"
#include "store/commit/stored_steps.h"
#include "store/commit/usage.h"
#include "store/model/ids.h"
#include "store/model/receipt_text.h"
#include "store/sql/read.h"

namespace conversed::store {

void insert_delivery(Connection& connection, std::int64_t session, const std::string& endpoint_id,
                     std::int64_t seq, const std::string& output_id, bool withdrawable) {
  connection.run_row(
      "INSERT INTO deliveries (session, seq, output_id, endpoint_id, withdrawable, due_at, "
      "attempts)"
      " VALUES (:s, :q, :o, :e, :w,"
      " COALESCE((SELECT due_at FROM deliveries WHERE session = :t LIMIT 1), 0),"
      " COALESCE((SELECT attempts FROM deliveries WHERE session = :u LIMIT 1), 0))",
      session, seq, output_id, endpoint_id, withdrawable, session, session);
}

void mark_delivered(Connection& connection, const std::string& key, const std::string& output_id,
                    std::int64_t seq, int attempts) {
  if (attempts > 0) {
    // Makes the session's other outputs due now, unless this output was marked before.
    connection.run(
        "UPDATE deliveries SET due_at = 0, attempts = 0 WHERE session ="
        " (SELECT d.session FROM deliveries d WHERE d.session ="
        " (SELECT id FROM sessions WHERE key = :k) AND d.seq = :q AND d.output_id = :o)"
        " AND (due_at <> 0 OR attempts <> 0)",
        key, seq, output_id);
  }
  connection.run_row(
      "DELETE FROM deliveries WHERE session = (SELECT id FROM sessions WHERE key = :k)"
      " AND seq = :q AND output_id = :o",
      key, seq, output_id);
}

void abandon_execution(Connection& connection, std::int64_t session) {
  connection.run_row("DELETE FROM pending_calls WHERE session = :s", session);
}

void fail_input(Connection& connection, const std::string& input_id, model::Timestamp now) {
  connection.run(
      "INSERT INTO answers (input_id, body, expires_at, session_key)"
      " SELECT :i, NULL, :e, '' WHERE NOT EXISTS (SELECT 1 FROM cuts WHERE input_id = :c)"
      " ON CONFLICT (input_id) DO NOTHING",
      input_id, now + answer_lifetime, input_id);
}

std::vector<std::string> end_inputs(Connection& connection, std::int64_t session,
                                    const std::string& key, model::Timestamp now) {
  std::vector<std::string> inputs;
  std::vector<std::string> failed;  // of these
  const auto end_input = [&](const std::string& id,
                             const std::optional<model::Timestamp>& answer_until) {
    inputs.push_back(id);
    if (answer_until) failed.push_back(id);
  };
  if (const auto text =
          connection.value<std::string>("SELECT execution FROM sessions WHERE id = :i", session)) {
    const auto running = model::execution_from(nlohmann::json::parse(*text, nullptr, false));
    if (running) end_input(running->input_id, running->answer_until);
  }
  connection.rows(
      [&](const std::string& id, const std::string& type, const std::string& trace,
          const std::string& value) {
        const auto event = model::decode_event(key, id, type, trace, value);
        if (!event || event->type != model::EventType::user_message) return;
        end_input(id, event->answer_until);
      },
      "SELECT event_id, type, trace_id, value FROM inbox WHERE session = :s ORDER BY n", session);
  for (const auto& id : failed) fail_input(connection, id, now);
  announce_progress(connection, {inputs.begin(), inputs.end()});
  return inputs;
}

std::int64_t delete_session(Connection& connection, std::int64_t session) {
  const auto rows =
      connection.run_counted("DELETE FROM inbox WHERE session = :s", session) +
      connection.run_counted("DELETE FROM pending_calls WHERE session = :s", session) +
      connection.run_counted("DELETE FROM follow_ups WHERE session = :s", session);
  connection.run("DELETE FROM sessions WHERE id = :i", session);
  return rows;
}

void insert_cut(Connection& connection, const NewCut& cut, model::Timestamp now) {
  connection.run_row(
      "INSERT INTO cuts (input_id, behind, created_at) VALUES (:i, :b, :c)"
      " ON CONFLICT (input_id) DO NOTHING",
      cut.input_id, cut.behind, now);
}

namespace {

// Announces the words, as many as fit into each announcement.
void announce_words(Connection& connection, std::string_view topic,
                    const std::set<std::string>& words) {
  std::string notification;
  for (const auto& word : words) {
    if (!notification.empty() && notification.size() + 1 + word.size() > max_notification_bytes) {
      announce(connection, std::exchange(notification, {}));
    }
    if (notification.empty()) notification = topic;
    notification += ' ' + word;
  }
  if (!notification.empty()) announce(connection, notification);
}

}  // namespace

void announce_progress(Connection& connection, const std::set<std::string>& input_ids) {
  std::set<std::string> own;  // only this program's inputs: no client waits for others
  std::ranges::copy_if(input_ids, std::inserter(own, own.end()), model::is_id);
  announce_words(connection, answers_topic, own);
}

void announce_spoken(Connection& connection, const std::set<std::string>& names) {
  announce_words(connection, outputs_topic, names);
}

void announce_timer(Connection& connection, model::Timestamp due_at) {
  announce(connection, timers_topic, std::to_string(model::to_unix_ms(due_at)));
}

void insert_dead_letter(Connection& connection, const NewDeadLetter& letter,
                        const std::string& project_id, const std::string& key,
                        std::optional<std::int64_t> output_seq, model::Timestamp now) {
  static const auto sql =
      "INSERT INTO dead_letters (id, n, project_id, key, event_id, type, trace_id, value,"
      " output_seq, attempts, reason, flow, flow_version, node, state, created_at) VALUES (:i, " +
      sql_of_next_number("dead_letters") +
      ", :p, :k, :e, :t, :r, :v, :o, :a, :w, :f, :z, :d, 'new', :c)";
  connection.run(sql, letter.id, project_id, key, letter.event.event_id, letter.event.type,
                 letter.event.trace_id, letter.event.value, output_seq, letter.attempts,
                 letter.reason, letter.flow, letter.flow_version, letter.node, now);
}

namespace {

// The number of tries in a row with the same outcome that have a step each. Later tries join the
// last of these steps.
constexpr std::ptrdiff_t lone_tries = 8;

bool is_same_outcome(const nlohmann::json& before, const nlohmann::json& now) {
  const auto same = [&](const char* name) {
    return before.value(name, nlohmann::json()) == now.value(name, nlohmann::json());
  };
  return same("what") && same("id") && same("seq") && same("status") && same("error");
}

std::int64_t number_of(const nlohmann::json& step, const char* name, std::int64_t otherwise) {
  const auto found = step.find(name);
  return found != step.end() && found->is_number_integer() ? found->get<std::int64_t>() : otherwise;
}

// Appends a step to the later steps of an event that has a receipt. If `session` is given, only a
// receipt of that session counts. The id is the last parameter, because it names the changed row
// (Connection::run_row).
void append_step(Connection& connection, const std::string& event_id,
                 std::optional<std::int64_t> session, const std::string& step) {
  static const auto sql =
      "INSERT INTO later_steps (steps, event_id) SELECT :y, :e FROM receipts"
      " WHERE n >= :f AND n <= :t AND steps LIKE REPLACE(:p, '?', :i) LIMIT 1"
      " ON CONFLICT (event_id) DO UPDATE SET steps = CASE WHEN length(later_steps.steps) < " +
      std::to_string(most_later_characters) +
      " THEN later_steps.steps ELSE '' END || excluded.steps";
  if (!model::is_id(event_id)) return;
  const auto range = blocks_of(event_id);
  connection.run_row(sql, step, event_id, range.from, range.to, pattern_of_receipt(session),
                     event_id);
}

}  // namespace

void add_to_receipt(Connection& connection, const std::string& input_id, const std::string& body,
                    model::Timestamp now) {
  append_step(connection, input_id, std::nullopt, later_step(body, now));
}

void add_to_receipt(Connection& connection, const NewReceiptRow& row, std::int64_t session,
                    model::Timestamp now) {
  append_step(connection, row.input_id, session, later_step(row.body, now));
}

void add_to_receipt(Connection& connection, const std::optional<ReceiptMark>& row) {
  if (row) add_to_receipt(connection, row->input_id, row->body, row->at);
}

void add_to_receipt(Connection& connection, const DeliverySettled& settled, model::Timestamp now) {
  model::ReceiptText row;
  row.add("what", "delivery");
  row.add("seq", settled.seq);
  row.add("at", model::to_unix_ms(now));
  row.add("done", settled.done);
  if (!settled.by.empty()) row.add("by", settled.by);
  row.add("deadLetter", settled.dead_letter);
  add_to_receipt(connection, settled.input_id, std::move(row).finished(), now);
}

void join_to_receipt(Connection& connection, const std::optional<ReceiptMark>& row) {
  if (!row) return;
  const auto stored = connection.value<std::string>(
      "SELECT steps FROM later_steps WHERE event_id = :e", row->input_id);
  auto text = later_step(row->body, row->at);
  const auto steps = read_later_steps(stored.value_or(""));
  const auto step = read_later_steps(text);
  if (!steps || !step || std::ssize(*steps) < lone_tries) return add_to_receipt(connection, row);
  const bool all_are_same = std::all_of(
      steps->end() - lone_tries, steps->end(),
      [&](const nlohmann::json& before) { return is_same_outcome(before, step->front()); });
  if (!all_are_same) return add_to_receipt(connection, row);
  const auto& before = steps->back();
  model::ReceiptText more;
  more.add("tries", number_of(before, "tries", 1) + 1);
  more.add("since", number_of(before, "since", number_of(before, "at", 0)));
  text = stored->substr(0, begin_of_last_step(*stored)) + text + std::move(more).finished();
  connection.run("UPDATE later_steps SET steps = :y WHERE event_id = :e", text, row->input_id);
}

void add_usage(Connection& connection, const std::string& organisation_id,
               const std::string& counter, std::int64_t amount, model::Timestamp now) {
  connection.run_row(
      "INSERT INTO usage (organisation_id, counter, month, amount) VALUES (:o, :c, :m, :a)"
      " ON CONFLICT (organisation_id, counter, month)"
      " DO UPDATE SET amount = usage.amount + excluded.amount",
      organisation_id, counter, month_of(now), amount);
}

}  // namespace conversed::store
