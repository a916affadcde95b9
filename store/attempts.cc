#include "store/attempts.h"

#include "store/read.h"

namespace conversed::store {

using model::fail;
using model::Result;

namespace {

std::vector<RecoveryMark> read_marks(Connection& connection) {
  std::vector<RecoveryMark> marks;
  connection.rows<std::int64_t, std::int32_t, std::int64_t, std::int64_t>(
      [&](std::int64_t epoch, std::int32_t partition, std::int64_t offset, std::int64_t since) {
        marks.push_back({.since = model::from_unix_ms(since),
                         .below = {.epoch = epoch, .partition = partition, .offset = offset}});
      },
      "SELECT epoch, log_partition, log_offset, since FROM recovery_limits ORDER BY log_partition");
  return marks;
}

void write_mark(Connection& connection, const RecoveryMark& mark) {
  connection.run(
      "INSERT INTO recovery_limits (log_partition, epoch, log_offset, since)"
      " VALUES (:p, :e, :o, :s) ON CONFLICT (log_partition) DO UPDATE SET epoch = excluded.epoch,"
      " log_offset = excluded.log_offset, since = excluded.since",
      mark.below.partition, mark.below.epoch, mark.below.offset, model::to_unix_ms(mark.since));
}

// What the recovery of the partition goes by, if it needs one: a run has left it, or an earlier
// recovery is not at its end.
std::optional<RecoveryMark> mark_to_recover_by(Connection& connection, const std::string& run,
                                               const RecoveryMark& now) {
  const auto partition = now.below.partition;
  const auto begun = connection.row<std::int64_t, std::int64_t, std::int64_t>(
      "SELECT epoch, log_offset, since FROM recovery_limits WHERE log_partition = :p", partition);
  if (begun) {
    const auto& [epoch, offset, since] = *begun;
    if (epoch != now.below.epoch) return now;
    return RecoveryMark{.since = model::from_unix_ms(since),
                        .below = {.epoch = epoch, .partition = partition, .offset = offset}};
  }
  const auto owner = connection.value<std::string>(
      "SELECT run FROM partition_runs WHERE log_partition = :p", partition);
  if (!owner || *owner == run) return std::nullopt;
  return now;
}

}  // namespace

Result<int> Attempts::number_of(const std::string& event_id, int before) {
  const auto known = begun_.with([&](const auto& begun) -> std::optional<int> {
    const auto found = begun.find(event_id);
    return found != begun.end() ? std::optional(found->second) : std::nullopt;
  });
  if (known) return *known;
  auto stored = read(database_, [&](Connection& connection) -> Result<int> {
    return connection.value<int>("SELECT count FROM attempts WHERE event_id = :e", event_id)
        .value_or(before);
  });
  if (!stored) return stored;
  begun_.with([&](auto& begun) { begun[event_id] = *stored + 1; });
  return *stored + 1;
}

Result<int> Attempts::begin(const std::string& event_id, int before, std::int32_t partition,
                            const std::optional<model::Position>& at) {
  const auto count = number_of(event_id, before);
  if (!count) return count;
  const auto work = [&](Writer& writer) -> Result<void> {
    // Only as long as there is a record of the recovery: a count that outlives it would tell the
    // next start that everything else which it finds unfinished has one, too.
    writer.connection().run(
        "INSERT INTO attempts (event_id, count, log_partition)"
        " SELECT CAST(:e AS TEXT), CAST(:c AS BIGINT), log_partition FROM recovery_limits"
        " WHERE log_partition = :p"
        " ON CONFLICT (event_id) DO UPDATE SET count = CASE WHEN excluded.count > attempts.count"
        " THEN excluded.count ELSE attempts.count END,"  // others may have had it meanwhile
        " log_partition = excluded.log_partition",
        event_id, *count, partition);
    // Else a recovery that ends before it comes to this one again would forget its count.
    if (at) {
      writer.connection().run(
          "UPDATE recovery_limits SET log_offset = :o WHERE log_partition = :p AND log_offset < :b",
          at->offset + 1, at->partition, at->offset + 1);
    }
    return {};
  };
  auto written = committer_.write_and_wait(work);
  if (!written) return fail(written.error());
  begun_.with([&](auto& begun) { begun.erase(event_id); });
  return *count;
}

Result<Attempts::Recorded> Attempts::recorded() const {
  return read_snapshot(database_, [](Connection& connection) -> Result<Recorded> {
    return Recorded{
        .counts = connection.value<std::int64_t>("SELECT 1 FROM attempts LIMIT 1").has_value(),
        .marks = read_marks(connection)};
  });
}

Result<void> Attempts::mark(const std::vector<RecoveryMark>& marks) {
  const auto work = [&](Writer& writer) -> Result<void> {
    writer.connection().run("DELETE FROM recovery_limits");
    for (const auto& mark : marks) write_mark(writer.connection(), mark);
    return {};
  };
  return committer_.write_and_wait(work, Committer::Patience::until_it_works);
}

Result<void> Attempts::clear(Committer::Patience patience) {
  const auto work = [](Writer& writer) -> Result<void> {
    writer.connection().run("DELETE FROM attempts");
    writer.connection().run("DELETE FROM recovery_limits");
    return {};
  };
  return committer_.write_and_wait(work, patience);
}

Result<Attempts::TakenUp> Attempts::take_up(const std::string& run,
                                            std::span<const RecoveryMark> marks) {
  TakenUp taken;
  const auto work = [&](Writer& writer) -> Result<void> {
    taken = {};
    Connection& connection = writer.connection();
    for (const auto& now : marks) {
      const auto partition = now.below.partition;
      if (const auto mark = mark_to_recover_by(connection, run, now)) {
        write_mark(connection, *mark);
        taken.recovering.push_back(*mark);
        const auto counted = connection.value<std::int64_t>(
            "SELECT 1 FROM attempts WHERE log_partition = :p LIMIT 1", partition);
        if (counted) taken.counted.insert(partition);
      }
      connection.run(
          "INSERT INTO partition_runs (log_partition, run) VALUES (:p, :r)"
          " ON CONFLICT (log_partition) DO UPDATE SET run = excluded.run",
          partition, run);
    }
    return {};
  };
  if (auto written = committer_.write_and_wait(work); !written) return fail(written.error());
  return taken;
}

Result<void> Attempts::give_up(const std::string& run, std::span<const std::int32_t> partitions) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    for (const auto partition : partitions) {
      writer.connection().run("DELETE FROM partition_runs WHERE log_partition = :p AND run = :r",
                              partition, run);
    }
    return {};
  });
}

Result<void> Attempts::give_up_all(const std::string& run) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    writer.connection().run("DELETE FROM partition_runs WHERE run = :r", run);
    return {};
  });
}

Result<void> Attempts::recovered(const std::string& run, std::span<const std::int32_t> partitions) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    for (const auto partition : partitions) {
      const auto is_own = connection.value<std::int64_t>(
          "SELECT 1 FROM partition_runs WHERE log_partition = :p AND run = :r", partition, run);
      if (!is_own) continue;
      connection.run("DELETE FROM attempts WHERE log_partition = :p", partition);
      connection.run("DELETE FROM recovery_limits WHERE log_partition = :p", partition);
    }
    return {};
  });
}

}  // namespace conversed::store
