#include "store/conversation/pending_timers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <iterator>
#include <tuple>
#include <utility>

#include "store/conversation/timers.h"
#include "store/model/names.h"
#include "store/sql/read.h"

namespace conversed::store {

using std::chrono::milliseconds;
using Kind = PendingTimers::Kind;
using Place = PendingTimers::Place;
using Row = PendingTimers::Row;

namespace {

constexpr model::Names<Kind, 5> kinds{{{{Kind::journey, "journey"},
                                        {Kind::follow_up, "followUp"},
                                        {Kind::sleep, "sleep"},
                                        {Kind::question, "question"},
                                        {Kind::schedule, "schedule"}}}};

// Rows of one table that a step looks at, and steps of one page.
constexpr std::size_t rows_a_step = 1'000;
constexpr int steps_a_page = 5;

// The kinds of timers that a table keeps. Its query gives due time, claim, id, key, and whether the
// row is of the second kind.
struct Source {
  Kind first;
  Kind second;
  bool by_wall_clock;  // of the due time; else by the clock of timers
  std::string_view select;
  std::string_view due_and_claim;  // an index has this order
  std::string_view id;
  std::string_view of_session;
  std::string_view waits;  // false once the event is in the log
};
constexpr std::array sources{
    Source{.first = Kind::sleep,
           .second = Kind::question,
           .by_wall_clock = false,
           .select = "SELECT c.due_at, c.id, c.id, s.key, c.time_out FROM pending_calls c"
                     " JOIN sessions s ON s.id = c.session WHERE c.due_at IS NOT NULL",
           .due_and_claim = "c.due_at, c.id",
           .id = "c.id",
           .of_session = "c.session = (SELECT id FROM sessions WHERE key = :k)",
           .waits = "c.appended = 0"},
    Source{.first = Kind::follow_up,
           .second = Kind::journey,
           .by_wall_clock = false,
           .select = "SELECT f.due_at, f.id, f.id, s.key, f.of_journey FROM follow_ups f"
                     " JOIN sessions s ON s.id = f.session WHERE f.due_at IS NOT NULL",
           .due_and_claim = "f.due_at, f.id",
           .id = "f.id",
           .of_session = "f.session = (SELECT id FROM sessions WHERE key = :k)",
           .waits = "f.appended = 0"},
    Source{.first = Kind::schedule,
           .second = Kind::schedule,
           .by_wall_clock = true,
           .select = "SELECT due_at, claim, id, key, 0 FROM schedules WHERE due_at IS NOT NULL",
           .due_and_claim = "due_at, claim",
           .id = "id",
           .of_session = "key = :k",
           .waits = "appended = 0"},
};

// Makes rows of the source's query. `offset`: of the clock of timers.
auto rows_of(const Source& source, milliseconds offset) {
  return [&source, offset](model::Timestamp due, std::string claim, std::string id,
                           model::SessionKey key, bool is_second) {
    const auto place = source.by_wall_clock ? due + offset : due;
    return Row{.kind = is_second ? source.second : source.first,
               .id = std::move(id),
               .session = std::move(key),
               .due_at = place - offset,
               .place = {place, std::move(claim)}};
  };
}

bool comes_before(const Place& a, const Place& b) {
  return std::tie(a.due, a.claim) < std::tie(b.due, b.claim);
}

// One step through all tables, each by its index: rows behind `after`, up to `end`.
class Step {
 public:
  Step(Connection& connection, const PendingTimers::Filter& filter, milliseconds offset)
      : connection_(connection), filter_(filter), offset_(offset) {}

  void look(const Place& after) {
    rows_.clear();
    end_.reset();
    for (const Source& source : sources) {
      if (wants(source.first) || wants(source.second)) look(source, after);
    }
    std::ranges::sort(rows_, comes_before, &Row::place);
    // Behind the end of one table's part, rows of it may be missing.
    if (end_) std::erase_if(rows_, [&](const Row& row) { return comes_before(*end_, row.place); });
  }

  // In order; of other projects and kinds, too.
  [[nodiscard]] std::vector<Row>& rows() { return rows_; }
  // How far it has looked; nothing: to the end.
  [[nodiscard]] const std::optional<Place>& end() const { return end_; }
  [[nodiscard]] bool fits(const Row& row) const {
    return row.session.project_id == filter_.project_id &&
           (!filter_.kind || row.kind == *filter_.kind);
  }

 private:
  [[nodiscard]] bool wants(Kind kind) const { return !filter_.kind || *filter_.kind == kind; }

  void look(const Source& source, const Place& after) {
    std::string sql(source.select);
    sql.append(" AND ").append(source.waits);
    sql.append(" AND (").append(source.due_and_claim).append(") > (:d, :i)");
    if (filter_.session) sql.append(" AND ").append(source.of_session);
    sql.append(" ORDER BY ").append(source.due_and_claim).append(" LIMIT :l");
    const auto make = rows_of(source, offset_);
    const auto due = source.by_wall_clock ? after.due - offset_ : after.due;
    auto found = filter_.session
                     ? connection_.all(make, sql, due, after.claim, *filter_.session, rows_a_step)
                     : connection_.all(make, sql, due, after.claim, rows_a_step);
    if (found.size() == rows_a_step && (!end_ || comes_before(found.back().place, *end_))) {
      end_ = found.back().place;
    }
    std::ranges::move(found, std::back_inserter(rows_));
  }

  Connection& connection_;
  const PendingTimers::Filter& filter_;
  const milliseconds offset_;
  std::vector<Row> rows_;
  std::optional<Place> end_;
};

Result<Row> found(Connection& connection, const std::string& id) {
  const auto offset = timer_offset(connection);
  for (const Source& source : sources) {
    std::string sql(source.select);
    sql.append(" AND ").append(source.id).append(" = :i");
    if (auto row = connection.first(rows_of(source, offset), sql, id)) return *std::move(row);
  }
  return fail(Errc::not_found, "there is no such timer; it may have fallen due");
}

// Whether a follow-up comes in time when it is due then, by the clock of timers.
Result<void> check_expiry(Connection& connection, const std::string& id, model::Timestamp due) {
  const auto value =
      connection.value<nlohmann::json>("SELECT value FROM follow_ups WHERE id = :i", id);
  if (!value) return {};
  const auto plan = stored_or_throw(model::follow_up_plan_from(value->at("plan")));
  if (!plan.expires_at || due < *plan.expires_at) return {};
  return fail(Errc::invalid_argument,
              "the follow-up expires before that time, and would be dropped; name an earlier one");
}

}  // namespace

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

Result<PendingTimers::Page> PendingTimers::list(const Filter& filter, const Place& after,
                                                std::size_t limit) const {
  return read(database_, [&](Connection& connection) -> Result<Page> {
    Page page;
    page.next = after;
    Step step(connection, filter, timer_offset(connection));
    for (int i = 0; i < steps_a_page && page.next; ++i) {
      step.look(*page.next);
      page.next = step.end();
      for (auto& row : step.rows()) {
        if (!step.fits(row)) continue;
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

Result<Row> PendingTimers::get(const std::string& id) const {
  return read(database_, [&](Connection& connection) { return found(connection, id); });
}

Result<void> PendingTimers::cancel(const std::string& id) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    auto row = found(connection, id);
    if (!row) return fail(row.error());
    switch (row->kind) {
      case Kind::sleep:
        return fail(Errc::conflict,
                    "an execution sleeps until then, and would stand still for ever: put the timer "
                    "forward to have it go on, or reset the session to end it");
      case Kind::question:
        connection.run("DELETE FROM pending_calls WHERE id = :i", id);
        break;
      case Kind::journey:
      case Kind::follow_up:
        connection.run("DELETE FROM follow_ups WHERE id = :i", id);
        break;
      case Kind::schedule:
        connection.run("DELETE FROM schedules WHERE id = :i", id);
        break;
    }
    return {};
  });
}

Result<Row> PendingTimers::reschedule(const std::string& id, model::Timestamp due_at) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<Row> {
    Connection& connection = writer.connection();
    auto moved = found(connection, id);
    if (!moved) return moved;
    if (moved->kind == Kind::schedule) {
      return fail(Errc::conflict, "a schedule is put off by the routes of schedules");
    }
    moved->due_at = due_at;
    moved->place.due = due_at + timer_offset(connection);
    const auto due = moved->place.due;
    if (moved->kind == Kind::sleep || moved->kind == Kind::question) {
      connection.run("UPDATE pending_calls SET due_at = :d, appended = 0 WHERE id = :i", due, id);
    } else {
      if (auto good = check_expiry(connection, id, moved->place.due); !good)
        return fail(good.error());
      connection.run("UPDATE follow_ups SET due_at = :d, appended = 0 WHERE id = :i", due, id);
    }
    return moved;
  });
}

}  // namespace conversed::store
