#include "store/attempts.h"

#include "store/read.h"

namespace conversed::store {

using model::fail;
using model::Result;

namespace {

void forget_marks(Connection& connection) {
  connection.run("DELETE FROM recovery_limits");
  connection.run("DELETE FROM meta WHERE name = 'recovering_since'");
}

std::optional<RecoveryMarks> read_marks(Connection& connection) {
  const auto since =
      connection.value<std::int64_t>("SELECT value FROM meta WHERE name = 'recovering_since'");
  if (!since) return std::nullopt;
  RecoveryMarks marks{.since = model::from_unix_ms(*since), .below = {}};
  connection.rows<std::int64_t, std::int32_t, std::int64_t>(
      [&](std::int64_t epoch, std::int32_t partition, std::int64_t offset) {
        marks.below.push_back({.epoch = epoch, .partition = partition, .offset = offset});
      },
      "SELECT epoch, log_partition, log_offset FROM recovery_limits ORDER BY log_partition");
  return marks;
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

Result<int> Attempts::begin(const std::string& event_id, int before,
                            const std::optional<model::Position>& at) {
  const auto count = number_of(event_id, before);
  if (!count) return count;
  const auto work = [&](Writer& writer) -> Result<void> {
    // Only as long as there is a record of the recovery: a count that outlives it would tell the
    // next start that everything else which it finds unfinished has one, too.
    writer.connection().run(
        "INSERT INTO attempts (event_id, count)"
        " SELECT CAST(:e AS TEXT), CAST(:c AS BIGINT) WHERE EXISTS"
        " (SELECT 1 FROM meta WHERE name = 'recovering_since')"
        " ON CONFLICT (event_id) DO UPDATE SET count = excluded.count",
        event_id, *count);
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

Result<void> Attempts::mark(const RecoveryMarks& marks) {
  const auto work = [&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    forget_marks(connection);
    connection.run("INSERT INTO meta (name, value) VALUES ('recovering_since', :s)",
                   model::to_unix_ms(marks.since));
    for (const auto& limit : marks.below) {
      connection.run(
          "INSERT INTO recovery_limits (log_partition, epoch, log_offset) VALUES (:p, :e, :o)",
          limit.partition, limit.epoch, limit.offset);
    }
    return {};
  };
  return committer_.write_and_wait(work, Committer::Patience::until_it_works);
}

Result<void> Attempts::clear(Committer::Patience patience) {
  const auto work = [](Writer& writer) -> Result<void> {
    writer.connection().run("DELETE FROM attempts");
    forget_marks(writer.connection());
    return {};
  };
  return committer_.write_and_wait(work, patience);
}

}  // namespace conversed::store
