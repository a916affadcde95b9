#include "store/conversation/user_data.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <map>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/commit/receipt_blocks.h"
#include "store/commit/row_writes.h"
#include "store/commit/stored_steps.h"
#include "store/conversation/receipts.h"
#include "store/conversation/receipts_sql.h"
#include "store/conversation/rows_of_keys_sql.h"
#include "store/idempotency/append_keys.h"
#include "store/model/json.h"
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

// The receipts that one transaction of an erasure deletes.
constexpr std::size_t receipts_a_batch = 100;
constexpr std::size_t max_page_bytes = std::size_t{1} << 20;

// The JSON, or the text itself if it is damaged: damaged data also belongs to the user.
json readable(std::string text) {
  auto value = json::parse(text, nullptr, false);
  return value.is_discarded() ? json(std::move(text)) : std::move(value);
}

std::int64_t number_in(const std::string& text) {
  std::int64_t value = -1;
  std::from_chars(text.data(), text.data() + text.size(), value);
  return value;
}

// One statement reads the profile, the rows of a session, or those with a key of the user. The
// receipts of a session are read along their chain.
enum class Of : std::uint8_t { user, session, keys, chain };

struct Column {
  enum class Kind : std::uint8_t { number, text, json };
  Kind kind;
  std::string sql;
  std::string member{};  // of the item; empty: the column's name

  [[nodiscard]] SqlType type() const {
    return kind == Kind::number ? SqlType::integer : SqlType::text;
  }
};
Column number_of(std::string sql, std::string member = {}) {
  return {Column::Kind::number, std::move(sql), std::move(member)};
}
Column text_of(std::string sql, std::string member = {}) {
  return {Column::Kind::text, std::move(sql), std::move(member)};
}
// A column of JSON. NULL becomes null.
Column json_of(const std::string& sql, const std::string& member = {}) {
  return {Column::Kind::json, "COALESCE(" + sql + ", 'null')", member.empty() ? sql : member};
}
Column seconds_of(const std::string& sql, std::string member) {
  return number_of(sql + " / 1000", std::move(member));
}

// A kind of items: its rows, and the columns that an item shows.
struct Kind {
  Kind(const char* name_, Of of_, const std::string& rows, Column place_, const std::string& key,
       std::vector<Column> members_)
      : name(name_), of(of_), place(std::move(place_)), members(std::move(members_)) {
    sql = "SELECT " + place.sql + ", " + key;
    types = {place.type(), SqlType::text};
    for (const auto& column : members) {
      sql += ", " + column.sql;
      types.push_back(column.type());
    }
    sql += " FROM " + rows + " AND " + place.sql + " > :a ORDER BY " + place.sql + " LIMIT :l";
  }
  explicit Kind(const char* name_) : name(name_), of(Of::chain), place(text_of("")) {}

  const char* name;
  Of of;
  // A chain has no statement.
  Column place;  // orders the statement's rows
  std::vector<Column> members;
  std::string sql;  // selects place and session key of each row, and the members
  std::vector<SqlType> types;
};

const std::vector<Kind>& exported_kinds() {
  static const std::string of_session = "(SELECT s.key FROM sessions s WHERE s.id = session)";
  static const std::vector<Kind> all{
      Kind("profile", Of::user, "profiles WHERE project_id = :p AND user_id = :u",
           number_of("version * 0"), "''", {json_of("data")}),
      Kind("session", Of::session, "sessions WHERE id = :s", number_of("id"), "key",
           {seconds_of("started_at", "startedAt"), seconds_of("last_activity_at", "lastActivityAt"),
            json_of("context"), json_of("flow_state", "flowState"), json_of("execution")}),
      Kind("output", Of::session, "outputs WHERE session = :s", number_of("seq"), of_session,
           {number_of("seq"), text_of("text"), json_of("data"), text_of("source"),
            seconds_of("created_at", "createdAt")}),
      Kind("receipt"),
      Kind("waitingEvent", Of::session, "inbox WHERE session = :s", number_of("n"), of_session,
           {text_of("type"), json_of("value", "event")}),
      Kind("call", Of::session, "pending_calls WHERE session = :s AND due_at IS NULL",
           text_of("id"), of_session, {json_of("request")}),
      Kind("timer", Of::session, "pending_calls WHERE session = :s AND due_at IS NOT NULL",
           text_of("id"), of_session, {seconds_of("due_at", "dueAt")}),
      Kind("followUp", Of::session, "follow_ups WHERE session = :s", text_of("id"), of_session,
           {seconds_of("due_at", "dueAt"), json_of("value", "followUp")}),
      Kind("deadLetter", Of::keys, "dead_letters WHERE key >= :f AND key < :t", number_of("n"),
           "key",
           {text_of("type"), json_of("NULLIF(value, '')", "event"), text_of("reason"),
            text_of("state"), seconds_of("created_at", "createdAt")}),
      Kind("answer", Of::keys, "answers WHERE session_key >= :f AND session_key < :t",
           text_of("input_id"), "session_key", {json_of("body", "answer")}),
      Kind("schedule", Of::keys, "schedules WHERE key >= :f AND key < :t", number_of("n"), "key",
           {seconds_of("due_at", "dueAt"), json_of("message", "event")})};
  return all;
}

json item_of(const Kind& kind, std::vector<SqlValue>&& row) {
  json item{{"kind", kind.name}};
  if (const auto key = model::SessionKey::decode(std::get<std::string>(row[1]))) {
    item["endpointId"] = key->endpoint_id;
    item["sessionId"] = key->session_id;
  }
  for (std::size_t i = 0; i < kind.members.size(); ++i) {
    const Column& column = kind.members[i];
    json& member = item[column.member.empty() ? column.sql : column.member];
    std::visit([&](auto& value) { member = std::move(value); }, row[i + 2]);
    if (column.kind == Column::Kind::json) member = readable(member.get<std::string>());
  }
  return item;
}

json item_of_receipt(Connection& connection, const ReceiptBegin& begin,
                     const model::SessionKey& key) {
  const auto later = connection.value<std::string>(sql_of_later_steps, begin.event_id).value_or("");
  auto steps = read_later_steps(later, plain_deliveries(connection, begin.event_id));
  if (steps) std::ranges::for_each(*steps, unpack_answer);
  return {{"kind", "receipt"},
          {"endpointId", key.endpoint_id},
          {"sessionId", key.session_id},
          {"eventId", begin.event_id},
          {"step", read_step(begin.step).value_or(begin.step)},
          {"laterSteps", steps ? *std::move(steps) : json(later)},
          {"writtenAt", model::to_unix_ms(begin.written_at) / 1000}};
}

// Reads one page.
class Reader {
 public:
  // The rows of one statement: the number of the session, or nothing, and the values of the
  // statement's condition.
  struct Scope {
    std::string name;
    std::vector<SqlValue> in;
  };
  // Ordered by name.
  using Scopes = std::map<Of, std::vector<Scope>>;

  Reader(Connection& connection, Scopes scopes, std::size_t limit)
      : connection_(connection), scopes_(std::move(scopes)), limit_(limit) {}

  UserData::Page read(UserData::Place place) {
    for (; place.kind < exported_kinds().size(); place = {place.kind + 1, {}, {}}) {
      const Of of = exported_kinds()[place.kind].of;
      for (const Scope& scope : scopes_[of == Of::chain ? Of::session : of]) {
        if (comes_before(scope.name, place.scope)) continue;
        if (scope.name != place.scope) place = {place.kind, scope.name, {}};
        of == Of::chain ? read_receipts(scope, place) : read(scope, place);
        if (page_.next) return std::move(page_);
      }
    }
    return std::move(page_);
  }

 private:
  // Compares numbers.
  static bool comes_before(const std::string& a, const std::string& b) {
    return a.size() != b.size() ? a.size() < b.size() : a < b;
  }

  void read(const Scope& scope, const UserData::Place& after) {
    const Kind& kind = exported_kinds()[after.kind];
    const bool is_number = kind.place.type() == SqlType::integer;
    auto in = scope.in;
    in.push_back(is_number ? SqlValue(number_in(after.id)) : SqlValue(after.id));
    in.emplace_back(static_cast<std::int64_t>(limit_ - page_.items.size()));
    const auto add = [&](std::vector<SqlValue>&& row) {
      if (page_.next) return;
      auto id = is_number ? std::to_string(std::get<std::int64_t>(row[0]))
                          : std::get<std::string>(row[0]);
      append(item_of(kind, std::move(row)), {after.kind, after.scope, std::move(id)});
    };
    connection_.rows_once(add, kind.sql, in, kind.types);
  }

  // Reads a session's receipts along their chain, newest first, behind the event `after.id`.
  void read_receipts(const Scope& scope, const UserData::Place& after) {
    const auto session = std::get<std::int64_t>(scope.in.front());
    const auto owner = connection_.row<model::SessionKey, std::string>(
        "SELECT key, last_receipt FROM sessions WHERE id = :s", session);
    if (!owner) return;
    auto id = std::get<std::string>(*owner);
    if (!after.id.empty()) {
      const auto last = find_receipt(connection_, after.id);
      id = last ? last->previous : "";
    }
    while (!page_.next) {
      auto found = find_receipt(connection_, id);
      if (!found || found->session != session) return;
      append(item_of_receipt(connection_, *found, std::get<model::SessionKey>(*owner)),
             {after.kind, after.scope, std::exchange(id, std::move(found->previous))});
    }
  }

  void append(json item, UserData::Place place) {
    bytes_ += model::json_text(item).size();
    page_.items.push_back(std::move(item));
    if (page_.items.size() >= limit_ || bytes_ >= max_page_bytes) page_.next = std::move(place);
  }

  Connection& connection_;
  Scopes scopes_;
  const std::size_t limit_;
  UserData::Page page_;
  std::size_t bytes_ = 0;
};

model::Error came_meanwhile() {
  return {Errc::conflict, "an event of this user is being processed; try again in a moment"};
}

model::KeyRange keys_of(const UserOfProject& user) {
  return model::keys_of_user(user.project_id, user.user_id);
}

}  // namespace

std::string UserData::Place::to_text() const {
  return std::to_string(kind) + "." + scope + "." + id;
}

std::optional<UserData::Place> UserData::Place::from_text(std::string_view text) {
  Place place;
  const auto* end = text.data() + text.size();
  const auto kind = std::from_chars(text.data(), end, place.kind);
  text.remove_prefix(static_cast<std::size_t>(kind.ptr - text.data()));
  const auto dot = text.find('.', 1);
  if (kind.ec != std::errc() || place.kind >= exported_kinds().size() || !text.starts_with('.') ||
      dot == std::string_view::npos) {
    return std::nullopt;
  }
  place.scope = text.substr(1, dot - 1);
  place.id = text.substr(dot + 1);
  const Of of = exported_kinds()[place.kind].of;
  const bool is_scope =
      of == Of::user || of == Of::keys ? place.scope.empty() : number_in(place.scope) >= 0;
  return is_scope ? std::optional(std::move(place)) : std::nullopt;
}

Result<std::vector<UserData::SessionRow>> UserData::sessions_of(const UserOfProject& user) const {
  const auto range = keys_of(user);
  auto rows = read_all(
      database_,
      [](std::int64_t id, std::string key, std::int64_t version, std::int64_t epoch,
         std::int32_t partition, std::int64_t offset) {
        return SessionRow{id,
                          std::move(key),
                          version,
                          {.epoch = epoch, .partition = partition, .offset = offset}};
      },
      "SELECT id, key, version, position_epoch, position_partition, position_offset"
      " FROM sessions WHERE key >= :f AND key < :t",
      range.from, range.to);
  if (rows) std::ranges::sort(*rows, {}, &SessionRow::id);
  return rows;
}

Result<UserData::Page> UserData::read_page(const UserOfProject& user, const Place& after,
                                           std::size_t limit) const {
  auto sessions = sessions_of(user);
  if (!sessions) return fail(sessions.error());
  return read(database_, [&](Connection& connection) {
    Reader::Scopes scopes{{Of::user, {{"", {user.project_id, user.user_id}}}}};
    for (const auto& session : *sessions) {
      scopes[Of::session].push_back({std::to_string(session.id), {session.id}});
    }
    auto [from, to] = keys_of(user);
    scopes[Of::keys].push_back({"", {std::move(from), std::move(to)}});
    return Reader(connection, std::move(scopes), limit).read(after);
  });
}

Result<std::unique_lock<std::mutex>> UserData::begin_erasure() {
  std::unique_lock lock(erasing_, std::try_to_lock);
  if (lock) return lock;
  return fail(Errc::conflict, "another user is being erased; try again when that has ended");
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
  const Keys keys{keys_of(user), !hooks.lives_elsewhere};
  if (auto gone = erase_causes(keys, erased); !gone) return fail(gone.error());
  for (const auto& session : *sessions) {
    if (auto gone = erase_session(session, hooks, erased); !gone) return fail(gone.error());
  }
  if (auto gone = erase_rest(user, keys, hooks, erased); !gone) return fail(gone.error());
  if (auto emptied = empty_write_ahead_log(); !emptied) return fail(emptied.error());
  return erased;
}

// Deletes what could still begin a new session of the user while the sessions are erased. An event
// of a deleted schedule or dead letter, even one that is in the log, finds no claim and has no
// effects.
Result<void> UserData::erase_causes(const Keys& keys, Erased& erased) {
  if (auto gone = erase_keyed(keys,
                              "DELETE FROM schedules WHERE id IN (SELECT id FROM schedules"
                              " WHERE key >= :f AND key < :t LIMIT :l)",
                              erased.pending);
      !gone) {
    return gone;
  }
  return erase_keyed(keys, sql_to_delete_dead_letters, erased.dead_letters);
}

// Deletes rows by their session keys, in batches. `sql` has the range and the batch's limit.
Result<void> UserData::erase_keyed(const Keys& keys, std::string_view sql, std::int64_t& count) {
  for (std::int64_t removed = rows_a_batch; removed == rows_a_batch;) {
    auto written = committer_.write_and_wait([&](Writer& writer) -> Result<std::int64_t> {
      if (auto here = keys.check(writer); !here) return fail(here.error());
      return writer.connection().run_counted(sql, keys.range.from, keys.range.to, rows_a_batch);
    });
    if (!written) return fail(written.error());
    removed = *written;
    count += removed;
  }
  return {};
}

// From the oldest on: an erasure that was interrupted finds the rest along the chain.
Result<void> UserData::erase_receipts(const SessionRow& session, Erased& erased) {
  auto chain =
      read(database_, [&](Connection& connection) { return chain_of(connection, session.id); });
  if (!chain) return fail(chain.error());
  while (!chain->empty()) {
    std::size_t events = 0;
    std::int64_t found = 0;  // the retention may have removed the last one
    auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
      found = 0;
      if (auto here = writer.check_place(session.key); !here) return here;
      for (events = 0; events < receipts_a_batch && events < chain->size(); ++events) {
        const auto& id = (*chain)[chain->size() - 1 - events];
        if (remove_receipt(writer.connection(), id, session.id)) ++found;
      }
      return {};
    });
    if (!written) return written;
    chain->resize(chain->size() - events);
    erased.receipts += found;
  }
  return {};
}

// Deletes receipts and outputs in batches, then all other rows with the session. The commit of a
// Turn that began before is a conflict: its batch is built again on a new session.
Result<void> UserData::erase_session(const SessionRow& row, const EraseHooks& hooks,
                                     Erased& erased) {
  if (auto gone = erase_receipts(row, erased); !gone) return gone;
  for (std::int64_t removed = rows_a_batch; removed == rows_a_batch;) {
    auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
      if (auto here = writer.check_place(row.key); !here) return here;
      Connection& connection = writer.connection();
      connection.run("DELETE FROM deliveries WHERE session = :s", row.id);
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
    if (auto here = writer.check_place(row.key); !here) return here;
    Connection& connection = writer.connection();
    const auto version =
        connection.value<std::int64_t>("SELECT version FROM sessions WHERE id = :i", row.id);
    if (!version) return {};
    if (*version != row.version) return fail(came_meanwhile());
    auto inputs = end_inputs(connection, row.id, row.key, writer.timer_now());
    pending = delete_session(connection, row.id);
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

// First the keys: a repeat that comes afterwards is new, and an earlier repeat still finds its
// answer. Outputs that were given up meanwhile are dead letters.
Result<void> UserData::erase_rest(const UserOfProject& user, const Keys& keys,
                                  const EraseHooks& hooks, Erased& erased) {
  if (hooks.forget_keys) {
    if (auto forgotten = hooks.forget_keys(keys.range); !forgotten) return forgotten;
  }
  std::int64_t not_reported = 0;
  const std::array<std::pair<std::string_view, std::int64_t&>, 4> deletions{
      {{sql_to_delete_append_keys, not_reported},
       {sql_to_delete_keyed_answers, not_reported},
       {sql_to_delete_dead_letters, erased.dead_letters},
       {sql_to_delete_answers, erased.answers}}};
  for (const auto& [sql, count] : deletions) {
    if (auto gone = erase_keyed(keys, sql, count); !gone) return gone;
  }
  std::int64_t profiles = 0;
  auto written = committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    if (auto here = keys.check(writer); !here) return here;
    // The audit trail keeps the reads and erasures, without the user's name.
    writer.connection().run(
        "UPDATE audit SET subject_user = '', subject_session = '' WHERE subject_user = :u"
        " AND organisation_id = (SELECT organisation_id FROM projects WHERE id = :p)",
        user.user_id, user.project_id);
    profiles = writer.connection().run_counted(
        "DELETE FROM profiles WHERE project_id = :p AND user_id = :u", user.project_id,
        user.user_id);
    announce(writer.connection(), erased_topic);
    return {};
  });
  if (written) erased.profiles += profiles;
  return written;
}

// Deleted data is overwritten in the file (secure_delete), but the write-ahead log still has older
// versions of its pages.
Result<void> UserData::empty_write_ahead_log() {
  // PostgreSQL's administrator manages its log and pages; VACUUM removes deleted rows.
  if (database_.dialect() != Dialect::sqlite) return {};
  constexpr int tries = 20;  // each waits a while for readers, which hold it for one read
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
