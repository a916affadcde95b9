#include "store/conversation/calls.h"

#include <limits>
#include <string_view>
#include <utility>

#include "store/conversation/due_sql.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::PendingCall;
using model::Result;

Result<std::optional<Calls::Found>> Calls::find(const std::string& id) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<Found>> {
    auto row = connection.row<std::string, std::string, std::optional<std::string>,
                              std::optional<model::Timestamp>, bool, int>(
        "SELECT s.key, c.trace_id, c.request, c.due_at, c.time_out, c.attempts"
        " FROM pending_calls c JOIN sessions s ON s.id = c.session WHERE c.id = :i",
        id);
    if (!row) return std::nullopt;
    auto& [key, trace, request, due_at, time_out, attempts] = *row;
    Found found;
    PendingCall& call = found.call;
    call.id = id;
    call.session = stored_or_throw(model::SessionKey::decode(key));
    call.trace_id = std::move(trace);
    if (request) {
      const auto good = model::read_request(stored_json(*request), call);
      if (!good) throw DamagedData(good.error().message);
    }
    call.due_at = due_at;
    call.is_time_out = time_out;
    found.attempts = attempts;
    return found;
  });
}

Result<bool> Calls::waits(const std::string& id) const {
  return read(database_, [&](Connection& connection) {
    return connection.value<std::int64_t>("SELECT 1 FROM pending_calls WHERE id = :i", id)
        .has_value();
  });
}

// One step in the index, however many calls the lanes before it have.
Result<std::optional<Calls::Lane>> Calls::lane_behind(
    const std::string& project_id, const std::optional<std::string>& target) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<Lane>> {
    using Row = std::optional<std::tuple<std::string, std::string, model::Timestamp>>;
    Row row = target ? connection.row<std::string, std::string, model::Timestamp>(
                           sql_of_next_lane, project_id, *target)
                     : connection.row<std::string, std::string, model::Timestamp>(
                           sql_of_next_project, project_id);
    if (!row) return std::nullopt;
    auto& [project, found, due_at] = *row;
    return Lane{std::move(project), std::move(found), due_at};
  });
}

Result<Calls::Page> Calls::due(const std::string& project_id, const std::string& target,
                               model::Timestamp now, std::size_t limit, const Due* after) const {
  return read(database_, [&](Connection& connection) -> Result<Page> {
    Page page;
    connection.rows(
        [&](std::string id, const std::string& key, model::Timestamp due_at) {
          if (page.next) return;
          const auto due = due_at;
          if (due > now) {
            page.next = due;
            return;
          }
          page.calls.push_back(
              {.id = std::move(id),
               .session = model::SessionKey::decode(key).value_or(model::SessionKey{}),
               .due_at = due});
        },
        sql_of_due_calls, project_id, target,
        after == nullptr ? model::Timestamp::min() : after->due_at,
        after == nullptr ? std::string() : after->id, limit);
    return page;
  });
}

void Calls::appended(const std::string& id, std::function<void()> marked) {
  committer_.write(
      [id](Writer& writer) -> Result<void> {
        writer.connection().run("UPDATE pending_calls SET appended = 1 WHERE id = :i", id);
        return {};
      },
      [marked = std::move(marked)](const Result<void>& done) {
        if (done) marked();
      });
}

// The owner of the session's partition may have gone on with the call since.
void Calls::put_off(const std::string& id, model::Timestamp due_at, int attempts,
                    std::function<void()> marked) {
  committer_.write(
      [id, due_at, attempts](Writer& writer) -> Result<void> {
        writer.connection().run(
            "UPDATE pending_calls SET try_at = :d, attempts = :a WHERE id = :i AND appended = 0",
            due_at, attempts, id);
        return {};
      },
      [marked = std::move(marked)](const Result<void>& done) {
        if (done) marked();
      });
}

Result<void> Calls::bring_forward(model::Timestamp latest, model::Timestamp now) {
  return committer_.write_and_wait([&](Writer& writer) {
    writer.connection().run(
        "UPDATE pending_calls SET try_at = :n WHERE target IS NOT NULL AND appended = 0"
        " AND try_at > :l",
        now, latest);
  });
}

Result<std::int64_t> Calls::pending() const {
  return read(database_, [](Connection& connection) {
    return connection.number("SELECT COUNT(*) FROM pending_calls WHERE time_out = 0");
  });
}

}  // namespace conversed::store
