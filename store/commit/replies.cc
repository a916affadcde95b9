#include "store/commit/replies.h"

#include <algorithm>
#include <array>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "store/cluster/news.h"
#include "store/commit/row_writes.h"
#include "store/model/json.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::fail;
using model::Result;
using nlohmann::json;

namespace {

constexpr std::array<std::pair<AnswerNews::Kind, std::string_view>, 4> answer_kinds{{
    {AnswerNews::Kind::given, "given"},
    {AnswerNews::Kind::settled, "settled"},
    {AnswerNews::Kind::left, "left"},
    {AnswerNews::Kind::ended, "ended"},
}};
constexpr std::array<std::pair<SessionNews::Kind, std::string_view>, 2> session_kinds{{
    {SessionNews::Kind::touch, "touch"},
    {SessionNews::Kind::deliver, "deliver"},
}};

bool can_be_announced(const std::string& news) {
  return news.size() <= max_news_bytes;
}

std::string with_topic(std::string_view topic, const json& payload) {
  return std::string(topic) + ' ' + payload.dump(-1, ' ', false, json::error_handler_t::replace);
}

// For whose client the session's execution holds outputs; empty: for nobody's.
std::string held_by_running(Connection& connection, std::int64_t session) {
  const auto text =
      connection.value<std::string>("SELECT execution FROM sessions WHERE id = :i", session);
  if (!text) return {};
  const auto running = model::execution_from(json::parse(*text, nullptr, false));
  return running && running->holds_outputs ? running->input_id : std::string();
}

// What is held in the session for the input and behind it, if there is any, is pending from now on;
// whether there was. From the first output on that another input's client may get, others decide.
bool release(Connection& connection, const std::string& key, const std::string& input_id) {
  const auto session = session_row(connection, key);
  if (!session) return false;
  const auto before = connection
                          .value<std::int64_t>(
                              "SELECT seq FROM outputs WHERE session = :s AND delivery = 1"
                              " AND input_id <> :i AND (input_id = :r OR input_id IN"
                              " (SELECT input_id FROM replies"
                              " WHERE session_key = :k AND else_webhook = 1))"
                              " ORDER BY seq LIMIT 1",
                              *session, input_id, held_by_running(connection, *session), key)
                          .value_or(std::numeric_limits<std::int64_t>::max());
  const bool holds = connection
                         .value<int>(
                             "SELECT 1 FROM outputs WHERE session = :s AND delivery = 1"
                             " AND seq < :b LIMIT 1",
                             *session, before)
                         .has_value();
  if (!holds) return false;
  release_held(connection, *session, before);
  wake_outbox(connection, *session, endpoint_of(key));
  return true;
}

struct Row {
  std::string session;
  bool else_webhook = false;
};

// All that is left of an input's replies; whether outputs are pending now.
bool take_back_rows(Writer& writer, const std::string& input_id, std::string* session = nullptr) {
  Connection& connection = writer.connection();
  std::vector<Row> rows;
  connection.rows<std::string, bool>(
      [&](std::string key, bool else_webhook) {
        rows.push_back({std::move(key), else_webhook});
      },
      "DELETE FROM replies WHERE input_id = :i RETURNING session_key, else_webhook", input_id);
  const auto held = std::ranges::find(rows, true, &Row::else_webhook);
  if (held == rows.end()) return false;
  if (session != nullptr) *session = held->session;
  return release(connection, held->session, input_id);
}

// Outputs were held for the client that has them now; others wait behind those.
bool give_outputs(Connection& connection, const Replies::Settled& settled,
                  const std::string& input_id) {
  connection.run("UPDATE replies SET else_webhook = 0 WHERE input_id = :i", input_id);
  const auto session = session_row(connection, settled.session);
  if (!session) return false;
  keep_held(connection, *session, input_id);
  return release(connection, settled.session, input_id);
}

bool others_may_give(Connection& connection, const std::string& input_id) {
  return connection
      .value<int>("SELECT 1 FROM replies WHERE input_id = :i AND else_webhook = 1 LIMIT 1",
                  input_id)
      .has_value();
}

Replies::Settled settle_in(Writer& writer, const std::string& daemon, const std::string& input_id,
                           const std::function<bool()>& awaited) {
  Connection& connection = writer.connection();
  Replies::Settled settled;
  if (auto row = connection.row<std::string, int, std::string, bool>(
          "DELETE FROM replies WHERE daemon = :d AND input_id = :i"
          " RETURNING session_key, status, body, else_webhook",
          daemon, input_id)) {
    settled.found = Replies::Settled::Found::reply;
    std::tie(settled.session, settled.status, settled.body, settled.else_webhook) = *std::move(row);
    settled.given = !settled.else_webhook || awaited();
    if (settled.else_webhook && (settled.given || !others_may_give(connection, input_id))) {
      const bool pending = settled.given ? give_outputs(connection, settled, input_id)
                                         : release(connection, settled.session, input_id);
      writer.announce(to_news(AnswerNews{.kind = AnswerNews::Kind::settled,
                                         .input_id = input_id,
                                         .session = settled.session,
                                         .pending = pending}));
    }
  } else if (auto kept = connection.row<int, std::string>(
                 "SELECT status, body FROM answers WHERE input_id = :i AND expires_at > :n",
                 input_id, model::to_unix_ms(writer.now()))) {
    settled.found = Replies::Settled::Found::kept;
    settled.given = true;
    std::tie(settled.status, settled.body) = *std::move(kept);
  }
  return settled;
}

}  // namespace

std::string to_news(const AnswerNews& news) {
  json payload{{"input", news.input_id}};
  for (const auto& [kind, name] : answer_kinds) {
    if (kind == news.kind) payload["kind"] = name;
  }
  if (!news.daemons.empty()) payload["daemons"] = news.daemons;
  if (!news.session.empty()) payload["session"] = news.session;
  if (!news.reason.empty()) payload["reason"] = news.reason;
  if (news.until > model::Timestamp{}) payload["until"] = model::to_unix_ms(news.until);
  if (news.pending) payload["pending"] = true;
  auto text = with_topic(answers_topic, payload);
  if (can_be_announced(text)) return text;
  // A record that is not ours may have a key as long as this.
  payload.erase("session");
  return with_topic(answers_topic, payload);
}

std::optional<AnswerNews> answer_news_from(std::string_view payload) {
  const auto value = model::parse_json(payload);
  if (!value) return std::nullopt;
  try {
    AnswerNews news;
    const auto known = std::ranges::find(answer_kinds, value->at("kind").get<std::string>(),
                                         [](const auto& kind) { return kind.second; });
    if (known == answer_kinds.end()) return std::nullopt;  // of a newer version
    news.kind = known->first;
    news.input_id = value->at("input").get<std::string>();
    news.daemons = value->value("daemons", std::vector<std::string>());
    news.session = value->value("session", "");
    news.reason = value->value("reason", "");
    news.until = model::from_unix_ms(value->value("until", std::int64_t{0}));
    news.pending = value->value("pending", false);
    return news;
  } catch (const json::exception&) {
    return std::nullopt;
  }
}

std::string to_news(const SessionNews& news) {
  for (const auto& [kind, name] : session_kinds) {
    if (kind != news.kind) continue;
    auto text = with_topic(sessions_topic, {{name, news.session}});
    if (can_be_announced(text)) return text;
  }
  return std::string(sessions_topic);
}

std::optional<SessionNews> session_news_from(std::string_view payload) {
  const auto value = model::parse_json(payload);
  if (!value || !value->is_object()) return std::nullopt;
  for (const auto& [kind, name] : session_kinds) {
    const auto session = value->find(name);
    if (session != value->end() && session->is_string()) {
      return SessionNews{kind, session->get<std::string>()};
    }
  }
  return std::nullopt;
}

void Replies::settle(const std::string& daemon, const std::string& input_id,
                     std::function<bool()> awaited, std::function<void(Result<Settled>)> done) {
  auto settled = std::make_shared<Settled>();
  committer_.write(
      [settled, daemon, input_id, awaited = std::move(awaited)](Writer& writer) -> Result<void> {
        *settled = settle_in(writer, daemon, input_id, awaited);
        return {};
      },
      [settled, done = std::move(done)](const Result<void>& written) {
        done(written ? Result<Settled>(std::move(*settled)) : fail(written.error()));
      });
}

void Replies::take_back(const std::string& input_id, std::function<void(Result<bool>)> done) {
  auto pending = std::make_shared<bool>(false);
  committer_.write(
      [pending, input_id](Writer& writer) -> Result<void> {
        *pending = take_back_rows(writer, input_id);
        return {};
      },
      [pending, done = std::move(done)](const Result<void>& written) {
        done(written ? Result<bool>(*pending) : fail(written.error()));
      });
}

Result<void> Replies::take_back_expired(model::Timestamp now, std::size_t limit) {
  const auto now_ms = model::to_unix_ms(now);
  std::vector<std::string> inputs;
  auto expired = read(database_, [&](Connection& connection) -> Result<void> {
    inputs.clear();
    connection.rows<std::string>(
        [&](std::string input) { inputs.push_back(std::move(input)); },
        "SELECT DISTINCT input_id FROM replies WHERE expires_at <= :n LIMIT :l", now_ms, limit);
    return {};
  });
  if (!expired) return fail(expired.error());
  Result<void> outcome;
  for (const auto& input : inputs) {
    auto taken = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
      std::string session;
      if (take_back_rows(writer, input, &session)) {
        writer.announce(to_news(SessionNews{SessionNews::Kind::deliver, session}));
      }
      return {};
    });
    if (!taken && outcome) outcome = fail(taken.error());
  }
  return outcome;
}

void Replies::give_back(const std::string& session, const std::string& input_id) {
  committer_.write(
      [session, input_id](Writer& writer) -> Result<void> {
        release_outputs(writer.connection(), session, input_id, std::nullopt);
        writer.announce(to_news(SessionNews{SessionNews::Kind::deliver, session}));
        return {};
      },
      [](const Result<void>&) {});
}

Result<std::vector<std::string>> Replies::addressed_to(const std::string& daemon,
                                                       std::size_t limit) const {
  return read(database_, [&](Connection& connection) -> Result<std::vector<std::string>> {
    std::vector<std::string> inputs;
    connection.rows<std::string>([&](std::string input) { inputs.push_back(std::move(input)); },
                                 "SELECT input_id FROM replies WHERE daemon = :d LIMIT :l", daemon,
                                 limit);
    return inputs;
  });
}

void Replies::tell(const AnswerNews& news) {
  announce(to_news(news));
}

void Replies::tell(const SessionNews& news) {
  announce(to_news(news));
}

void Replies::announce(std::string news) {
  committer_.write(
      [news = std::move(news)](Writer& writer) -> Result<void> {
        writer.announce(news);
        return {};
      },
      [](const Result<void>&) {});
}

}  // namespace conversed::store
