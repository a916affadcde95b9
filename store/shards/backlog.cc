#include "store/shards/backlog.h"

#include <algorithm>
#include <string>
#include <utility>

#include "store/commit/committer.h"
#include "store/conversation/due_sql.h"
#include "store/shards/across_shards.h"
#include "store/sql/read.h"

namespace conversed::store {
namespace {

struct Row {
  Backlog backlog;
  std::optional<std::string> inbox_event;  // its id
};

std::string count_of(std::string_view rows) {
  return "(SELECT COUNT(*) FROM (" + std::string(rows) + " LIMIT " + std::to_string(most_counted) +
         ") AS counted), ";
}

Row read_row(Connection& connection) {
  static const std::string sql =
      "SELECT " + count_of(sql_of_pending_deliveries) + count_of(sql_of_new_letters) +
      count_of(sql_of_running_calls) + count_of(sql_of_inbox_events) +
      "(SELECT created_at FROM dead_letters WHERE state = 'new' ORDER BY n LIMIT 1), (" +
      std::string(sql_of_oldest_inbox_event) +
      "), (SELECT MIN(created_at) FROM jobs WHERE state = 'queued'),"
      " (SELECT MIN(failing_since) FROM endpoint_health"
      " WHERE paused_since IS NULL OR resumed_at IS NOT NULL),"
      " (SELECT MIN(paused_since) FROM endpoint_health WHERE resumed_at IS NULL)";
  using Time = std::optional<model::Timestamp>;
  return *connection.first(
      [](std::int64_t deliveries, std::int64_t letters, std::int64_t calls, std::int64_t events,
         Time letter, std::optional<std::string> event, Time job, Time failing, Time paused) {
        return Row{.backlog = {.deliveries = deliveries,
                               .dead_letters = letters,
                               .running_calls = calls,
                               .inbox_events = events,
                               .dead_letter = letter,
                               .queued_job = job,
                               .failing_endpoint = failing,
                               .paused_endpoint = paused},
                   .inbox_event = std::move(event)};
      },
      sql);
}

Result<Backlog> read_one(Shard& shard) {
  auto row = read(shard.database(), read_row);
  if (!row) return fail(row.error());
  if (!row->inbox_event) return row->backlog;
  // One damaged event must not hide the counts.
  const auto event = shard.sessions().in_inbox(*row->inbox_event);
  if (event && *event && (*event)->since != model::Timestamp()) {
    row->backlog.inbox_event = (*event)->since;
  }
  return row->backlog;
}

}  // namespace

Backlog& Backlog::operator+=(const Backlog& other) {
  const auto add = [](std::int64_t& count, std::int64_t more) {
    count = std::min(count + more, most_counted);
  };
  add(deliveries, other.deliveries);
  add(dead_letters, other.dead_letters);
  add(running_calls, other.running_calls);
  add(inbox_events, other.inbox_events);
  take_older(dead_letter, other.dead_letter);
  take_older(inbox_event, other.inbox_event);
  take_older(queued_job, other.queued_job);
  take_older(failing_endpoint, other.failing_endpoint);
  take_older(paused_endpoint, other.paused_endpoint);
  return *this;
}

Result<Backlog> read_backlog(const Shards& shards) {
  return sum_of_shards(shards, read_one);
}

}  // namespace conversed::store
