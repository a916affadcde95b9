#include "store/conversation/schedules.h"

#include <utility>

#include "store/sql/read.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;
using model::Schedule;

namespace {

constexpr std::string_view columns =
    "SELECT id, n, key, message, cron, timezone, run, due_at, fired, created_at, created_by"
    " FROM schedules ";

template <typename... In>
std::vector<Schedules::Row> load_schedules(Connection& connection, std::string_view where,
                                           const In&... in) {
  return connection.all(
      [](std::string id, std::int64_t n, const std::string& key, const std::string& message,
         std::optional<std::string> cron, std::string zone, std::int64_t run,
         model::Timestamp due_at, std::int64_t fired, model::Timestamp created_at,
         std::string created_by) {
        auto value = stored_json(message);
        Schedule schedule;
        schedule.id = std::move(id);
        schedule.session = stored_or_throw(model::SessionKey::decode(key));
        if (!value.at("text").is_null()) schedule.text = value.at("text").get<std::string>();
        schedule.data = std::move(value.at("data"));
        schedule.cron = std::move(cron).value_or("");
        schedule.timezone = std::move(zone);
        schedule.run = run;
        schedule.due_at = due_at;
        schedule.fired = fired;
        schedule.created_at = created_at;
        schedule.created_by = std::move(created_by);
        return Schedules::Row{n, std::move(schedule)};
      },
      std::string(columns) + std::string(where), in...);
}

Result<Schedule> find(Connection& connection, const std::string& project_id,
                      const std::string& id) {
  auto rows = load_schedules(connection, "WHERE id = :i AND project_id = :p", id, project_id);
  if (rows.empty()) return fail(Errc::not_found, "there is no such schedule");
  return std::move(rows.front().schedule);
}

std::optional<std::string> cron_of(const std::string& cron) {
  return cron.empty() ? std::nullopt : std::optional(cron);
}

std::string message_of(const Schedule& schedule) {
  const nlohmann::json message{
      {"text", schedule.text ? nlohmann::json(*schedule.text) : nlohmann::json(nullptr)},
      {"data", schedule.data}};
  return message.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

}  // namespace

Result<std::optional<KeptAnswer>> Schedules::create(const Schedule& schedule,
                                                    const std::optional<KeyedAnswer>& keyed) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::optional<KeptAnswer>> {
    std::optional<KeptAnswer> kept;
    if (keyed) {
      auto found = find_keyed_answer(writer, keyed->key);
      if (!found) return fail(found.error());
      kept = *std::move(found);
      if (kept) return kept;
    }
    writer.connection().run(
        "INSERT INTO schedules (id, n, project_id, key, message, cron, timezone, claim, run,"
        " due_at, fired, created_at, created_by) VALUES (:i,"
        " (SELECT COALESCE(MAX(n), 0) + 1 FROM schedules), :p, :k, :m, :c, :z, :l, :r, :d, :f, :t,"
        " :b)",
        schedule.id, schedule.session.project_id, schedule.session.encode(), message_of(schedule),
        cron_of(schedule.cron), schedule.timezone, schedule.claim(), schedule.run, schedule.due_at,
        schedule.fired, schedule.created_at, schedule.created_by);
    if (keyed) keep_keyed_answer(writer, *keyed);
    return kept;
  });
}

Result<std::vector<Schedules::Row>> Schedules::list(const std::string& project_id,
                                                    std::int64_t after, std::size_t limit) const {
  return read(database_, [&](Connection& connection) {
    return load_schedules(connection, "WHERE project_id = :p AND n > :a ORDER BY n LIMIT :l",
                          project_id, after, limit);
  });
}

Result<Schedule> Schedules::get(const std::string& project_id, const std::string& id) const {
  return read(database_, [&](Connection& connection) { return find(connection, project_id, id); });
}

Result<std::optional<Schedule>> Schedules::by_claim(const std::string& claim) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<Schedule>> {
    auto rows = load_schedules(connection, "WHERE claim = :c", claim);
    if (rows.empty()) return std::nullopt;
    return std::move(rows.front().schedule);
  });
}

Result<std::vector<Schedules::Row>> Schedules::recurring(std::int64_t after,
                                                         std::size_t limit) const {
  return read(database_, [&](Connection& connection) {
    return connection.all(
        [](std::string id, std::int64_t n, std::string cron, std::string zone, std::int64_t run,
           model::Timestamp due_at) {
          Row row{.n = n, .schedule = {}};
          row.schedule.id = std::move(id);
          row.schedule.cron = std::move(cron);
          row.schedule.timezone = std::move(zone);
          row.schedule.run = run;
          row.schedule.due_at = due_at;
          return row;
        },
        "SELECT id, n, cron, timezone, run, due_at FROM schedules"
        " WHERE cron IS NOT NULL AND n > :a ORDER BY n LIMIT :l",
        after, limit);
  });
}

Result<void> Schedules::bring_forward(const std::vector<Sooner>& schedules) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    for (const auto& [schedule, due_at] : schedules) {
      writer.connection().run(
          "UPDATE schedules SET due_at = :d WHERE id = :i AND run = :r AND due_at = :o", due_at,
          schedule.id, schedule.run, schedule.due_at);
    }
    return {};
  });
}

Result<void> Schedules::cancel(const std::string& project_id, const std::string& id) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    const auto gone = writer.connection().run_counted(
        "DELETE FROM schedules WHERE id = :i AND project_id = :p", id, project_id);
    return gone == 1 ? Result<void>() : fail(Errc::not_found, "there is no such schedule");
  });
}

Result<Schedule> Schedules::reschedule(const std::string& project_id, const std::string& id,
                                       const When& when) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<Schedule> {
    auto moved = find(writer.connection(), project_id, id);
    if (!moved) return moved;
    ++moved->run;
    moved->cron = when.cron;
    moved->timezone = when.timezone;
    moved->due_at = when.due_at;
    writer.connection().run(
        "UPDATE schedules SET run = :r, claim = :l, cron = :c, timezone = :z, due_at = :d,"
        " appended = 0 WHERE id = :i",
        moved->run, moved->claim(), cron_of(moved->cron), moved->timezone, moved->due_at, id);
    return moved;
  });
}

}  // namespace conversed::store
