#include "store/conversation/pending_timers.h"

#include <algorithm>
#include <array>
#include <chrono>
#include <tuple>
#include <utility>

#include "store/conversation/timers.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;
using std::chrono::milliseconds;
using Kind = PendingTimers::Kind;
using Place = PendingTimers::Place;
using Row = PendingTimers::Row;

namespace {

constexpr std::array<std::pair<Kind, std::string_view>, 5> kinds{{{Kind::journey, "journey"},
                                                                  {Kind::follow_up, "followUp"},
                                                                  {Kind::sleep, "sleep"},
                                                                  {Kind::question, "question"},
                                                                  {Kind::schedule, "schedule"}}};

// Rows of one table that a step looks at, and steps of one page.
constexpr std::size_t rows_a_step = 1'000;
constexpr int steps_a_page = 5;

Kind kind_of_call(bool time_out) {
  return time_out ? Kind::question : Kind::sleep;
}
Kind kind_of_follow_up(bool of_journey) {
  return of_journey ? Kind::journey : Kind::follow_up;
}

Row row_of(Kind kind, std::string id, const std::string& key, model::Timestamp due,
           milliseconds offset) {
  return {.kind = kind,
          .id = id,
          .session = stored_or_throw(model::SessionKey::decode(key)),
          .due_at = due - offset,
          .place = {due, std::move(id)}};
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
    if (wants(Kind::sleep) || wants(Kind::question)) {
      const auto take = [&](model::Timestamp due, std::string id, bool time_out,
                            const std::string& key) {
        rows_.push_back(row_of(kind_of_call(time_out), std::move(id), key, due, offset_));
      };
      query(
          "SELECT c.due_at, c.id, c.time_out, s.key FROM pending_calls c JOIN sessions s"
          " ON s.id = c.session WHERE c.due_at IS NOT NULL AND c.appended = 0"
          " AND (c.due_at, c.id) > (:d, :i)",
          " AND c.session = (SELECT id FROM sessions WHERE key = :k)",
          " ORDER BY c.due_at, c.id LIMIT :l", after, after.due, take);
    }
    if (wants(Kind::journey) || wants(Kind::follow_up)) {
      const auto take = [&](model::Timestamp due, std::string id, bool of_journey,
                            const std::string& key) {
        rows_.push_back(row_of(kind_of_follow_up(of_journey), std::move(id), key, due, offset_));
      };
      query(
          "SELECT f.due_at, f.id, f.of_journey, s.key FROM follow_ups f JOIN sessions s"
          " ON s.id = f.session WHERE f.appended = 0 AND (f.due_at, f.id) > (:d, :i)",
          " AND f.session = (SELECT id FROM sessions WHERE key = :k)",
          " ORDER BY f.due_at, f.id LIMIT :l", after, after.due, take);
    }
    if (wants(Kind::schedule)) {
      const auto take = [&](model::Timestamp due, std::string claim, std::string id,
                            const std::string& key) {
        auto row = row_of(Kind::schedule, std::move(claim), key, due + offset_, offset_);
        row.id = std::move(id);
        rows_.push_back(std::move(row));
      };
      query(
          "SELECT due_at, claim, id, key FROM schedules WHERE appended = 0"
          " AND (due_at, claim) > (:d, :i)",
          " AND key = :k", " ORDER BY due_at, claim LIMIT :l", after, after.due - offset_, take);
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

  template <typename Take>
  void query(std::string_view from, std::string_view of_session, std::string_view order,
             const Place& after, model::Timestamp due, const Take& take) {
    const std::size_t before = rows_.size();
    std::string sql(from);
    if (filter_.session) sql += of_session;
    sql += order;
    if (filter_.session) {
      connection_.rows(take, sql, due, after.claim, filter_.session->encode(), rows_a_step);
    } else {
      connection_.rows(take, sql, due, after.claim, rows_a_step);
    }
    if (rows_.size() - before < rows_a_step) return;
    const Place& last = rows_.back().place;
    if (!end_ || comes_before(last, *end_)) end_ = last;
  }

  Connection& connection_;
  const PendingTimers::Filter& filter_;
  const milliseconds offset_;
  std::vector<Row> rows_;
  std::optional<Place> end_;
};

std::optional<Row> find(Connection& connection, const std::string& id) {
  const auto offset = timer_offset(connection);
  if (const auto call = connection.row<model::Timestamp, bool, std::string>(
          "SELECT c.due_at, c.time_out, s.key FROM pending_calls c JOIN sessions s"
          " ON s.id = c.session WHERE c.id = :i AND c.due_at IS NOT NULL",
          id)) {
    const auto& [due, time_out, key] = *call;
    return row_of(kind_of_call(time_out), id, key, due, offset);
  }
  if (const auto follow_up = connection.row<model::Timestamp, bool, std::string>(
          "SELECT f.due_at, f.of_journey, s.key FROM follow_ups f JOIN sessions s"
          " ON s.id = f.session WHERE f.id = :i",
          id)) {
    const auto& [due, of_journey, key] = *follow_up;
    return row_of(kind_of_follow_up(of_journey), id, key, due, offset);
  }
  if (const auto schedule = connection.row<model::Timestamp, std::string, std::string>(
          "SELECT due_at, claim, key FROM schedules WHERE id = :i", id)) {
    const auto& [due, claim, key] = *schedule;
    auto row = row_of(Kind::schedule, claim, key, due + offset, offset);
    row.id = id;
    return row;
  }
  return std::nullopt;
}

Result<Row> found(Connection& connection, const std::string& id) {
  auto row = find(connection, id);
  if (!row) return fail(Errc::not_found, "there is no such timer; it may have fallen due");
  return *std::move(row);
}

// Whether a follow-up comes in time when it is due then, by the clock of timers.
Result<void> check_expiry(Connection& connection, const std::string& id, model::Timestamp due) {
  const auto text = connection.value<std::string>("SELECT value FROM follow_ups WHERE id = :i", id);
  if (!text) return {};
  const auto plan = stored_or_throw(model::follow_up_plan_from(stored_json(*text).at("plan")));
  if (!plan.expires_at || due < *plan.expires_at) return {};
  return fail(Errc::invalid_argument,
              "the follow-up expires before that time, and would be dropped; name an earlier one");
}

}  // namespace

std::string_view to_string(Kind kind) {
  for (const auto& [known, name] : kinds) {
    if (known == kind) return name;
  }
  return "unknown";
}

std::optional<Kind> timer_kind_from(std::string_view text) {
  for (const auto& [kind, name] : kinds) {
    if (name == text) return kind;
  }
  return std::nullopt;
}

std::vector<std::string_view> timer_kinds() {
  std::vector<std::string_view> names;
  for (const auto& [kind, name] : kinds) names.push_back(name);
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
