#include "store/conversation/calls.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "store/commit/row_writes.h"
#include "store/conversation/due_sql.h"
#include "store/sql/read.h"

namespace conversed::store {

Result<std::optional<Calls::Found>> Calls::find(const std::string& id) const {
  return read_first(
      database_,
      [&](model::SessionKey key, std::string trace, std::string tracestate,
          const std::optional<nlohmann::json>& request, std::optional<model::Timestamp> due_at,
          bool time_out, int attempts, std::optional<model::Timestamp> try_at) {
        Found found{.call = {.id = id,
                             .session = std::move(key),
                             .trace_id = std::move(trace),
                             .tracestate = std::move(tracestate),
                             .due_at = due_at,
                             .is_time_out = time_out},
                    .attempts = attempts,
                    .try_at = try_at};
        if (request) stored_or_throw(model::read_request(*request, found.call));
        return found;
      },
      "SELECT s.key, c.trace_id, c.tracestate, c.request, c.due_at, c.time_out, c.attempts,"
      " c.try_at FROM pending_calls c JOIN sessions s ON s.id = c.session WHERE c.id = :i",
      id);
}

namespace {

constexpr auto shown_row =
    row_of<&Calls::Shown::session, &Calls::Shown::id, &Calls::Shown::due_at,
           &Calls::Shown::is_time_out, &Calls::Shown::attempts, &Calls::Shown::try_at,
           &Calls::Shown::upstream, &Calls::Shown::retries, &Calls::Shown::time_limit>;

}  // namespace

Result<std::optional<Calls::Shown>> Calls::shown(const std::string& id) const {
  return read_first(database_, shown_row, sql_of_shown_call, id);
}

Result<std::vector<Calls::Shown>> Calls::of_sessions(
    const std::vector<std::int64_t>& sessions) const {
  return read_all(database_, shown_row, sql_of_calls_of_sessions, sessions);
}

Result<std::optional<std::string>> Calls::of_execution(const std::string& input_id) const {
  return read(database_, [&](Connection& connection) {
    return connection.value<std::string>(sql_of_execution_call, input_id, input_id);
  });
}

Result<bool> Calls::waits(const std::string& id) const {
  return read_exists(database_, "SELECT 1 FROM pending_calls WHERE id = :i", id);
}

// Takes one step in the index, independent of the number of calls in earlier lanes.
Result<std::optional<Calls::Lane>> Calls::lane_behind(
    const std::string& project_id, const std::optional<std::string>& target) const {
  constexpr auto lane = row_of<&Lane::project_id, &Lane::target, &Lane::due_at>;
  return target ? read_first(database_, lane, sql_of_next_lane, project_id, *target)
                : read_first(database_, lane, sql_of_next_project, project_id);
}

Result<Calls::Page> Calls::due(const std::string& project_id, const std::string& target,
                               model::Timestamp now, std::size_t limit, const Due* after) const {
  return read(database_, [&](Connection& connection) -> Result<Page> {
    Page page;
    connection.rows(
        [&](std::string id, const std::string& key, model::Timestamp due_at) {
          if (page.next) return;
          if (due_at > now) {
            page.next = due_at;
            return;
          }
          page.calls.push_back(
              {.id = std::move(id),
               .session = model::SessionKey::decode(key).value_or(model::SessionKey{}),
               .due_at = due_at});
        },
        sql_of_due_calls, project_id, target,
        after == nullptr ? model::Timestamp::min() : after->due_at,
        after == nullptr ? std::string() : after->id, limit);
    return page;
  });
}

void Calls::appended(const std::string& id, std::function<void()> marked,
                     std::optional<ReceiptMark> row) {
  auto work = [id, row = std::move(row)](Connection& connection) {
    add_to_receipt(connection, row);
    connection.run_row("UPDATE pending_calls SET appended = 1 WHERE id = :i", id);
  };
  committer_.mark(std::move(work), std::move(marked));
}

// The owner of the session's partition may have changed the call since.
void Calls::put_off(const std::string& id, model::Timestamp due_at, int attempts,
                    std::function<void()> marked, std::optional<ReceiptMark> row) {
  auto work = [id, due_at, attempts, row = std::move(row)](Connection& connection) {
    join_to_receipt(connection, row);
    connection.run(
        "UPDATE pending_calls SET try_at = :d, attempts = :a WHERE id = :i AND appended = 0",
        due_at, attempts, id);
  };
  committer_.mark(std::move(work), std::move(marked));
}

Result<void> Calls::bring_forward(model::Timestamp latest, model::Timestamp now) {
  return committer_.write_and_wait([&](Writer& writer) {
    writer.connection().run(
        "UPDATE pending_calls SET try_at = :n WHERE target IS NOT NULL AND appended = 0"
        " AND try_at > :l",
        now, latest);
  });
}

}  // namespace conversed::store
