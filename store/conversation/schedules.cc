#include "store/conversation/schedules.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "store/commit/row_numbers.h"
#include "store/commit/row_writes.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::Schedule;

namespace {

constexpr std::string_view columns =
    "SELECT id, n, key, message, COALESCE(cron, ''), timezone, run, due_at, fired, created_at,"
    " created_by FROM schedules ";

Schedules::Row row_from(std::string id, std::int64_t n, model::SessionKey key,
                        nlohmann::json message, std::string cron, std::string zone,
                        std::int64_t run, model::Timestamp due_at, std::int64_t fired,
                        model::Timestamp created_at, std::string created_by) {
  const auto& text = message.at("text");
  return {
      .n = n,
      .schedule = {.id = std::move(id),
                   .session = std::move(key),
                   .text = text.is_null() ? std::nullopt : std::optional(text.get<std::string>()),
                   .data = std::move(message.at("data")),
                   .cron = std::move(cron),
                   .timezone = std::move(zone),
                   .due_at = due_at,
                   .run = run,
                   .fired = fired,
                   .created_at = created_at,
                   .created_by = std::move(created_by)}};
}

std::string sql_where(std::string_view condition) {
  return std::string(columns).append("WHERE ").append(condition);
}

Result<Schedule> find_schedule(Connection& connection, const std::string& project_id,
                               const std::string& id) {
  auto row = connection.first(row_from, sql_where("id = :i AND project_id = :p"), id, project_id);
  if (!row) return fail(Errc::not_found, "there is no such schedule");
  return std::move(row->schedule);
}

// The same, to change it.
Result<Schedule> find_schedule(Writer& writer, const std::string& project_id,
                               const std::string& id) {
  auto found = find_schedule(writer.connection(), project_id, id);
  if (!found) return found;
  if (auto here = writer.check_place(found->session.encode()); !here) return fail(here.error());
  return found;
}

std::optional<std::string> cron_of(const std::string& cron) {
  return cron.empty() ? std::nullopt : std::optional(cron);
}

nlohmann::json message_of(const Schedule& schedule) {
  return {{"text", schedule.text ? nlohmann::json(*schedule.text) : nlohmann::json(nullptr)},
          {"data", schedule.data}};
}

}  // namespace

Result<std::optional<KeptAnswer>> Schedules::create(const Schedule& schedule,
                                                    const std::optional<KeyedAnswer>& keyed) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::optional<KeptAnswer>> {
    if (auto here = writer.check_place(schedule.session.encode()); !here) {
      return fail(here.error());
    }
    std::optional<KeptAnswer> kept;
    if (keyed) {
      auto found = find_keyed_answer(writer, keyed->key);
      if (!found) return fail(found.error());
      kept = *std::move(found);
      if (kept) return kept;
    }
    if (writer.connection().exists("SELECT 1 FROM removed_endpoints WHERE id = :i",
                                   schedule.session.endpoint_id)) {
      return fail(Errc::not_found, "there is no such Endpoint");
    }
    static const auto sql =
        "INSERT INTO schedules (id, n, project_id, endpoint_id, key, message, cron, timezone,"
        " claim, run, due_at, fired, created_at, created_by) VALUES (:i, " +
        sql_of_next_number("schedules") + ", :p, :e, :k, :m, :c, :z, :l, :r, :d, :f, :t, :b)";
    writer.connection().run(sql, schedule.id, schedule.session.project_id,
                            schedule.session.endpoint_id, schedule.session, message_of(schedule),
                            cron_of(schedule.cron), schedule.timezone, schedule.claim(),
                            schedule.run, schedule.due_at, schedule.fired, schedule.created_at,
                            schedule.created_by);
    announce_timer(writer.connection(), schedule.due_at);
    if (keyed) keep_keyed_answer(writer, *keyed);
    return kept;
  });
}

Result<std::vector<Schedules::Row>> Schedules::list(const std::string& project_id,
                                                    std::int64_t after, std::size_t limit) const {
  return read_all(database_, row_from, sql_where("project_id = :p AND n > :a ORDER BY n LIMIT :l"),
                  project_id, after, limit);
}

Result<Schedule> Schedules::get(const std::string& project_id, const std::string& id) const {
  return read(database_,
              [&](Connection& connection) { return find_schedule(connection, project_id, id); });
}

Result<std::optional<Schedule>> Schedules::by_claim(const std::string& claim) const {
  return read(database_, [&](Connection& connection) {
    auto row = connection.first(row_from, sql_where("claim = :c"), claim);
    return row ? std::optional(std::move(row->schedule)) : std::nullopt;
  });
}

// Reads no session and no message, so that damage there hides no schedule.
Result<std::vector<Schedules::Row>> Schedules::recurring(std::int64_t after,
                                                         std::size_t limit) const {
  return read_all(
      database_,
      [](std::string id, std::int64_t n, std::string cron, std::string zone, std::int64_t run,
         model::Timestamp due_at) {
        return Row{.n = n,
                   .schedule = {.id = std::move(id),
                                .cron = std::move(cron),
                                .timezone = std::move(zone),
                                .due_at = due_at,
                                .run = run}};
      },
      "SELECT id, n, cron, timezone, run, due_at FROM schedules"
      " WHERE cron IS NOT NULL AND n > :a ORDER BY n LIMIT :l",
      after, limit);
}

Result<void> Schedules::bring_forward(const std::vector<Sooner>& schedules) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    std::optional<model::Timestamp> first;
    for (const auto& [schedule, due_at] : schedules) {
      writer.connection().run(
          "UPDATE schedules SET due_at = :d WHERE id = :i AND run = :r AND due_at = :o", due_at,
          schedule.id, schedule.run, schedule.due_at);
      first = std::min(first.value_or(due_at), due_at);
    }
    if (first) announce_timer(writer.connection(), *first);
    return {};
  });
}

Result<void> Schedules::cancel(const std::string& project_id, const std::string& id) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    const auto found = find_schedule(writer, project_id, id);
    if (!found) return fail(found.error());
    writer.connection().run("DELETE FROM schedules WHERE id = :i", id);
    return {};
  });
}

Result<Schedule> Schedules::reschedule(const std::string& project_id, const std::string& id,
                                       const When& when) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<Schedule> {
    auto moved = find_schedule(writer, project_id, id);
    if (!moved) return moved;
    ++moved->run;
    moved->cron = when.cron;
    moved->timezone = when.timezone;
    moved->due_at = when.due_at;
    writer.connection().run(
        "UPDATE schedules SET run = :r, claim = :l, cron = :c, timezone = :z, due_at = :d,"
        " appended = 0 WHERE id = :i",
        moved->run, moved->claim(), cron_of(moved->cron), moved->timezone, moved->due_at, id);
    announce_timer(writer.connection(), moved->due_at);
    return moved;
  });
}

}  // namespace conversed::store
