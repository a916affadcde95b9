#include "store/idempotency/keyed_answers.h"

#include "store/sql/read.h"

namespace conversed::store {

Result<std::optional<KeptAnswer>> find_keyed_answer(Writer& writer, const AnswerKey& key) {
  auto row = writer.connection().row<std::string, int, std::string, std::string>(
      "SELECT body_hash, status, content_type, body FROM keyed_answers"
      " WHERE scope = :s AND idempotency_key = :k AND expires_at > :n",
      key.scope, key.key, writer.timer_now());
  if (!row) return std::nullopt;
  auto& [hash, status, content_type, body] = *row;
  if (hash != key.body_hash) {
    return fail(Errc::conflict, "the Idempotency-Key was used with another body");
  }
  return KeptAnswer{status, std::move(content_type), std::move(body)};
}

void keep_keyed_answer(Writer& writer, const KeyedAnswer& keyed) {
  Connection& connection = writer.connection();
  const auto now = writer.timer_now();
  connection.run("DELETE FROM keyed_answers WHERE expires_at <= :n", now);
  connection.run(
      "INSERT INTO keyed_answers (scope, idempotency_key, body_hash, status, content_type, body,"
      " expires_at, session_key) VALUES (:s, :k, :h, :t, :c, :b, :e, :w)",
      keyed.key.scope, keyed.key.key, keyed.key.body_hash, keyed.answer.status,
      keyed.answer.content_type, keyed.answer.body, writer.timer_now() + keyed_answer_lifetime,
      keyed.session_key);
}

}  // namespace conversed::store
