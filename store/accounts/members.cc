#include "store/accounts/members.h"

#include <algorithm>
#include <utility>

#include "store/sql/read.h"

namespace conversed::store {

namespace {

// Rows of crashed daemons are kept for a while, for operators who read the database.
constexpr std::int64_t forgotten_after_ms = 3'600'000;

// Of this moment, not of the transaction's beginning.
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

// The members that were seen lately, and the one with this id. `first` may begin the statement;
// `in` are its parameters.
template <typename... In>
Members::Present present_in(Connection& connection, const std::string& first, const std::string& id,
                            const In&... in) {
  Members::Present present;
  connection.rows(
      [&](std::string member, std::string run, std::vector<std::string> roles, std::string version,
          std::vector<std::int32_t> partitions, model::Timestamp started_at,
          model::Timestamp seen_at, model::Timestamp now) {
        present.now = now;
        present.members.push_back({std::move(member), std::move(run), std::move(roles),
                                   std::move(version), std::move(partitions), started_at, seen_at});
      },
      first + "SELECT id, run, roles, version, partitions, started_at, seen_at, " + now_ms +
          " FROM daemons WHERE seen_at > " + now_ms + " - :l OR id = :m ORDER BY id",
      in..., member_lifetime.count(), id);
  return present;
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

Result<Members::Present> Members::beat(const ClusterMember& member) {
  Present present;
  auto beaten = committer_.run_alone([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    present = present_in(
        connection,
        "WITH beat AS (UPDATE daemons SET roles = :o, partitions = :p, seen_at = " + now_ms +
            " WHERE id = :i AND run = :r) ",
        member.id, member.roles, member.partitions, member.id, member.run);
    const auto own = std::ranges::find(present.members, member.id, &ClusterMember::id);
    if (own == present.members.end()) {
      write(connection, member);
      present = present_in(connection, {}, member.id);
      return {};
    }
    if (own->run != member.run) {
      return fail(Errc::conflict,
                  "another daemon runs as " + member.id + " now; give each its own cluster.name");
    }
    // The SELECT has read what the UPDATE replaces.
    own->roles = member.roles;
    own->partitions = member.partitions;
    own->seen_at = present.now;
    return {};
  });
  if (!beaten) return fail(beaten.error());
  return present;
}

Result<void> Members::leave(const ClusterMember& member) {
  return committer_.write_and_wait([&](Writer& writer) {
    writer.connection().run("DELETE FROM daemons WHERE id = :i AND run = :r", member.id,
                            member.run);
  });
}

Result<Members::Present> Members::present() const {
  return read(database_, [](Connection& connection) { return present_in(connection, {}, {}); });
}

}  // namespace conversed::store
