#include "store/conversation/timers.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/commit/row_writes.h"
#include "store/conversation/due_sql.h"
#include "store/model/names.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::Claim;
using model::FollowUp;
using std::chrono::milliseconds;
using Kind = Timers::Kind;

namespace {

constexpr model::Names<Kind, 5> kinds{{{{Kind::journey, "journey"},
                                        {Kind::follow_up, "followUp"},
                                        {Kind::sleep, "sleep"},
                                        {Kind::question, "question"},
                                        {Kind::schedule, "schedule"}}}};

// The most rows of one table in a step, and the most steps of one page.
constexpr std::size_t rows_a_step = 1'000;
constexpr int steps_a_page = 5;

// The timers in one table. Its rows have one or two kinds.
struct Source {
  Kind first;
  Kind second;
  bool by_wall_clock;  // the due time is by the wall clock; else by the clock of timers
  std::string table;
  std::string claim;      // orders an index together with the due time
  std::string is_second;  // whether the row is of the second kind
  std::string key;        // of the session
  std::string of_session;

  // The text ends inside the WHERE condition.
  [[nodiscard]] std::string select() const {
    return "SELECT due_at, " + claim + ", id, " + key + ", " + is_second + " FROM " + table +
           " WHERE due_at IS NOT NULL";
  }
};
const std::array<Source, 3>& sources() {
  static const std::string key = "(SELECT s.key FROM sessions s WHERE s.id = session)";
  static const std::string of_session = "session = (SELECT id FROM sessions WHERE key = :k)";
  static const std::array<Source, 3> all{
      Source{Kind::sleep, Kind::question, false, "pending_calls", "id", "time_out", key,
             of_session},
      Source{Kind::follow_up, Kind::journey, false, "follow_ups", "id", "of_journey", key,
             of_session},
      Source{Kind::schedule, Kind::schedule, true, "schedules", "claim", "0", "key", "key = :k"}};
  return all;
}

// Makes rows of the source's query. `offset`: of the clock of timers to the wall clock.
auto rows_of(const Source& source, milliseconds offset) {
  return [&source, offset](model::Timestamp due, std::string claim, std::string id,
                           model::SessionKey key, bool is_second) {
    const auto place = source.by_wall_clock ? due + offset : due;
    return Timers::Row{.kind = is_second ? source.second : source.first,
                       .id = std::move(id),
                       .session = std::move(key),
                       .due_at = place - offset,
                       .place = {place, std::move(claim)}};
  };
}

bool comes_before(const Timers::Place& a, const Timers::Place& b) {
  return std::tie(a.due, a.claim) < std::tie(b.due, b.claim);
}

bool has_kind(const Timers::Filter& filter, Kind kind) {
  return !filter.kind || *filter.kind == kind;
}

// The next rows of all tables in one order. They include rows of other projects and kinds.
struct Step {
  std::vector<Timers::Row> rows;
  std::optional<Timers::Place> end;  // the place up to which all tables were read; none: the end
};

// Reads the rows behind `after` of one table, by its index.
void look(Connection& connection, const Timers::Filter& filter, milliseconds offset,
          const Source& source, const Timers::Place& after, Step& step) {
  std::string sql =
      source.select() + " AND appended = 0 AND (due_at, " + source.claim + ") > (:d, :i)";
  if (filter.session) sql += " AND " + source.of_session;
  sql += " ORDER BY due_at, " + source.claim + " LIMIT :l";
  const auto make = rows_of(source, offset);
  const auto due = source.by_wall_clock ? after.due - offset : after.due;
  auto found = filter.session
                   ? connection.all(make, sql, due, after.claim, *filter.session, rows_a_step)
                   : connection.all(make, sql, due, after.claim, rows_a_step);
  if (found.size() == rows_a_step && (!step.end || comes_before(found.back().place, *step.end))) {
    step.end = found.back().place;
  }
  std::ranges::move(found, std::back_inserter(step.rows));
}

Step look(Connection& connection, const Timers::Filter& filter, milliseconds offset,
          const Timers::Place& after) {
  Step step;
  for (const Source& source : sources()) {
    if (has_kind(filter, source.first) || has_kind(filter, source.second)) {
      look(connection, filter, offset, source, after, step);
    }
  }
  std::ranges::sort(step.rows, comes_before, &Timers::Row::place);
  // Drops the rows behind `end`: one table was read only up to there, so the step lacks later rows
  // of that table.
  if (step.end) {
    std::erase_if(step.rows,
                  [&](const Timers::Row& row) { return comes_before(*step.end, row.place); });
  }
  return step;
}

struct Found {
  Timers::Row row;
  const Source& source;
};
Result<Found> find(Connection& connection, const std::string& id) {
  const auto offset = timer_offset(connection);
  for (const Source& source : sources()) {
    auto row = connection.first(rows_of(source, offset), source.select() + " AND id = :i", id);
    if (row) return Found{*std::move(row), source};
  }
  return fail(Errc::not_found, "there is no such timer; it may have fallen due");
}

// The same, to change it.
Result<Found> find(Writer& writer, const std::string& id) {
  auto found = find(writer.connection(), id);
  if (!found) return fail(found.error());
  if (auto here = writer.check_place(found->row.session.encode()); !here) {
    return fail(here.error());
  }
  return *std::move(found);
}

// Whether a follow-up that is due at `due`, by the clock of timers, comes before it expires.
Result<void> check_expiry(Connection& connection, const std::string& id, model::Timestamp due) {
  const auto value =
      connection.value<nlohmann::json>("SELECT value FROM follow_ups WHERE id = :i", id);
  if (!value) return {};
  const auto plan = stored_or_throw(model::follow_up_plan_from(value->at("plan")));
  if (!plan.expires_at || due < *plan.expires_at) return {};
  return fail(Errc::conflict,
              "the follow-up expires before that time and would be dropped; name an earlier time");
}

FollowUp follow_up_from(std::string id, model::SessionKey key, std::string trace,
                        std::string tracestate, model::Timestamp due_at, nlohmann::json value) {
  return {.id = std::move(id),
          .session = std::move(key),
          .trace_id = std::move(trace),
          .tracestate = std::move(tracestate),
          .due_at = due_at,
          .text = value.at("text").get<std::string>(),
          .data = std::move(value.at("data")),
          .plan = stored_or_throw(model::follow_up_plan_from(value.at("plan")))};
}

}  // namespace

// Each part is the range of an index. The first rows of the union are among the first rows of each
// part.
Result<Timers::DuePage> Timers::due(model::Timestamp now, std::chrono::milliseconds offset,
                                    std::size_t limit, const Due* after) const {
  return read(database_, [&](Connection& connection) -> Result<DuePage> {
    DuePage page;
    const auto add = [&](Claim::Kind kind, std::chrono::milliseconds ahead, std::string_view sql) {
      const auto behind = after == nullptr ? model::Timestamp::min() : after->at - ahead;
      bool over = false;
      connection.rows(
          [&](model::Timestamp due_at, std::string id) {
            if (over) return;
            const auto at = due_at + ahead;
            over = at > now;
            if (!over) return page.timers.push_back({at, {kind, std::move(id)}});
            page.next = std::min(page.next.value_or(at), at);
          },
          sql, behind, after == nullptr ? std::string() : after->claim.id, limit);
    };
    add(Claim::Kind::timer, {}, sql_of_due_timers);
    add(Claim::Kind::follow_up, {}, sql_of_due_follow_ups);
    add(Claim::Kind::schedule, offset, sql_of_due_schedules);
    std::ranges::sort(page.timers, {},
                      [](const Due& due) { return std::tie(due.at, due.claim.id); });
    if (page.timers.size() > limit) page.timers.resize(limit);
    return page;
  });
}

void Timers::appended(std::vector<Due> timers, std::function<void()> marked) {
  auto work = [timers = std::move(timers)](Connection& connection) {
    for (const auto& [at, claim] : timers) {
      if (claim.kind == Claim::Kind::schedule) {  // if it was put off, it has another claim
        connection.run_row("UPDATE schedules SET appended = 1 WHERE claim = :c", claim.id);
      } else if (claim.kind == Claim::Kind::follow_up) {
        connection.run_row("UPDATE follow_ups SET appended = 1 WHERE due_at = :d AND id = :i", at,
                           claim.id);
      } else {
        connection.run_row("UPDATE pending_calls SET appended = 1 WHERE due_at = :d AND id = :i",
                           at, claim.id);
      }
    }
  };
  committer_.mark(std::move(work), std::move(marked));
}

Result<void> Timers::log_lost() {
  return committer_.write_and_wait([](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    connection.run("UPDATE pending_calls SET appended = 0 WHERE appended = 1");
    connection.run("UPDATE follow_ups SET appended = 0 WHERE appended = 1");
    connection.run("UPDATE schedules SET appended = 0 WHERE appended = 1");
    announce(connection, timers_topic);
    return {};
  });
}

Result<std::chrono::milliseconds> Timers::offset() const {
  return read(database_, [](Connection& connection) { return timer_offset(connection); });
}

std::chrono::milliseconds timer_offset(Connection& connection) {
  return std::chrono::milliseconds(
      connection.number("SELECT value FROM meta WHERE name = 'timer_offset'"));
}

Result<void> Timers::keep_offset(std::chrono::milliseconds offset) {
  return committer_.write_and_wait([offset](Writer& writer) {
    writer.connection().run(
        "INSERT INTO meta (name, value) VALUES ('timer_offset', :v)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        offset.count());
  });
}

Result<bool> Timers::follow_up_waits(const std::string& id) const {
  return read_exists(database_, "SELECT 1 FROM follow_ups WHERE id = :i", id);
}

Result<std::optional<FollowUp>> Timers::follow_up(const std::string& id) const {
  return read_first(database_, follow_up_from,
                    "SELECT f.id, s.key, f.trace_id, f.tracestate, f.due_at, f.value"
                    " FROM follow_ups f JOIN sessions s ON s.id = f.session WHERE f.id = :i",
                    id);
}

std::string_view to_string(Kind kind) {
  return kinds.name_of(kind);
}

std::optional<Kind> timer_kind_from(std::string_view text) {
  return kinds.value_of(text);
}

std::vector<std::string_view> timer_kinds() {
  std::vector<std::string_view> names;
  for (const auto& [kind, name] : kinds.all) names.push_back(name);
  return names;
}

Result<Timers::Page> Timers::list(const Filter& filter, const Timers::Place& after,
                                  std::size_t limit) const {
  return read(database_, [&](Connection& connection) -> Result<Page> {
    Page page;
    page.next = after;
    const auto offset = timer_offset(connection);
    for (int i = 0; i < steps_a_page && page.next; ++i) {
      auto step = look(connection, filter, offset, *page.next);
      page.next = step.end;
      for (auto& row : step.rows) {
        if (row.session.project_id != filter.project_id || !has_kind(filter, row.kind)) continue;
        if (page.rows.size() == limit) {
          page.next = page.rows.back().place;
          return page;
        }
        page.rows.push_back(std::move(row));
      }
    }
    return page;
  });
}

Result<Timers::Row> Timers::get(const std::string& id) const {
  return read(database_, [&](Connection& connection) {
    auto found = find(connection, id);
    return found ? Result<Timers::Row>(std::move(found->row)) : fail(found.error());
  });
}

Result<void> Timers::cancel(const std::string& id) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    auto found = find(writer, id);
    if (!found) return fail(found.error());
    if (found->row.kind == Kind::sleep) {
      return fail(Errc::conflict,
                  "an execution sleeps until then, and would never go on: move the timer "
                  "to an earlier time, or reset the session to end the execution");
    }
    writer.connection().run("DELETE FROM " + found->source.table + " WHERE id = :i", id);
    return {};
  });
}

Result<Timers::Row> Timers::reschedule(const std::string& id, model::Timestamp due_at) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<Timers::Row> {
    Connection& connection = writer.connection();
    auto found = find(writer, id);
    if (!found) return fail(found.error());
    Timers::Row moved = std::move(found->row);
    if (moved.kind == Kind::schedule) {
      return fail(Errc::conflict, "this timer is a schedule: change it by the routes of schedules");
    }
    moved.due_at = due_at;
    moved.place.due = due_at + timer_offset(connection);
    if (auto good = check_expiry(connection, id, moved.place.due); !good) return fail(good.error());
    connection.run("UPDATE " + found->source.table + " SET due_at = :d, appended = 0 WHERE id = :i",
                   moved.place.due, id);
    announce_timer(connection, moved.place.due);
    return moved;
  });
}

}  // namespace conversed::store
