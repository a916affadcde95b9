#include "store/conversation/user_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <iterator>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/commit/row_writes.h"
#include "store/sql/read.h"

namespace conversed::store {

using nlohmann::json;

struct UserData::SessionRow {
  std::int64_t id = 0;
  std::string key;
  std::int64_t version = 0;
  model::Position position;
};

namespace {

constexpr std::size_t max_page_bytes = std::size_t{1} << 20;
constexpr std::int64_t rows_a_batch = 500;
constexpr std::size_t kind_count = 9;

// Damaged data is the user's, too.
json readable(std::string text) {
  auto value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(std::move(text)) : std::move(value);
}
json readable(std::optional<std::string> text) {
  return text ? readable(*std::move(text)) : json(nullptr);
}

std::int64_t seconds(std::int64_t unix_ms) {
  return unix_ms / 1000;
}

std::int64_t number_in(const std::string& text) {
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

std::vector<std::string> endpoints_of(Connection& connection, const std::string& project_id) {
  return connection.values<std::string>(
      "SELECT id FROM endpoints WHERE project_id = :p ORDER BY id", project_id);
}

// {"endpointId","sessionId"} of a session's key.
json names_of(const std::string& key) {
  const auto names = model::SessionKey::decode(key);
  if (!names) return json::object();
  return {{"endpointId", names->endpoint_id}, {"sessionId", names->session_id}};
}

// One page on its way.
template <typename SessionRow>
class Reader {
 public:
  Reader(Connection& connection, const UserOfProject& user, std::vector<SessionRow> sessions,
         std::size_t limit)
      : connection_(connection),
        user_(user),
        sessions_(std::move(sessions)),
        endpoints_(endpoints_of(connection, user.project_id)),
        limit_(limit) {}

  UserData::Page read(const UserData::Place& after) {
    for (std::size_t kind = after.kind; kind < kinds.size() && !full(); ++kind) {
      kind_ = kind;
      (this->*kinds[kind])(kind == after.kind ? after : UserData::Place{kind, -1, {}});
    }
    return std::move(page_);
  }

 private:
  using Kind = void (Reader::*)(const UserData::Place&);

  [[nodiscard]] bool full() const { return page_.next.has_value(); }
  [[nodiscard]] std::size_t room() const { return limit_ - page_.items.size(); }

  void add(const char* kind, std::int64_t row, std::string id, json item) {
    if (full()) return;
    item["kind"] = kind;
    bytes_ += item.dump(-1, ' ', false, json::error_handler_t::replace).size();
    page_.items.push_back(std::move(item));
    if (page_.items.size() >= limit_ || bytes_ >= max_page_bytes) {
      page_.next = UserData::Place{kind_, row, std::move(id)};
    }
  }

  // Calls `each` for the sessions from the one that `after` stands in; with what it says of it.
  template <typename Each>
  void each_session(const UserData::Place& after, Each&& each) {
    for (const auto& session : sessions_) {
      if (full()) return;
      if (session.id >= after.row) each(session, session.id == after.row ? after.id : "");
    }
  }

  void profile(const UserData::Place& after) {
    if (after.row >= 0) return;
    auto row = connection_.template row<std::string>(
        "SELECT data FROM profiles WHERE project_id = :p AND user_id = :u", user_.project_id,
        user_.user_id);
    if (row) add("profile", 0, "", {{"data", readable(std::move(std::get<0>(*row)))}});
  }

  void sessions(const UserData::Place& after) {
    for (const auto& session : sessions_) {
      if (session.id <= after.row) continue;
      auto row = connection_.template row<std::int64_t, std::int64_t, std::string, std::string,
                                          std::optional<std::string>>(
          "SELECT started_at, last_activity_at, context, flow_state, execution FROM sessions"
          " WHERE id = :i",
          session.id);
      if (!row) continue;
      auto& [started, active, context, state, execution] = *row;
      json item = names_of(session.key);
      item["startedAt"] = seconds(started);
      item["lastActivityAt"] = seconds(active);
      item["context"] = readable(std::move(context));
      item["flowState"] = readable(std::move(state));
      item["execution"] = readable(std::move(execution));
      add("session", session.id, "", std::move(item));
    }
  }

  void outputs(const UserData::Place& after) {
    each_session(after, [&](const SessionRow& session, const std::string& seen) {
      connection_.rows(
          [&](std::int64_t seq, std::string text, std::optional<std::string> data,
              std::string source, std::int64_t created) {
            json item = names_of(session.key);
            item["seq"] = seq;
            item["text"] = std::move(text);
            item["data"] = readable(std::move(data));
            item["source"] = std::move(source);
            item["createdAt"] = seconds(created);
            add("output", session.id, std::to_string(seq), std::move(item));
          },
          "SELECT seq, text, data, source, created_at FROM outputs WHERE session = :s AND seq > :a"
          " ORDER BY seq LIMIT :l",
          session.id, number_in(seen), room());
    });
  }

  void waiting(const UserData::Place& after) {
    each_session(after, [&](const SessionRow& session, const std::string& seen) {
      connection_.rows(
          [&](std::int64_t n, std::string type, std::string value) {
            json item = names_of(session.key);
            item["type"] = std::move(type);
            item["event"] = readable(std::move(value));
            add("waitingEvent", session.id, std::to_string(n), std::move(item));
          },
          "SELECT n, type, value FROM inbox WHERE session = :s AND n > :a ORDER BY n LIMIT :l",
          session.id, number_in(seen), room());
    });
  }

  void calls(const UserData::Place& after) {
    each_session(after, [&](const SessionRow& session, const std::string& seen) {
      connection_.rows(
          [&](const std::string& id, std::optional<std::string> request,
              std::optional<std::int64_t> due) {
            json item = names_of(session.key);
            if (due) item["dueAt"] = seconds(*due);
            if (request) item["request"] = readable(std::move(request));
            add(due ? "timer" : "call", session.id, id, std::move(item));
          },
          "SELECT id, request, due_at FROM pending_calls WHERE session = :s AND id > :a"
          " ORDER BY id LIMIT :l",
          session.id, seen, room());
    });
  }

  void follow_ups(const UserData::Place& after) {
    each_session(after, [&](const SessionRow& session, const std::string& seen) {
      connection_.rows(
          [&](const std::string& id, std::string value, std::int64_t due) {
            json item = names_of(session.key);
            item["dueAt"] = seconds(due);
            item["followUp"] = readable(std::move(value));
            add("followUp", session.id, id, std::move(item));
          },
          "SELECT id, value, due_at FROM follow_ups WHERE session = :s AND id > :a"
          " ORDER BY id LIMIT :l",
          session.id, seen, room());
    });
  }

  void schedules(const UserData::Place& after) {
    for (const auto& endpoint : endpoints_) {
      if (full() || endpoint < after.id) continue;
      const auto range = keys_of_user(user_.project_id, endpoint, user_.user_id);
      connection_.rows(
          [&](std::int64_t n, const std::string& key, std::string message, std::int64_t due) {
            json item = names_of(key);
            item["dueAt"] = seconds(due);
            item["event"] = readable(std::move(message));
            add("schedule", n, endpoint, std::move(item));
          },
          "SELECT n, key, message, due_at FROM schedules"
          " WHERE key >= :f AND key < :t AND n > :a ORDER BY n LIMIT :l",
          range.from, range.to, endpoint == after.id ? after.row : -1, room());
    }
  }

  void dead_letters(const UserData::Place& after) {
    for (const auto& endpoint : endpoints_) {
      if (full() || endpoint < after.id) continue;
      const auto range = keys_of_user(user_.project_id, endpoint, user_.user_id);
      connection_.rows(
          [&](std::int64_t n, const std::string& key, std::string type, std::string value,
              std::string reason, std::string state, std::int64_t created) {
            json item = names_of(key);
            item["type"] = std::move(type);
            item["event"] = value.empty() ? json(nullptr) : readable(std::move(value));
            item["reason"] = std::move(reason);
            item["state"] = std::move(state);
            item["createdAt"] = seconds(created);
            add("deadLetter", n, endpoint, std::move(item));
          },
          "SELECT n, key, type, value, reason, state, created_at FROM dead_letters"
          " WHERE key >= :f AND key < :t AND n > :a ORDER BY n LIMIT :l",
          range.from, range.to, endpoint == after.id ? after.row : -1, room());
    }
  }

  void answers(const UserData::Place& after) {
    for (std::size_t i = 0; i < endpoints_.size(); ++i) {
      const auto number = static_cast<std::int64_t>(i);
      if (full() || number < after.row) continue;
      const auto range = keys_of_user(user_.project_id, endpoints_[i], user_.user_id);
      connection_.rows(
          [&](std::string id, const std::string& key, std::string body) {
            json item = names_of(key);
            item["answer"] = readable(std::move(body));
            add("answer", number, std::move(id), std::move(item));
          },
          "SELECT input_id, session_key, body FROM answers WHERE session_key >= :f"
          " AND session_key < :t AND input_id > :a ORDER BY input_id LIMIT :l",
          range.from, range.to, number == after.row ? after.id : std::string(), room());
    }
  }

  static constexpr std::array<Kind, kind_count> kinds{
      &Reader::profile, &Reader::sessions,   &Reader::outputs,
      &Reader::waiting, &Reader::calls,      &Reader::dead_letters,
      &Reader::answers, &Reader::follow_ups, &Reader::schedules};

  Connection& connection_;
  const UserOfProject& user_;
  const std::vector<SessionRow> sessions_;
  const std::vector<std::string> endpoints_;
  const std::size_t limit_;
  UserData::Page page_;
  std::size_t kind_ = 0;
  std::size_t bytes_ = 0;
};

model::Error came_meanwhile() {
  return {Errc::conflict, "an event of this user is on its way or in hand; try again in a moment"};
}

}  // namespace

KeyRange keys_of_user(const std::string& project_id, const std::string& endpoint_id,
                      const std::string& user_id) {
  auto from = model::SessionKey{project_id, endpoint_id, user_id, ""}.encode();
  auto to = from;
  ++to.back();  // the separator: no character of a name is before the one that follows it
  return {std::move(from), std::move(to)};
}

std::string UserData::Place::to_text() const {
  return std::to_string(kind) + "." + std::to_string(row) + "." + id;
}

std::optional<UserData::Place> UserData::Place::from_text(std::string_view text) {
  Place place;
  const auto* end = text.data() + text.size();
  const auto kind = std::from_chars(text.data(), end, place.kind);
  if (kind.ec != std::errc() || kind.ptr == end || *kind.ptr != '.' || place.kind >= kind_count) {
    return std::nullopt;
  }
  const auto row = std::from_chars(kind.ptr + 1, end, place.row);
  if (row.ec != std::errc() || row.ptr == end || *row.ptr != '.' || place.row < 0) {
    return std::nullopt;
  }
  place.id.assign(row.ptr + 1, end);
  return place;
}

Result<std::vector<UserData::SessionRow>> UserData::sessions_of(const UserOfProject& user) const {
  return read(database_, [&](Connection& connection) {
    std::vector<SessionRow> rows;
    for (const auto& endpoint : endpoints_of(connection, user.project_id)) {
      const auto range = keys_of_user(user.project_id, endpoint, user.user_id);
      connection.rows(
          [&](std::int64_t id, std::string key, std::int64_t version, std::int64_t epoch,
              std::int32_t partition, std::int64_t offset) {
            rows.push_back({id,
                            std::move(key),
                            version,
                            {.epoch = epoch, .partition = partition, .offset = offset}});
          },
          "SELECT id, key, version, position_epoch, position_partition, position_offset"
          " FROM sessions WHERE key >= :f AND key < :t",
          range.from, range.to);
    }
    std::ranges::sort(rows, {}, &SessionRow::id);
    return rows;
  });
}

Result<std::vector<KeyRange>> UserData::key_ranges(const UserOfProject& user) const {
  return read(database_, [&](Connection& connection) {
    std::vector<KeyRange> ranges;
    for (const auto& endpoint : endpoints_of(connection, user.project_id)) {
      ranges.push_back(keys_of_user(user.project_id, endpoint, user.user_id));
    }
    return ranges;
  });
}

Result<UserData::Page> UserData::read_page(const UserOfProject& user, const Place& after,
                                           std::size_t limit) const {
  auto sessions = sessions_of(user);
  if (!sessions) return fail(sessions.error());
  return read(database_, [&](Connection& connection) {
    return Reader<SessionRow>(connection, user, *std::move(sessions), limit).read(after);
  });
}

Result<std::unique_lock<std::mutex>> UserData::begin_erasure() {
  std::unique_lock lock(erasing_, std::try_to_lock);
  if (lock) return lock;
  return fail(Errc::conflict, "another user is being erased; try again when that is done");
}

Result<UserData::Erased> UserData::erase(const UserOfProject& user, const EraseHooks& hooks) {
  auto sessions = sessions_of(user);
  if (!sessions) return fail(sessions.error());
  for (const auto& session : *sessions) {
    if (session.position.epoch != 0 && !hooks.finished(session.position)) {
      return fail(came_meanwhile());
    }
  }
  Erased erased;
  for (const auto& session : *sessions) {
    if (auto gone = erase_session(session, hooks, erased); !gone) return fail(gone.error());
  }
  if (auto gone = erase_rest(user, hooks, erased); !gone) return fail(gone.error());
  if (auto emptied = empty_write_ahead_log(); !emptied) return fail(emptied.error());
  return erased;
}

// Outputs are deleted in batches, the rest with the session. A Turn that began before finds the
// session gone and begins anew.
Result<void> UserData::erase_session(const SessionRow& row, const EraseHooks& hooks,
                                     Erased& erased) {
  for (std::int64_t removed = rows_a_batch; removed == rows_a_batch;) {
    auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
      Connection& connection = writer.connection();
      connection.run("DELETE FROM deliveries WHERE session = :s", row.id);
      connection.run("DELETE FROM outbox WHERE session = :s", row.id);
      removed = connection.run_counted(
          "DELETE FROM outputs WHERE id IN (SELECT id FROM outputs WHERE session = :s LIMIT :l)",
          row.id, rows_a_batch);
      return {};
    });
    if (!written) return written;
    erased.outputs += removed;
  }
  const auto key = model::SessionKey::decode(row.key);
  std::int64_t pending = 0;
  const auto work = [&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    const auto version =
        connection.value<std::int64_t>("SELECT version FROM sessions WHERE id = :i", row.id);
    if (!version) return {};
    if (*version != row.version) return fail(came_meanwhile());
    auto inputs = end_inputs(connection, row.id, row.key, writer.timer_now());
    pending = connection.run_counted("DELETE FROM inbox WHERE session = :s", row.id) +
              connection.run_counted("DELETE FROM pending_calls WHERE session = :s", row.id) +
              connection.run_counted("DELETE FROM follow_ups WHERE session = :s", row.id);
    connection.run("DELETE FROM sessions WHERE id = :i", row.id);
    announce(connection, deliver_topic, row.key);
    if (hooks.ended && key) {
      writer.on_commit(
          [ended = hooks.ended, key = *key, inputs = std::move(inputs)] { ended(key, inputs); });
    }
    return {};
  };
  auto written = committer_.write_and_wait(work);
  if (!written) return written;
  erased.pending += pending;
  ++erased.sessions;
  return {};
}

// Keys first: a repeat that comes now is new, and one that came before still finds its answer.
Result<void> UserData::erase_rest(const UserOfProject& user, const EraseHooks& hooks,
                                  Erased& erased) {
  auto ranges = key_ranges(user);
  if (!ranges) return fail(ranges.error());
  if (hooks.forget_keys) {
    if (auto forgotten = hooks.forget_keys(*ranges); !forgotten) return forgotten;
  }
  for (const auto& range : *ranges) {
    std::int64_t keys = 0;
    std::int64_t letters = 0;
    std::int64_t answers = 0;
    std::int64_t schedules = 0;
    do {
      auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
        const auto clear = [&](std::string_view sql) {
          return writer.connection().run_counted(sql, range.from, range.to, rows_a_batch);
        };
        keys = clear(
            "DELETE FROM append_keys WHERE (scope, idempotency_key) IN (SELECT scope,"
            " idempotency_key FROM append_keys WHERE session_key >= :f AND session_key < :t"
            " LIMIT :l)");
        keys += clear(
            "DELETE FROM keyed_answers WHERE (scope, idempotency_key) IN (SELECT scope,"
            " idempotency_key FROM keyed_answers WHERE session_key >= :f AND session_key < :t"
            " LIMIT :l)");
        letters = clear(
            "DELETE FROM dead_letters WHERE id IN (SELECT id FROM dead_letters WHERE key >= :f"
            " AND key < :t LIMIT :l)");
        answers = clear(
            "DELETE FROM answers WHERE input_id IN (SELECT input_id FROM answers"
            " WHERE session_key >= :f AND session_key < :t LIMIT :l)");
        schedules = clear(
            "DELETE FROM schedules WHERE id IN (SELECT id FROM schedules WHERE key >= :f"
            " AND key < :t LIMIT :l)");
        return {};
      });
      if (!written) return written;
      erased.dead_letters += letters;
      erased.pending += schedules;
      erased.answers += answers;
    } while (std::max({keys, letters, answers, schedules}) >= rows_a_batch);
  }
  std::int64_t profiles = 0;
  auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    // The audit trail keeps the reads and erasures, without the user's name.
    writer.connection().run(
        "UPDATE audit SET subject_user = '', subject_session = '' WHERE subject_user = :u"
        " AND organisation_id = (SELECT organisation_id FROM projects WHERE id = :p)",
        user.user_id, user.project_id);
    profiles = writer.connection().run_counted(
        "DELETE FROM profiles WHERE project_id = :p AND user_id = :u", user.project_id,
        user.user_id);
    return {};
  });
  if (written) erased.profiles += profiles;
  return written;
}

// Deleted data is overwritten in the file (secure_delete), but the write-ahead log still has older
// versions of its pages.
Result<void> UserData::empty_write_ahead_log() {
  // In PostgreSQL the log and the pages are the administrator's; VACUUM removes deleted rows.
  if (database_.dialect() != Dialect::sqlite) return {};
  constexpr int tries = 20;  // each waits a while for readers, which are inside for one statement
  for (int i = 0; i < tries; ++i) {
    std::int64_t busy = 1;
    auto ran = committer_.run_alone([&](Writer& writer) -> Result<void> {
      busy = writer.connection().value<std::int64_t>("PRAGMA wal_checkpoint(TRUNCATE)").value_or(1);
      return {};
    });
    if (!ran) return ran;
    if (busy == 0) return {};
  }
  return fail(Errc::unavailable,
              "everything is removed, but the store's write-ahead log is in use; try again");
}

}  // namespace conversed::store
