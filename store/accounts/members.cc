#include "store/accounts/members.h"

#include <algorithm>
#include <utility>

#include "store/sql/read.h"

namespace conversed::store {

namespace {

// Rows of crashed daemons are kept for a while, for operators who read the database.
constexpr std::int64_t forgotten_after_ms = 3'600'000;

// The time now, not at the transaction's beginning.
const std::string now_ms = "CAST(floor(extract(epoch FROM clock_timestamp()) * 1000) AS BIGINT)";

void write(Connection& connection, const ClusterMember& member) {
  connection.run("DELETE FROM daemons WHERE seen_at < " + now_ms + " - :f", forgotten_after_ms);
  connection.run(
      "INSERT INTO daemons (id, run, roles, version, partitions, started_at, seen_at)"
      " VALUES (:i, :r, :o, :v, :p, " +
          now_ms + ", " + now_ms +
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
        "SELECT run, seen_at FROM daemons WHERE id = :i AND seen_at > " + now_ms + " - :l",
        member.id, member_lifetime.count());
    if (row && std::get<0>(*row) != previous_run && std::get<0>(*row) != member.run) {
      return Holder{std::move(std::get<0>(*row)), std::get<1>(*row)};
    }
    write(connection, member);
    return Holder{};
  };
  return committer_.write_and_wait(work, Committer::Patience::until_it_works);
}

Result<Members::Present> Members::beat(const ClusterMember& member,
                                       const std::function<void()>& begins) {
  using Row = ClusterMember;
  static const std::string columns =
      "id, run, roles, version, partitions, started_at, seen_at FROM ";
  Present present;
  const auto work = [&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    for (bool is_first = true;; is_first = false) {
      begins();
      present.members = connection.all(
          row_of<&Row::id, &Row::run, &Row::roles, &Row::version, &Row::partitions,
                 &Row::started_at, &Row::seen_at>,
          "WITH beat AS (UPDATE daemons SET roles = :o, partitions = :p, seen_at = " + now_ms +
              " WHERE id = :i AND run = :r RETURNING *) SELECT " + columns +
              "beat UNION ALL SELECT " + columns + "daemons WHERE id <> :m AND seen_at > " +
              now_ms + " - :l ORDER BY id",
          member.roles, member.partitions, member.id, member.run, member.id,
          member_lifetime.count());
      const auto own = std::ranges::find(present.members, member.id, &Row::id);
      if (own != present.members.end()) {
        present.now = own->seen_at;
        return {};
      }
      if (!is_first || connection.exists("SELECT 1 FROM daemons WHERE id = :i", member.id)) break;
      write(connection, member);  // its row was removed
    }
    return fail(Errc::conflict,
                "another daemon runs as " + member.id + " now; give each its own cluster.name");
  };
  if (auto beaten = committer_.run_alone(work); !beaten) return fail(beaten.error());
  return present;
}

Result<void> Members::leave(const ClusterMember& member) {
  return committer_.write_and_wait([&](Writer& writer) {
    writer.connection().run("DELETE FROM daemons WHERE id = :i AND run = :r", member.id,
                            member.run);
  });
}

}  // namespace conversed::store
