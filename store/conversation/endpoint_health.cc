#include "store/conversation/endpoint_health.h"

#include "store/cluster/notifications.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

using Row = EndpointFailure;
constexpr auto failure_row =
    row_of<&Row::endpoint_id, &Row::failing_since, &Row::failures, &Row::last_status,
           &Row::last_error, &Row::last_at, &Row::paused_since, &Row::resumed_at, &Row::next_probe>;

constexpr std::string_view sql_of_over_failures =
    "SELECT h.endpoint_id FROM endpoint_health h"
    " WHERE (h.failing_since IS NULL AND h.resumed_at < :b)"
    " OR NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.endpoint_id = h.endpoint_id)";

}  // namespace

EndpointFailure EndpointFailure::by_wall_clock(std::chrono::milliseconds offset) const {
  auto shown = *this;
  for (auto* time : {&shown.failing_since, &shown.paused_since, &shown.resumed_at}) {
    if (*time) **time -= offset;
  }
  shown.last_at -= offset;
  shown.next_probe -= offset;
  return shown;
}

Result<std::vector<EndpointFailure>> EndpointHealth::list(const std::string& after,
                                                          std::size_t limit) const {
  return read_all(database_, failure_row,
                  "SELECT endpoint_id, failing_since, failures, last_status, last_error, last_at,"
                  " paused_since, resumed_at, next_probe FROM endpoint_health"
                  " WHERE endpoint_id > :a ORDER BY endpoint_id LIMIT :l",
                  after, limit);
}

Result<std::optional<EndpointFailure>> EndpointHealth::find(const std::string& endpoint_id) const {
  return read_first(database_, failure_row,
                    "SELECT endpoint_id, failing_since, failures, last_status, last_error, last_at,"
                    " paused_since, resumed_at, next_probe FROM endpoint_health"
                    " WHERE endpoint_id = :e",
                    endpoint_id);
}

void EndpointHealth::failed(const EndpointFailure& failure) {
  const auto work = [failure](Connection& connection) {
    connection.run(
        "INSERT INTO endpoint_health (endpoint_id, failing_since, failures, last_status,"
        " last_error, last_at, paused_since, resumed_at, next_probe)"
        " VALUES (:e, :f, 1, :s, :r, :t, :p, :u, :n) ON CONFLICT (endpoint_id) DO UPDATE SET"
        " failing_since = COALESCE(endpoint_health.failing_since,"
        " CASE WHEN excluded.failing_since < endpoint_health.resumed_at"
        " THEN excluded.last_at ELSE excluded.failing_since END),"
        " failures = endpoint_health.failures + 1, last_status = excluded.last_status,"
        " last_error = excluded.last_error, last_at = excluded.last_at,"
        " paused_since = CASE WHEN excluded.resumed_at IS NULL"
        " AND excluded.failing_since >= COALESCE(endpoint_health.resumed_at, 0)"
        " THEN COALESCE(excluded.paused_since, endpoint_health.paused_since)"
        " ELSE endpoint_health.paused_since END,"
        " resumed_at = CASE WHEN excluded.paused_since IS NOT NULL"
        " AND excluded.resumed_at IS NULL"
        " AND excluded.failing_since >= COALESCE(endpoint_health.resumed_at, 0)"
        " THEN NULL ELSE endpoint_health.resumed_at END,"
        " next_probe = excluded.next_probe",
        failure.endpoint_id, failure.failing_since, failure.last_status, failure.last_error,
        failure.last_at, failure.paused_since, failure.resumed_at, failure.next_probe);
  };
  committer_.mark(work, {});
}

void EndpointHealth::works(const std::string& endpoint_id, model::Timestamp now) {
  const auto work = [endpoint_id, now](Connection& connection) {
    connection.run("DELETE FROM endpoint_health WHERE endpoint_id = :e AND paused_since IS NULL",
                   endpoint_id);
    connection.run(
        "UPDATE endpoint_health SET failing_since = NULL, failures = 0,"
        " resumed_at = COALESCE(resumed_at, :n) WHERE endpoint_id = :e",
        now, endpoint_id);
  };
  committer_.mark(work, {});
}

Result<void> EndpointHealth::resume(const std::string& endpoint_id) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    const auto resumed = connection.run_counted(
        "UPDATE endpoint_health SET failing_since = NULL, failures = 0, resumed_at = :n"
        " WHERE endpoint_id = :e AND paused_since IS NOT NULL AND resumed_at IS NULL",
        writer.timer_now(), endpoint_id);
    if (resumed == 0) return fail(Errc::conflict, "the Endpoint is not paused");
    connection.run("UPDATE deliveries SET due_at = :n WHERE endpoint_id = :e AND due_at > :m",
                   writer.timer_now(), endpoint_id, writer.timer_now());
    announce(connection, resume_topic, endpoint_id);
    return {};
  });
}

Result<std::vector<std::string>> EndpointHealth::forget(model::Timestamp resumed_before) {
  const auto gone = [resumed_before](Connection& connection) {
    return connection.values<std::string>(sql_of_over_failures, resumed_before);
  };
  // Most rounds find no such row, and need no write.
  auto found = read(database_, gone);
  if (!found || found->empty()) return found;
  return committer_.write_and_wait([&](Writer& writer) {
    auto endpoints = gone(writer.connection());
    for (const auto& endpoint : endpoints) {
      writer.connection().run("DELETE FROM endpoint_health WHERE endpoint_id = :e", endpoint);
    }
    return endpoints;
  });
}

}  // namespace conversed::store
