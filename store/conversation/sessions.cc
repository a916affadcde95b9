#include "store/conversation/sessions.h"

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <string_view>
#include <tuple>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/commit/row_writes.h"
#include "store/conversation/due_sql.h"
#include "store/conversation/receipts.h"
#include "store/conversation/session_row.h"
#include "store/model/ids.h"
#include "store/model/receipt_text.h"
#include "store/model/session_keys.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

// Reads a part that may be damaged. If `damage` is given, notes the damage there and leaves the
// part as it was.
template <typename F>
void read_part(std::string* damage, const F& part) {
  if (damage == nullptr) return part();
  try {
    part();
  } catch (const DamagedData& error) {
    *damage = error.what();
  }
}

constexpr std::string_view session_columns =
    "SELECT s.version, s.position_epoch, s.position_partition, s.position_offset, s.started_at,"
    " s.last_activity_at, s.context, s.flow_state, s.execution, s.last_output_seq, s.inbox_size,"
    " s.last_receipt";

std::optional<model::Session> load_session(Connection& connection, const model::SessionKey& key,
                                           Sessions::Loaded* loaded = nullptr) {
  static const std::string sql =
      std::string(session_columns) + ", 0, '' FROM sessions s WHERE s.key = :k";
  return connection.first(SessionOfRow{key, loaded}, sql, key);
}

// Asks for session and profile by one statement, from one snapshot. A missing row has NULLs, which
// are read as 0 and empty.
template <typename... Out>
Asked<Out...> ask_both(detail::Columns<Out...> /*types*/, Connection& connection,
                       const model::SessionKey& key) {
  static const std::string sql = std::string(session_columns) +
                                 ", p.version AS profile_version, p.data FROM (SELECT 1) AS one"
                                 " LEFT JOIN sessions s ON s.key = :k"
                                 " LEFT JOIN profiles p ON p.project_id = :p AND p.user_id = :u";
  return connection.ask<Out...>(sql, key, key.project_id, key.user_id);
}

}  // namespace

std::optional<model::Session> SessionOfRow::operator()(
    std::int64_t version, std::int64_t epoch, std::int32_t partition, std::int64_t offset,
    model::Timestamp started, model::Timestamp active, const std::string& context,
    const std::string& flow_state, const std::optional<std::string>& execution, std::int64_t seq,
    std::int64_t inbox_size, std::string last_receipt, std::int64_t profile_version,
    const std::string& profile) const {
  std::string* const damage = loaded == nullptr ? nullptr : &loaded->damage;
  if (loaded != nullptr && profile_version != 0) {
    loaded->profile.version = profile_version;
    read_part(damage, [&] { loaded->profile.data = stored_json(profile); });
  }
  if (version == 0) return std::nullopt;
  model::Session session;
  session.key = key;
  session.version = version;
  session.position = {.epoch = epoch, .partition = partition, .offset = offset};
  session.started_at = started;
  session.last_activity_at = active;
  read_part(damage, [&] { session.context = stored_json(context); });
  read_part(damage, [&] { session.flow_state = stored_json(flow_state); });
  if (execution) {
    read_part(damage, [&] {
      session.execution = stored_or_throw(model::execution_from(stored_json(*execution)));
    });
    if (loaded != nullptr) loaded->execution_lost = !session.execution;
  }
  session.last_output_seq = seq;
  session.inbox_size = inbox_size;
  session.last_receipt = std::move(last_receipt);
  return session;
}

Result<std::optional<model::Session>> Sessions::load(const model::SessionKey& key) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<model::Session>> {
    return load_session(connection, key);
  });
}

Result<std::optional<Sessions::Mark>> Sessions::mark(const model::SessionKey& key) const {
  return read_first(
      database_,
      [](std::int64_t version, std::optional<std::int64_t> seq, std::optional<std::int64_t> tries,
         std::optional<model::Timestamp> due, std::optional<std::int64_t> calls,
         std::optional<model::Timestamp> call_at) {
        Mark mark{.id = std::to_string(version), .version = version};
        const auto add = [&mark](std::optional<model::Timestamp> at, std::int64_t n) {
          if (!at) return;
          mark.id += '.' + std::to_string(n) + '.' + std::to_string(model::to_unix_ms(*at));
          if (!mark.next_try || *at < *mark.next_try) mark.next_try = at;
        };
        if (seq) mark.id += ".d" + std::to_string(*seq);
        add(due, tries.value_or(0));
        if (call_at) mark.id += ".c";
        add(call_at, calls.value_or(0));
        return mark;
      },
      sql_of_session_mark, key);
}

Result<Sessions::Loaded> Sessions::load_with_profile(const model::SessionKey& key) const {
  return load_with_profiles({&key, 1}).map(
      [](std::vector<Loaded> all) { return std::move(all.front()); });
}

Result<std::vector<Sessions::Loaded>> Sessions::load_with_profiles(
    std::span<const model::SessionKey> keys) const {
  return read(database_, [&](Connection& connection) -> Result<std::vector<Loaded>> {
    const auto ask = [&](const model::SessionKey& key) {
      return ask_both(detail::ColumnsOf<SessionOfRow>::Type(), connection, key);
    };
    std::vector<decltype(ask(keys.front()))> asked;
    for (const auto& key : keys) asked.push_back(ask(key));
    std::vector<Loaded> all;
    for (std::size_t i = 0; i < keys.size(); ++i) {
      Loaded loaded;
      loaded.profile.project_id = keys[i].project_id;
      loaded.profile.user_id = keys[i].user_id;
      if (auto row = asked[i].take()) {
        loaded.session = std::apply(SessionOfRow{keys[i], &loaded}, *std::move(row));
      }
      all.push_back(std::move(loaded));
    }
    return all;
  });
}

Result<std::vector<InboxEvent>> Sessions::inbox(const model::SessionKey& key,
                                                std::size_t limit) const {
  return read_all(
      database_,
      row_of<&InboxEvent::event_id, &InboxEvent::type, &InboxEvent::trace_id, &InboxEvent::value>,
      "SELECT event_id, type, trace_id, value FROM inbox"
      " WHERE session = (SELECT id FROM sessions WHERE key = :k) ORDER BY n LIMIT :l",
      key, limit);
}

Result<std::optional<Sessions::InInbox>> Sessions::in_inbox(const std::string& event_id) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<InInbox>> {
    std::int64_t row_of_session = 0;
    std::int64_t number = 0;
    auto found = connection.first(
        [&](std::int64_t session, std::int64_t n, model::SessionKey key, const std::string& type,
            const std::string& trace, const std::string& value) {
          row_of_session = session;
          number = n;
          const auto event = model::decode_event(key.encode(), event_id, type, trace, value);
          return InInbox{.key = std::move(key),
                         .ahead = 0,
                         .first_ahead = "",
                         .since = event ? event->accepted_at : model::Timestamp()};
        },
        sql_of_inbox_event, event_id);
    if (!found) return std::nullopt;
    found->ahead = connection.number("SELECT COUNT(*) FROM inbox WHERE session = :s AND n < :n",
                                     row_of_session, number);
    if (found->ahead > 0) {
      found->first_ahead =
          connection
              .value<std::string>(
                  "SELECT event_id FROM inbox WHERE session = :s ORDER BY n LIMIT 1",
                  row_of_session)
              .value_or("");
    }
    return found;
  });
}

namespace {

struct ListedSession {
  SessionSummary summary;
  bool has_text = false;
};

ListedSession listed_from(std::int64_t row, model::SessionKey key, std::int64_t version,
                          model::Timestamp started, model::Timestamp active, bool busy,
                          std::int64_t inbox, std::int64_t outputs, bool has_text) {
  return {{std::move(key), version, started, active, busy, inbox, outputs, row}, has_text};
}

// The sessions of `source`. `has_text`: one of its outputs fits the pattern, which may be empty.
std::string sql_of_listed(const std::string& source) {
  return "SELECT id, key, version, started_at, last_activity_at,"
         " CASE WHEN execution IS NULL THEN 0 ELSE 1 END, inbox_size, last_output_seq,"
         " CASE WHEN :w = '' OR " +
         std::string(sql_of_fitting_output) + " THEN 1 ELSE 0 END FROM sessions WHERE " + source +
         " LIMIT :l";
}

bool fits(const ListedSession& session, const SessionFilter& filter) {
  const bool endpoint =
      filter.endpoint_id.empty() || session.summary.key.endpoint_id == filter.endpoint_id;
  return endpoint && session.has_text &&
         filter.busy.value_or(session.summary.busy) == session.summary.busy;
}

// The newest sessions of the user, by the range of their keys.
Sessions::Page page_of_user(Connection& connection, const std::string& project_id,
                            const SessionFilter& filter, std::int64_t before, std::size_t limit) {
  // With the plus, the database searches by key and does not walk in the order of ids.
  static const auto sql = sql_of_listed("key >= :f AND key < :t AND +id < :b ORDER BY +id DESC");
  const auto pattern = pattern_containing(filter.text);
  const auto [from, to] = filter.endpoint_id.empty()
                              ? model::keys_of_user(project_id, filter.user_id)
                              : model::keys_of_user(project_id, filter.user_id, filter.endpoint_id);
  auto examined = connection.all(listed_from, sql, pattern, pattern, from, to, before,
                                 Sessions::examined_for_text);
  Sessions::Page page;
  if (examined.size() == Sessions::examined_for_text) page.next = examined.back().summary.row;
  for (auto& each : examined) {
    if (!fits(each, filter)) continue;
    if (page.rows.size() == limit) {
      page.next = page.rows.back().row;
      break;
    }
    page.rows.push_back(std::move(each.summary));
  }
  return page;
}

// The newest sessions of the project, in the order of the table's key.
Sessions::Page page_of_project(Connection& connection, const std::string& project_id,
                               const SessionFilter& filter, std::int64_t before,
                               std::size_t limit) {
  static const auto sql = sql_of_listed("project_id = :p AND id < :b ORDER BY id DESC");
  static const auto sql_of_busy =
      sql_of_listed("project_id = :p AND id < :b AND execution IS NOT NULL ORDER BY id DESC");
  constexpr std::size_t at_once = 200;
  const auto most = filter.text.empty() ? Sessions::examined_sessions : Sessions::examined_for_text;
  const auto pattern = pattern_containing(filter.text);
  Sessions::Page page;
  for (std::size_t examined = 0; examined < most; examined += at_once) {
    const auto rows = connection.all(listed_from, filter.busy.value_or(false) ? sql_of_busy : sql,
                                     pattern, pattern, project_id, before, at_once);
    for (const ListedSession& each : rows) {
      before = each.summary.row;
      if (fits(each, filter)) page.rows.push_back(each.summary);
      if (page.rows.size() == limit) break;
    }
    page.next = before;
    if (page.rows.size() == limit) return page;
    if (rows.size() < at_once) page.next.reset();
    if (!page.next) return page;
  }
  return page;
}

}  // namespace

Result<Sessions::Page> Sessions::list(const std::string& project_id, const SessionFilter& filter,
                                      std::int64_t before_row, std::size_t limit) const {
  const auto before = before_row == 0 ? std::numeric_limits<std::int64_t>::max() : before_row;
  return read(database_, [&](Connection& connection) {
    return filter.user_id.empty() ? page_of_project(connection, project_id, filter, before, limit)
                                  : page_of_user(connection, project_id, filter, before, limit);
  });
}

Result<std::vector<Sessions::Place>> Sessions::places(const std::string& project_id,
                                                      std::int64_t before_row,
                                                      std::size_t limit) const {
  return read(database_, [&](Connection& connection) {
    return connection.all(
        [](std::int64_t row, const std::string& key, model::Timestamp active,
           const std::string& flow_state, const std::optional<std::string>& execution) {
          Place place{.key = stored_or_throw(model::SessionKey::decode(key)),
                      .last_activity_at = active,
                      .row = row};
          std::string damage;  // not shown here
          read_part(&damage, [&] { place.flow_state = stored_json(flow_state); });
          if (execution) {
            read_part(&damage, [&] {
              place.execution = stored_or_throw(model::execution_from(stored_json(*execution)));
            });
          }
          return place;
        },
        "SELECT id, key, last_activity_at, flow_state, execution FROM sessions"
        " WHERE project_id = :p AND id < :b ORDER BY id DESC LIMIT :l",
        project_id, before_row == 0 ? std::numeric_limits<std::int64_t>::max() : before_row, limit);
  });
}

Result<std::map<std::int64_t, nlohmann::json>> Sessions::flow_states_of_idle(
    const std::vector<std::int64_t>& rows) const {
  return read(database_, [&](Connection& connection) {
    std::map<std::int64_t, nlohmann::json> states;
    connection.rows(
        [&](std::int64_t row, const std::string& flow_state) {
          std::string damage;  // not shown here
          nlohmann::json state;
          read_part(&damage, [&] { state = stored_json(flow_state); });
          if (damage.empty()) states.emplace(row, std::move(state));
        },
        sql_of_idle_flow_states, rows);
    return states;
  });
}

// Each statement reads a range of an index or of the table's key.
Result<std::vector<Sessions::Inbox>> Sessions::inboxes(Which which, std::int64_t after_row,
                                                       std::size_t limit) const {
  return read_all(database_, row_of<&Inbox::key, &Inbox::size, &Inbox::row>,
                  which == Which::all
                      ? "SELECT key, inbox_size, id FROM sessions WHERE inbox_size > 0 AND id > :a"
                        " ORDER BY id LIMIT :l"
                      : "SELECT key, inbox_size, id FROM sessions WHERE inbox_size > 0"
                        " AND execution IS NULL AND id > :a ORDER BY id LIMIT :l",
                  after_row, limit);
}

Result<void> Sessions::reset(const model::SessionKey& key, const ResetDone& committed) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    if (auto here = writer.check_place(key.encode()); !here) return here;
    Connection& connection = writer.connection();
    Loaded loaded;
    const auto before = load_session(connection, key, &loaded);
    if (!before) return fail(Errc::not_found, "there is no such session");
    const auto session = *connection.value<std::int64_t>(
        "UPDATE sessions SET version = version + 1, context = '{}', flow_state = 'null',"
        " execution = NULL WHERE key = :k RETURNING id",
        key.encode());
    connection.run("DELETE FROM follow_ups WHERE session = :s", session);
    abandon_execution(connection, session);
    std::string ended_input;
    if (before->execution) {
      ended_input = before->execution->input_id;
      model::ReceiptText row;
      row.add("what", "turn");
      row.add("at", model::to_unix_ms(writer.now()));
      row.add("ended", "an operator ended the conversation");
      add_to_receipt(connection, ended_input, std::move(row).finished(), writer.now());
      if (before->execution->answer_until) {
        fail_input(connection, ended_input, writer.timer_now());
      }
      announce_progress(connection, {ended_input});
    }
    announce(connection, touch_topic, key.encode());
    announce_spoken(connection, {short_name(key.encode())});
    if (committed) {
      writer.on_commit(
          [committed, ended_input = std::move(ended_input)] { committed(ended_input); });
    }
    return {};
  });
}

Result<Sessions::Pruned> Sessions::prune(model::Timestamp before, const Finished& finished,
                                         model::Timestamp receipts_before, std::int64_t after_row,
                                         std::size_t limit) {
  struct Old {
    std::int64_t row = 0;
    std::string key;
  };
  struct Looked {
    std::optional<std::int64_t> last;
    std::vector<Old> old;
  };
  const auto first_receipt = model::id_prefix(receipts_before);
  // Most pages have no old session, and need no write.
  auto looked = read_together(database_, [&](Connection& connection) -> Result<Looked> {
    Looked page;
    connection.rows(
        [&](std::int64_t id, std::string key, model::Timestamp active, std::int64_t epoch,
            std::int32_t partition, std::int64_t offset, const std::string& last_receipt) {
          page.last = id;
          if (active >= before || last_receipt >= first_receipt) return;
          if (finished({.epoch = epoch, .partition = partition, .offset = offset})) {
            page.old.push_back({id, std::move(key)});
          }
        },
        "SELECT id, key, last_activity_at, position_epoch, position_partition, position_offset,"
        " last_receipt FROM sessions WHERE id > :a ORDER BY id LIMIT :l",
        after_row, limit);
    // An old receipt that links to a younger one stays.
    std::erase_if(page.old,
                  [&](const Old& old) { return !chain_of(connection, old.row, 1).empty(); });
    return page;
  });
  if (!looked) return fail(looked.error());
  Pruned pruned{0, looked->last};
  if (looked->old.empty()) return pruned;
  return committer_.write_and_wait([&](Writer& writer) -> Result<Pruned> {
    auto rows = nlohmann::json::array();
    for (const auto& old : looked->old) {
      if (writer.check_place(old.key)) rows.push_back(old.row);
    }
    pruned.removed = writer.connection().run_counted(
        "DELETE FROM sessions WHERE id IN (SELECT CAST(value AS BIGINT) FROM json_each(:i))"
        " AND last_activity_at < :b AND execution IS NULL AND inbox_size = 0"
        " AND NOT EXISTS (SELECT 1 FROM outputs o WHERE o.session = sessions.id)"
        " AND NOT EXISTS (SELECT 1 FROM pending_calls c WHERE c.session = sessions.id)"
        " AND NOT EXISTS (SELECT 1 FROM follow_ups f WHERE f.session = sessions.id)",
        rows.dump(), before);
    return pruned;
  });
}

Result<std::int64_t> Sessions::count() const {
  return read_count(database_, most_counted, "SELECT id FROM sessions");
}

Result<std::vector<model::Position>> Sessions::highest_positions() const {
  using model::Position;
  return read_all(database_, row_of<&Position::epoch, &Position::partition, &Position::offset>,
                  "SELECT epoch, log_partition, log_offset FROM log_positions"
                  " ORDER BY epoch, log_partition");
}

}  // namespace conversed::store
