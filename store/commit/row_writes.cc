#include "store/commit/row_writes.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/cluster/news.h"
#include "store/commit/replies.h"
#include "store/commit/usage.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::to_unix_ms;

std::optional<std::int64_t> session_row(Connection& connection, const std::string& key) {
  return connection.value<std::int64_t>("SELECT id FROM sessions WHERE key = :k", key);
}

std::string endpoint_of(const std::string& key) {
  return stored_or_throw(model::SessionKey::decode(key)).endpoint_id;
}

void wake_outbox(Connection& connection, std::int64_t session, const std::string& endpoint_id) {
  connection.run(
      "INSERT INTO outbox (session, endpoint_id, due_at, attempts) SELECT :s, :e, 0, 0"
      " WHERE EXISTS (SELECT 1 FROM deliveries WHERE session = :t)"
      " ON CONFLICT (session) DO NOTHING",
      session, endpoint_id, session);
}

void release_held(Connection& connection, std::int64_t session, std::int64_t before) {
  connection.run(
      "INSERT INTO deliveries (session, seq) SELECT session, seq FROM outputs"
      " WHERE session = :s AND delivery = 1 AND seq < :b",
      session, before);
  connection.run("UPDATE outputs SET delivery = 2 WHERE session = :s AND delivery = 1 AND seq < :b",
                 session, before);
}

void release_all_held(Connection& connection, std::int64_t session) {
  connection.run(
      "DELETE FROM replies WHERE else_webhook = 1"
      " AND session_key = (SELECT key FROM sessions WHERE id = :s)",
      session);
  release_held(connection, session, std::numeric_limits<std::int64_t>::max());
}

void keep_held(Connection& connection, std::int64_t session, const std::string& input_id) {
  connection.run(
      "UPDATE outputs SET delivery = 0 WHERE session = :s AND input_id = :i AND delivery = 1",
      session, input_id);
}

void make_pending(Connection& connection, std::int64_t session, const std::string& input_id,
                  model::Delivery from) {
  connection.run(
      "INSERT INTO deliveries (session, seq) SELECT session, seq FROM outputs"
      " WHERE session = :s AND input_id = :i AND delivery = :d",
      session, input_id, static_cast<int>(from));
  connection.run(
      "UPDATE outputs SET delivery = 2 WHERE session = :s AND input_id = :i AND delivery = :d",
      session, input_id, static_cast<int>(from));
}

void abandon_execution(Connection& connection, std::int64_t session,
                       const std::string& endpoint_id) {
  connection.run("DELETE FROM pending_calls WHERE session = :s", session);
  release_all_held(connection, session);
  wake_outbox(connection, session, endpoint_id);
}

std::vector<std::string> end_inputs(Connection& connection, std::int64_t session,
                                    const std::string& key, model::Timestamp now) {
  std::vector<std::string> inputs;
  std::vector<std::string> keyed;
  if (const auto text =
          connection.value<std::string>("SELECT execution FROM sessions WHERE id = :i", session)) {
    const auto running = model::execution_from(nlohmann::json::parse(*text, nullptr, false));
    if (running) inputs.push_back(running->input_id);
    if (running && running->keyed && running->source == model::EventType::user_message) {
      keyed.push_back(running->input_id);
    }
  }
  connection.rows<std::string, std::string, std::string, std::string>(
      [&](const std::string& id, const std::string& type, const std::string& trace,
          const std::string& value) {
        const auto event = model::decode_event(key, id, type, trace, value);
        if (!event || event->type != model::EventType::user_message) return;
        inputs.push_back(id);
        if (event->claim && event->claim->kind == model::Claim::Kind::keyed_event) {
          keyed.push_back(id);
        }
      },
      "SELECT event_id, type, trace_id, value FROM inbox WHERE session = :s ORDER BY n", session);
  for (const auto& id : keyed) {
    insert_answer(connection, "",
                  {.input_id = id, .status = 500, .body = "", .expires_at = now + answer_lifetime});
  }
  return inputs;
}

void release_outputs(Connection& connection, const std::string& key, const std::string& input_id,
                     std::optional<std::int64_t> up_to) {
  const auto session = session_row(connection, key);
  if (!session) return;
  const auto first = connection.value<std::int64_t>(
      "SELECT seq FROM outputs WHERE session = :s AND input_id = :i AND delivery = 0"
      " ORDER BY seq LIMIT 1",
      *session, input_id);
  if (!first) return;
  const bool has_gone_on =
      connection
          .value<int>(
              "SELECT 1 FROM outputs WHERE session = :s AND seq > :q AND delivery = 2"
              " LIMIT 1",
              *session, up_to.value_or(*first))
          .has_value();
  if (has_gone_on) return;
  connection.run("UPDATE sessions SET version = version + 1 WHERE id = :s", *session);
  make_pending(connection, *session, input_id, model::Delivery::none);
  wake_outbox(connection, *session, endpoint_of(key));
}

void insert_answer(Connection& connection, const std::string& key, const NewAnswer& answer) {
  connection.run(
      "INSERT INTO answers (input_id, status, body, expires_at, session_key)"
      " VALUES (:i, :s, :b, :e, :k)"
      " ON CONFLICT (input_id) DO UPDATE SET status = excluded.status, body = excluded.body,"
      " expires_at = excluded.expires_at, session_key = excluded.session_key",
      answer.input_id, answer.status, answer.body, to_unix_ms(answer.expires_at), key);
}

void write_replies(Connection& connection, const std::string& key, const Unit& unit) {
  if (connection.dialect() != Dialect::postgres && unit.replies.empty()) return;
  for (const auto& reply : unit.replies) {
    for (const auto& daemon : reply.daemons) {
      connection.run(
          "INSERT INTO replies (input_id, daemon, session_key, status, body, else_webhook,"
          " expires_at) VALUES (:i, :d, :k, :s, :b, :w, :e) ON CONFLICT (daemon, input_id)"
          " DO UPDATE SET status = excluded.status, body = excluded.body,"
          " else_webhook = excluded.else_webhook, expires_at = excluded.expires_at",
          reply.input_id, daemon, key, reply.status, reply.body, reply.else_webhook,
          to_unix_ms(reply.expires_at));
    }
    announce(connection, to_news(AnswerNews{.kind = AnswerNews::Kind::given,
                                            .input_id = reply.input_id,
                                            .daemons = reply.daemons}));
  }
  for (const auto& answer : unit.answers) {
    if (std::ranges::find(unit.replies, answer.input_id, &NewReply::input_id) !=
        unit.replies.end()) {
      continue;
    }
    announce(connection,
             to_news(AnswerNews{.kind = AnswerNews::Kind::given, .input_id = answer.input_id}));
  }
}

void announce_spoken(Connection& connection, const std::set<std::string>& names) {
  constexpr std::size_t names_each = max_news_bytes / (short_name_length + 1) - 1;
  std::string news;
  std::size_t gathered = 0;
  for (const auto& name : names) {
    if (gathered == 0) news = outputs_topic;
    news += ' ' + name;
    if (++gathered < names_each) continue;
    announce(connection, news);
    gathered = 0;
  }
  if (gathered > 0) announce(connection, news);
}

void mark_delivered(Connection& connection, const std::string& key, std::int64_t seq,
                    const std::string& output_id) {
  // By its id, too: the numbers of an erased session begin again. What follows in the session is
  // due now, but not because something was delivered twice.
  connection.run(
      "UPDATE outbox SET due_at = 0, attempts = 0 WHERE attempts > 0 AND session ="
      " (SELECT d.session FROM deliveries d JOIN outputs o ON o.session = d.session"
      " AND o.seq = d.seq WHERE d.session = (SELECT id FROM sessions WHERE key = :k)"
      " AND d.seq = :q AND o.output_id = :o)",
      key, seq, output_id);
  connection.run(
      "DELETE FROM deliveries WHERE session = (SELECT id FROM sessions WHERE key = :k)"
      " AND seq = :q AND EXISTS (SELECT 1 FROM outputs o WHERE o.session = deliveries.session"
      " AND o.seq = deliveries.seq AND o.output_id = :o)",
      key, seq, output_id);
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
