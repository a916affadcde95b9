#include "store/idempotency/append_keys.h"

#include <memory>
#include <utility>

#include "store/sql/read.h"

namespace conversed::store {

namespace {

std::optional<AppendKeyRow> find_row(Connection& connection, const std::string& scope,
                                     const std::string& key, model::Timestamp made_after) {
  auto row = connection.row<std::string, std::string, std::optional<std::int64_t>,
                            std::optional<std::int64_t>, std::optional<std::int64_t>>(
      "SELECT body_hash, event_id, epoch, log_partition, log_offset FROM append_keys"
      " WHERE scope = :s AND idempotency_key = :k AND created_at > :c",
      scope, key, made_after);
  if (!row) return std::nullopt;
  auto& [hash, id, epoch, partition, offset] = *row;
  AppendKeyRow found{std::move(hash), std::move(id), std::nullopt};
  if (epoch && partition && offset) {
    found.position = model::Position{*epoch, static_cast<std::int32_t>(*partition), *offset};
  }
  return found;
}

}  // namespace

void AppendKeys::reserve(AppendKeyUse use, std::function<void(Result<Reserved>)> done) {
  auto reserved = std::make_shared<Reserved>();
  auto work = [use = std::move(use), reserved](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    const auto oldest = writer.timer_now() - append_key_lifetime;
    connection.run("DELETE FROM append_keys WHERE created_at <= :c", oldest);
    if (auto row = find_row(connection, use.scope, use.key, oldest);
        row && (use.supersedes.empty() || use.supersedes != row->event_id)) {
      // This use also appends, since it is unknown whether the first use's event is in the log.
      if (!row->position && row->body_hash == use.body_hash) {
        connection.run(
            "UPDATE append_keys SET uses = uses + 1 WHERE scope = :s AND idempotency_key = :k",
            use.scope, use.key);
      }
      *reserved = {std::move(*row), false};
      return {};
    }
    connection.run(
        "INSERT INTO append_keys (scope, idempotency_key, body_hash, event_id, created_at,"
        " session_key) VALUES (:s, :k, :h, :e, :c, :w) ON CONFLICT (scope, idempotency_key)"
        " DO UPDATE SET body_hash = excluded.body_hash, event_id = excluded.event_id, epoch = NULL,"
        " log_partition = NULL, log_offset = NULL, created_at = excluded.created_at, uses = 1,"
        " session_key = excluded.session_key",
        use.scope, use.key, use.body_hash, use.event_id, writer.timer_now(), use.session_key);
    *reserved = {{use.body_hash, use.event_id, std::nullopt}, true};
    return {};
  };
  if (!committer_.healthy()) return done(fail(Errc::unavailable, "the store fails"));
  committer_.write(
      std::move(work),
      [reserved, done = std::move(done)](const Result<void>& written) {
        if (!written) return done(fail(written.error()));
        done(std::move(*reserved));
      },
      Committer::Patience::none);
}

void AppendKeys::settle(const AppendKeyUse& use, const model::Position& position,
                        std::function<void()> told) {
  auto work = [use, position](Writer& writer) -> Result<void> {
    writer.connection().run(
        "UPDATE append_keys SET epoch = :p, log_partition = :q, log_offset = :o, created_at = :c"
        " WHERE scope = :s AND idempotency_key = :k AND event_id = :e",
        position.epoch, position.partition, position.offset, writer.timer_now(), use.scope, use.key,
        use.event_id);
    return {};
  };
  write_at_once(std::move(work), std::move(told));
}

void AppendKeys::release(const AppendKeyUse& use, std::function<void()> told) {
  auto work = [use](Writer& writer) -> Result<void> {
    writer.connection().run(
        "DELETE FROM append_keys WHERE scope = :s AND idempotency_key = :k AND event_id = :e"
        " AND log_offset IS NULL AND uses = 1",
        use.scope, use.key, use.event_id);
    return {};
  };
  write_at_once(std::move(work), std::move(told));
}

void AppendKeys::keep(std::vector<KeptKey> keys, std::function<void(bool kept)> done) {
  if (!committer_.healthy()) return done(false);
  auto work = [keys = std::move(keys)](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    connection.run("DELETE FROM append_keys WHERE created_at <= :c",
                   writer.timer_now() - append_key_lifetime);
    for (const auto& key : keys) {
      connection.run(
          "INSERT INTO append_keys (scope, idempotency_key, body_hash, event_id, epoch,"
          " log_partition, log_offset, created_at, session_key)"
          " VALUES (:s, :k, :h, :e, :p, :q, :o, :c, :w) ON CONFLICT (scope, idempotency_key)"
          " DO UPDATE SET body_hash = excluded.body_hash, event_id = excluded.event_id,"
          " epoch = excluded.epoch, log_partition = excluded.log_partition,"
          " log_offset = excluded.log_offset, created_at = excluded.created_at,"
          " session_key = excluded.session_key",
          key.scope, key.key, key.body_hash, key.id, key.position.epoch, key.position.partition,
          key.position.offset, key.created_ms, key.record_key);
    }
    return {};
  };
  committer_.write(
      std::move(work),
      [done = std::move(done)](const Result<void>& written) { done(written.has_value()); },
      Committer::Patience::none);
}

Result<std::optional<KeptKey>> AppendKeys::find_kept(const std::string& scope,
                                                     const std::string& key, model::Timestamp now) {
  auto row = find(scope, key, now);
  if (!row) return fail(Errc::unavailable, row.error().message);
  if (!*row || !(*row)->position) return std::nullopt;
  return KeptKey{.scope = scope,
                 .key = key,
                 .body_hash = std::move((*row)->body_hash),
                 .id = std::move((*row)->event_id),
                 .position = *(*row)->position,
                 .created_ms = model::to_unix_ms(now),
                 .record_key = {}};
}

Result<std::optional<AppendKeyRow>> AppendKeys::find(const std::string& scope,
                                                     const std::string& key,
                                                     model::Timestamp now) const {
  return read(database_, [&](Connection& connection) {
    return find_row(connection, scope, key, now - append_key_lifetime);
  });
}

// While the store fails, these writes must not accumulate: the unchanged row is enough for the
// key's next use.
void AppendKeys::write_at_once(Committer::Work work, std::function<void()> told) {
  if (!committer_.healthy()) return told();
  committer_.write(
      std::move(work), [told = std::move(told)](const Result<void>&) { told(); },
      Committer::Patience::none);
}

}  // namespace conversed::store
