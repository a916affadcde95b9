#include "store/accounts/members.h"

#include <utility>

#include "store/sql/read.h"

namespace conversed::store {

namespace {

// Rows of crashed daemons are kept for a while, for operators who read the database.
constexpr std::int64_t forgotten_after_ms = 3'600'000;

// The time now, not at the transaction's beginning.
std::string now_ms(const Connection& connection) {
  return connection.dialect() == Dialect::postgres
             ? "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)"
             : "CAST((julianday('now') - 2440587.5) * 86400000 AS BIGINT)";
}

void write(Connection& connection, const ClusterMember& member) {
  const auto now = now_ms(connection);
  connection.run(
      "INSERT INTO daemons (id, run, roles, version, partitions, started_at, seen_at)"
      " VALUES (:i, :r, :o, :v, :p, " +
          now + ", " + now +
          ") ON CONFLICT (id) DO UPDATE SET run = excluded.run, roles = excluded.roles,"
          " version = excluded.version, partitions = excluded.partitions,"
          " started_at = excluded.started_at, seen_at = excluded.seen_at",
      member.id, member.run, member.roles, member.version, member.partitions);
}

}  // namespace

Result<Members::Holder> Members::join(const ClusterMember& member,
                                      const std::string& previous_run) {
  const auto work = [&](Writer& writer) {
    Connection& connection = writer.connection();
    auto row = connection.row<std::string, model::Timestamp>(
        "SELECT run, seen_at FROM daemons WHERE id = :i AND seen_at > " + now_ms(connection) +
            " - :l",
        member.id, member_lifetime.count());
    if (row && std::get<0>(*row) != previous_run && std::get<0>(*row) != member.run) {
      return Holder{std::move(std::get<0>(*row)), std::get<1>(*row)};
    }
    write(connection, member);
    return Holder{};
  };
  return committer_.write_and_wait(work, Committer::Patience::until_it_works);
}

Result<void> Members::beat(const ClusterMember& member) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    const auto now = now_ms(connection);
    const auto found =
        connection.run_counted("UPDATE daemons SET roles = :o, partitions = :p, seen_at = " + now +
                                   " WHERE id = :i AND run = :r",
                               member.roles, member.partitions, member.id, member.run);
    if (found == 0) {
      if (connection.value<std::string>("SELECT run FROM daemons WHERE id = :i", member.id)) {
        return fail(Errc::conflict,
                    "another daemon runs as " + member.id + " now; give each its own cluster.name");
      }
      write(connection, member);
    }
    connection.run("DELETE FROM daemons WHERE seen_at < " + now + " - :f", forgotten_after_ms);
    return {};
  });
}

Result<void> Members::leave(const ClusterMember& member) {
  return committer_.write_and_wait([&](Writer& writer) {
    writer.connection().run("DELETE FROM daemons WHERE id = :i AND run = :r", member.id,
                            member.run);
  });
}

Result<Members::Present> Members::present() const {
  return read(database_, [](Connection& connection) -> Result<Present> {
    Present present;
    const auto now = now_ms(connection);
    present.now = model::from_unix_ms(connection.number("SELECT " + now));
    using Row = ClusterMember;
    present.members = connection.all(
        row_of<&Row::id, &Row::run, &Row::roles, &Row::version, &Row::partitions, &Row::started_at,
               &Row::seen_at>,
        "SELECT id, run, roles, version, partitions, started_at, seen_at FROM daemons"
        " WHERE seen_at > " +
            now + " - :l ORDER BY id",
        member_lifetime.count());
    return present;
  });
}

}  // namespace conversed::store
