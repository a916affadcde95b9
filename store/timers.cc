#include "store/timers.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "store/news.h"
#include "store/read.h"

namespace conversed::store {

using model::Claim;
using model::Result;

void Timers::announce(Writer& writer, const std::vector<Due>& timers) {
  if (writer.connection().dialect() != Dialect::postgres) return;
  const std::string begin = std::string(topic) + " [";
  std::string news = begin;
  const auto tell = [&] {
    if (news.size() > begin.size()) writer.announce(news + ']');
    news = begin;
  };
  for (const Due& timer : timers) {
    const nlohmann::json item{model::to_unix_ms(timer.at), static_cast<int>(timer.claim.kind),
                              timer.claim.id};
    const auto text = item.dump(-1, ' ', true, nlohmann::json::error_handler_t::replace);
    if (begin.size() + text.size() > max_news_bytes) {
      writer.announce(topic);  // an id of that length is somebody's joke; the store has it
      continue;
    }
    if (news.size() + text.size() > max_news_bytes) tell();
    if (news.size() > begin.size()) news += ',';
    news += text;
  }
  tell();
}

std::optional<std::vector<Timers::Due>> Timers::announced(std::string_view payload) {
  const auto items = nlohmann::json::parse(payload, nullptr, false);
  if (!items.is_array()) return std::nullopt;
  std::vector<Due> timers;
  for (const auto& item : items) {
    const bool readable = item.is_array() && item.size() == 3 && item[0].is_number_integer() &&
                          item[1].is_number_integer() && item[2].is_string();
    if (!readable) return std::nullopt;
    timers.push_back({model::from_unix_ms(item[0].get<std::int64_t>()),
                      {static_cast<Claim::Kind>(item[1].get<int>()), item[2].get<std::string>()}});
  }
  return timers;
}

Result<std::vector<Timers::Due>> Timers::by_due(model::Timestamp after_due,
                                                const std::string& after_id, std::size_t limit,
                                                std::chrono::milliseconds offset) const {
  return read(database_, [&](Connection& connection) -> Result<std::vector<Due>> {
    std::vector<Due> list;
    const auto after = model::to_unix_ms(after_due);
    // Each part is an index read in its order, so what is read is the page and not the tables.
    connection.rows<std::int64_t, std::string, std::int64_t>(
        [&](std::int64_t at, std::string id, std::int64_t kind) {
          list.push_back(
              {model::from_unix_ms(at), {static_cast<Claim::Kind>(kind), std::move(id)}});
        },
        "SELECT due_at, id, :k FROM pending_calls WHERE due_at IS NOT NULL"
        " AND (due_at, id) > (:d, :i)"
        " UNION ALL SELECT due_at, id, :k2 FROM follow_ups WHERE (due_at, id) > (:d2, :i2)"
        " UNION ALL SELECT due_at + :o, claim, :k3 FROM schedules"
        " WHERE (due_at, claim) > (:d3, :i3)"
        " ORDER BY 1, 2 LIMIT :l",
        static_cast<std::int64_t>(Claim::Kind::timer), after, after_id,
        static_cast<std::int64_t>(Claim::Kind::follow_up), after, after_id, offset.count(),
        static_cast<std::int64_t>(Claim::Kind::schedule),
        model::to_unix_ms(after_due) < 0 ? after : after - offset.count(), after_id, limit);
    return list;
  });
}

Result<std::chrono::milliseconds> Timers::offset() const {
  return read(database_, [](Connection& connection) -> Result<std::chrono::milliseconds> {
    return timer_offset(connection);
  });
}

std::chrono::milliseconds timer_offset(Connection& connection) {
  return std::chrono::milliseconds(
      connection.value<std::int64_t>("SELECT value FROM meta WHERE name = 'timer_offset'")
          .value_or(0));
}

Result<void> Timers::keep_offset(std::chrono::milliseconds offset) {
  return committer_.write_and_wait([offset](Writer& writer) -> Result<void> {
    writer.connection().run(
        "INSERT INTO meta (name, value) VALUES ('timer_offset', :v)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        offset.count());
    return {};
  });
}

}  // namespace conversed::store
