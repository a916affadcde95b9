#include "store/conversation/attempts.h"

#include <algorithm>

#include "store/sql/read.h"

namespace conversed::store {

namespace {

std::vector<Attempts::Counted> read_counted(Connection& connection) {
  using Row = Attempts::Counted;
  return connection.all(row_of<&Row::event_id, &Row::partition, &Row::count>,
                        "SELECT event_id, log_partition, count FROM attempts ORDER BY event_id");
}

// Deletes the counts of events that were committed just before the crash.
void forget_finished(Connection& connection, std::int32_t partition, std::int64_t committed) {
  connection.run(
      "DELETE FROM attempts WHERE log_partition = :p AND log_offset < :o"
      " AND NOT EXISTS (SELECT 1 FROM inbox WHERE inbox.event_id = attempts.event_id)",
      partition, committed);
}

// A partition that still belongs to another run was left behind. Its window outlives runs that give
// the partition up before all records below it are finished.
void take_partition(Writer& writer, const std::string& run, const Attempts::Taking& taking,
                    Attempts::TakenUp& taken) {
  Connection& connection = writer.connection();
  Attempts::Window window;
  const auto known = connection.row<std::string, std::int64_t, model::Timestamp>(
      "SELECT run, left_below, left_since FROM partition_runs WHERE log_partition = :p",
      taking.partition);
  if (known) {
    const auto& [owner, below, since] = *known;
    const bool crashed = !owner.empty() && owner != run;
    if (crashed) {
      taken.crashed = true;
      window = {.below = taking.taken_below, .since = writer.now()};
    } else if (below > taking.committed || owner == run) {
      window = {.below = below, .since = since};
    }
  }
  if (window != Attempts::Window{}) taken.windows.emplace(taking.partition, window);
  connection.run(
      "INSERT INTO partition_runs (log_partition, run, left_below, left_since)"
      " VALUES (:p, :r, :b, :s) ON CONFLICT (log_partition) DO UPDATE SET run = excluded.run,"
      " left_below = excluded.left_below, left_since = excluded.left_since",
      taking.partition, run, window.below, window.since);
}

void count_one_more(Connection& connection, const InHand& event) {
  connection.run(
      "INSERT INTO attempts (event_id, count, log_partition, log_offset) VALUES (:e, 1, :p, :o)"
      " ON CONFLICT (event_id) DO UPDATE SET count = attempts.count + 1,"
      " log_partition = excluded.log_partition, log_offset = excluded.log_offset",
      event.event_id, event.partition, event.offset);
}

}  // namespace

Result<std::vector<Attempts::Counted>> Attempts::counted() const {
  return read(database_, [](Connection& connection) { return read_counted(connection); });
}

Result<std::vector<Attempts::Counted>> Attempts::attribute(
    std::int64_t run, std::span<const InHand> events, std::span<const model::Position> committed) {
  const auto work = [&](Writer& writer) {
    Connection& connection = writer.connection();
    const auto known =
        connection.value<std::int64_t>("SELECT value FROM meta WHERE name = 'attributed_run'");
    if (!events.empty() && known != run) {
      for (const auto& event : events) count_one_more(connection, event);
      connection.run(
          "INSERT INTO meta (name, value) VALUES ('attributed_run', :v)"
          " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
          run);
    }
    for (const auto& first : committed) {
      forget_finished(connection, first.partition, first.offset);
    }
    return read_counted(connection);
  };
  return committer_.write_and_wait(work, Committer::Patience::until_it_works);
}

Result<Attempts::TakenUp> Attempts::take_up(const std::string& run,
                                            std::span<const Taking> partitions) {
  return committer_.write_and_wait([&](Writer& writer) {
    TakenUp taken;
    Connection& connection = writer.connection();
    for (const auto& each : partitions) {
      forget_finished(connection, each.partition, each.committed);
      take_partition(writer, run, each, taken);
    }
    for (auto& counted : read_counted(connection)) {
      const auto is_taken =
          std::ranges::find(partitions, counted.partition, &Taking::partition) != partitions.end();
      if (is_taken) taken.counted.push_back(std::move(counted));
    }
    return taken;
  });
}

Result<std::int64_t> Attempts::left_below(std::int32_t partition) const {
  return read_number(
      database_, "SELECT COALESCE(MAX(left_below), 0) FROM partition_runs WHERE log_partition = :p",
      partition);
}

Result<void> Attempts::begin(const InHand& event, int count) {
  return committer_.write_and_wait([&](Writer& writer) {
    writer.connection().run(
        "INSERT INTO attempts (event_id, count, log_partition, log_offset)"
        " VALUES (:e, :c, :p, :o)"
        // Another daemon may have begun the event meanwhile.
        " ON CONFLICT (event_id) DO UPDATE SET count = CASE WHEN excluded.count > attempts.count"
        " THEN excluded.count ELSE attempts.count END",
        event.event_id, count, event.partition, event.offset);
  });
}

Result<void> Attempts::give_up(const std::string& run, std::span<const std::int32_t> partitions) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    for (const auto partition : partitions) {
      writer.connection().run(
          "UPDATE partition_runs SET run = '' WHERE log_partition = :p AND run = :r", partition,
          run);
    }
    return {};
  });
}

Result<void> Attempts::give_up_all(const std::string& run) {
  return committer_.write_and_wait([&](Writer& writer) {
    writer.connection().run("UPDATE partition_runs SET run = '' WHERE run = :r", run);
  });
}

}  // namespace conversed::store
