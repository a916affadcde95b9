#include "store/shards/move.h"

#include <algorithm>
#include <optional>
#include <thread>
#include <tuple>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/commit/partition_gate.h"
#include "store/commit/row_numbers.h"
#include "store/shards/partition_rows.h"
#include "store/sql/postgres.h"
#include "store/sql/read.h"

namespace conversed::store {
namespace {

constexpr std::chrono::milliseconds between_looks{100};

// While the copy waits for one server, its transaction on the other one is idle.
constexpr std::string_view sql_of_patience = "SET LOCAL idle_in_transaction_session_timeout = '1h'";

std::string shard_name(std::size_t shard) {
  return "shard " + std::to_string(shard);
}

Result<std::unique_ptr<Connection>> connect(const Shard& shard, Connection::Role role) {
  try {
    return open_postgres(*shard.place().postgres, role, std::make_shared<PostgresPulse>());
  } catch (const SqlError& error) {
    return fail(to_error(error));
  }
}

// A row if the function returns true.
std::string sql_of_move_lock(std::string_view function) {
  return "SELECT 1 WHERE " + std::string(function) +
         "(hashtext('conversed move'), hashtext(current_schema()))";
}

// A lock that one move holds at a time. It ends with its connection, if the process is killed. One
// thread at a time.
class MoveLock {
 public:
  // Null: another move holds the lock.
  static Result<std::unique_ptr<MoveLock>> take(const Shards& shards);

  explicit MoveLock(std::unique_ptr<Connection> connection) : connection_(std::move(connection)) {}
  MoveLock(const MoveLock&) = delete;
  MoveLock& operator=(const MoveLock&) = delete;

  // PostgreSQL ends a closed connection some time later. The next move must not wait for that.
  ~MoveLock() {
    std::ignore = with_errors(*connection_, [](Connection& connection) {
      return connection.exists(sql_of_move_lock("pg_advisory_unlock"));
    });
  }

 private:
  std::unique_ptr<Connection> connection_;
};

Result<std::unique_ptr<MoveLock>> MoveLock::take(const Shards& shards) {
  auto lock = connect(*shards.front(), Connection::Role::reader);
  if (!lock) return fail(lock.error());
  const auto taken = with_errors(**lock, [](Connection& connection) {
    return connection.exists(sql_of_move_lock("pg_try_advisory_lock"));
  });
  if (!taken) return fail(taken.error());
  if (!*taken) return nullptr;
  return std::make_unique<MoveLock>(std::move(*lock));
}

// No number is given twice, even after its row has moved away.
void keep_numbers(Connection& connection) {
  const auto last = connection.number("SELECT value FROM meta WHERE name = 'numbers_to'");
  connection.run(
      "UPDATE meta SET value = (SELECT MAX(n) FROM (SELECT meta.value AS n"
      " UNION ALL SELECT MAX(n) FROM dead_letters WHERE n <= :l"
      " UNION ALL SELECT MAX(n) FROM schedules WHERE n <= :m) AS numbers)"
      " WHERE name = 'numbers_from'",
      last, last);
}

class Move {
 public:
  Move(const Shards& shards, Layout& layout, const PartitionOfLog& partition, std::size_t to,
       const MoveSettings& settings)
      : shards_(shards), layout_(layout), partition_(partition), to_(to), settings_(settings) {}

  Result<MoveReport> run();

 private:
  using Step = Result<void> (Move::*)();

  [[nodiscard]] Shard& source() const { return *shards_[report_.from]; }
  [[nodiscard]] Shard& target() const { return *shards_[to_]; }
  [[nodiscard]] Result<bool> is_open(Shard& shard) const;
  [[nodiscard]] Result<void> told(MoveStep step, std::int64_t rows = 0);
  [[nodiscard]] Result<void> make(std::string_view name, Step step);

  [[nodiscard]] Result<MoveReport> finish_earlier_move();
  [[nodiscard]] Result<MoveReport> end_early(std::size_t moves_to);
  [[nodiscard]] Result<void> reach();
  [[nodiscard]] Result<void> announce_move();
  [[nodiscard]] Result<void> wait_for_owner();
  [[nodiscard]] Result<void> close();
  [[nodiscard]] Result<void> clear();
  [[nodiscard]] Result<void> copy();
  [[nodiscard]] Result<void> switch_over();
  [[nodiscard]] Result<void> remove();

  const Shards& shards_;
  Layout& layout_;
  const PartitionOfLog partition_;
  const std::size_t to_;
  const MoveSettings& settings_;
  MoveReport report_;
};

Result<bool> Move::is_open(Shard& shard) const {
  return read(shard.database(), [&](Connection& connection) {
    return is_partition_open(connection, partition_.number);
  });
}

Result<void> Move::told(MoveStep step, std::int64_t rows) {
  if (!settings_.done || settings_.done(step, rows)) return {};
  return fail(Errc::unavailable, "the move was stopped");
}

Result<void> Move::make(std::string_view name, Step step) {
  auto made = (this->*step)();
  if (made) return made;
  return fail(made.error().code, "could not finish to " + std::string(name) + ": " +
                                     made.error().message +
                                     "; give the same command again: it goes on from here");
}

Result<MoveReport> Move::run() {
  const auto places = layout_.places();
  const auto& place = places[static_cast<std::size_t>(partition_.number)];
  report_.from = place.shard;
  if (place.moves_to && place.shard == to_) return end_early(*place.moves_to);
  if (place.moves_to && *place.moves_to != to_) {
    return fail(Errc::conflict,
                "the partition is being moved to " + shard_name(*place.moves_to) +
                    ", and that move is not finished; give the command for that shard again, or "
                    "for " +
                    shard_name(place.shard) + " to end it");
  }
  if (place.shard == to_) return finish_earlier_move();
  if (auto there = reach(); !there) return fail(there.error());
  if (auto made = make("announce the move", &Move::announce_move); !made) {
    return fail(made.error());
  }
  const auto is_copied = is_open(target());
  if (!is_copied) return fail(is_copied.error());
  using Named = std::pair<std::string_view, Step>;
  std::vector<Named> steps;
  if (!*is_copied) {
    steps = {{"wait for the partition's owner", &Move::wait_for_owner},
             {"close the partition on the old server", &Move::close},
             {"delete old rows on the new server", &Move::clear},
             {"copy the rows", &Move::copy}};
  }
  steps.emplace_back("switch to the new server", &Move::switch_over);
  steps.emplace_back("delete the rows on the old server", &Move::remove);
  for (const auto& [name, step] : steps) {
    if (auto made = make(name, step); !made) return fail(made.error());
  }
  return report_;
}

// The partition is at its place. An earlier call may have left rows on another server.
Result<MoveReport> Move::finish_earlier_move() {
  for (std::size_t other = 0; other < shards_.size(); ++other) {
    if (other == to_) continue;
    const auto open = is_open(*shards_[other]);
    if (!open) return fail(open.error());
    if (*open) {
      return fail(Errc::internal, "the partition is open on " + shard_name(other) +
                                      ", too; nothing was deleted there");
    }
    const auto left = read(shards_[other]->database(), partition_leftovers);
    if (!left) return fail(left.error());
    if (std::ranges::find(*left, partition_.number) == left->end()) continue;
    report_.from = other;
    if (auto made = make("delete the rows on the old server", &Move::remove); !made) {
      return fail(made.error());
    }
    return report_;
  }
  return fail(Errc::conflict, "the partition is in " + shard_name(to_) + " already");
}

// Once the rows are copied, the old server loses some of them.
Result<MoveReport> Move::end_early(std::size_t moves_to) {
  const auto is_copied = is_open(*shards_[moves_to]);
  if (!is_copied) return fail(is_copied.error());
  if (*is_copied) {
    return fail(Errc::conflict, "the rows are copied already; give the command for " +
                                    shard_name(moves_to) + " again");
  }
  auto opened = source().committer().write_and_wait(
      [&](Writer& writer) { open_partition(writer.connection(), partition_.number); });
  if (!opened) return fail(opened.error());
  auto ended = shards_.front()->committer().write_and_wait([&](Writer& writer) {
    writer.connection().run("UPDATE partition_shards SET moves_to = NULL WHERE log_partition = :p",
                            partition_.number);
    announce(writer.connection(), layout_topic);
  });
  if (!ended) return fail(ended.error());
  if (auto taken = layout_.read(); !taken) return fail(taken.error());
  if (auto said = told(MoveStep::ended); !said) return fail(said.error());
  return report_;
}

// A move that can't go on must not begin: its sessions could not be changed meanwhile.
Result<void> Move::reach() {
  for (const auto shard : {report_.from, to_}) {
    const auto answer = is_open(*shards_[shard]);
    if (answer) continue;
    return fail(answer.error().code, "the move has not begun, since the server of " +
                                         shard_name(shard) +
                                         " can't be reached: " + answer.error().message);
  }
  return {};
}

Result<void> Move::announce_move() {
  auto written = shards_.front()->committer().write_and_wait([&](Writer& writer) {
    writer.connection().run("UPDATE partition_shards SET moves_to = :t WHERE log_partition = :p",
                            to_, partition_.number);
    announce(writer.connection(), layout_topic);
  });
  if (!written) return written;
  if (auto taken = layout_.read(); !taken) return taken;
  return told(MoveStep::announced);
}

Result<void> Move::wait_for_owner() {
  const auto until = std::chrono::steady_clock::now() + settings_.drain;
  for (;;) {
    const auto run = read(source().database(), [&](Connection& connection) {
      return connection
          .value<std::string>("SELECT run FROM partition_runs WHERE log_partition = :p",
                              partition_.number)
          .value_or("");
    });
    if (!run) return fail(run.error());
    if (run->empty()) return told(MoveStep::given_up);
    const auto left = until - std::chrono::steady_clock::now();
    if (left.count() <= 0) return told(MoveStep::not_given_up);
    std::this_thread::sleep_for(std::min<decltype(left)>(left, between_looks));
  }
}

Result<void> Move::close() {
  auto written = source().committer().write_and_wait([&](Writer& writer) {
    close_partition(writer.connection(), partition_.number);
    keep_numbers(writer.connection());
  });
  if (!written) return written;
  return told(MoveStep::closed);
}

Result<void> Move::clear() {
  const auto removed = remove_rows(target(), partition_, RowsToRemove::all);
  if (!removed) return fail(removed.error());
  return told(MoveStep::cleared, *removed);
}

Result<void> Move::copy() {
  const auto from = connect(source(), Connection::Role::reader);
  if (!from) return fail(from.error());
  const auto to = connect(target(), Connection::Role::writer);
  if (!to) return fail(to.error());
  auto copied = with_errors(**to, [&](Connection& connection) {
    (*from)->begin_snapshot();
    connection.begin_aside();
    for (Connection* each : {from->get(), &connection}) each->run(sql_of_patience);
    const auto rows = copy_rows(**from, connection, partition_);
    open_partition(connection, partition_.number);
    connection.commit();
    (*from)->rollback();
    return rows;
  });
  if (!copied) return fail(copied.error());
  report_.copied = *copied;
  return told(MoveStep::copied, *copied);
}

// The old server's services may run as soon as the partition has an owner again.
Result<void> Move::switch_over() {
  const auto to_do = remove_rows(source(), partition_, RowsToRemove::to_do);
  if (!to_do) return fail(to_do.error());
  report_.removed += *to_do;
  auto written = shards_.front()->committer().write_and_wait([&](Writer& writer) {
    writer.connection().run(
        "UPDATE partition_shards SET shard = :t, moves_to = NULL WHERE log_partition = :p", to_,
        partition_.number);
    announce(writer.connection(), layout_topic);
  });
  if (!written) return written;
  if (auto taken = layout_.read(); !taken) return taken;
  if (auto said = told(MoveStep::switched); !said) return said;
  std::this_thread::sleep_for(settings_.readers);
  return {};
}

Result<void> Move::remove() {
  const auto removed = remove_rows(source(), partition_, RowsToRemove::all);
  if (!removed) return fail(removed.error());
  report_.removed += *removed;
  return told(MoveStep::removed, report_.removed);
}

}  // namespace

Result<MoveReport> move_partition(const Shards& shards, Layout& layout, std::int32_t partition,
                                  std::size_t to, const MoveSettings& settings) {
  if (shards.size() == 1) {
    return fail(Errc::conflict,
                "the store has one server; list further ones in store.postgres.shards, and restart "
                "all daemons with that list");
  }
  const auto lock = MoveLock::take(shards);
  if (!lock) return fail(lock.error());
  if (*lock == nullptr) {
    return fail(Errc::conflict, "another partition is being moved; wait until that has ended");
  }
  if (auto known = layout.read(); !known) return fail(known.error());
  const auto count = static_cast<std::int32_t>(layout.places().size());
  if (count == 0) {
    return fail(Errc::conflict,
                "the partitions have no places yet; start a daemon with these settings first");
  }
  if (partition < 0 || partition >= count) {
    return fail(Errc::invalid_argument, "there is no partition " + std::to_string(partition) +
                                            "; the log has 0 to " + std::to_string(count - 1));
  }
  if (to >= shards.size()) {
    return fail(Errc::invalid_argument, "there is no " + shard_name(to) +
                                            "; the store has the shards 0 to " +
                                            std::to_string(shards.size() - 1));
  }
  // A server that is new has no list of open partitions yet, and would accept all commits.
  if (auto settled = layout.settle(count); !settled) return fail(settled.error());
  return Move(shards, layout, {partition, count}, to, settings).run();
}

Result<std::int64_t> remove_leftovers(const Shards& shards, Layout& layout) {
  std::vector<std::pair<std::size_t, std::int32_t>> found;  // shards and partitions
  for (std::size_t shard = 0; shards.size() > 1 && shard < shards.size(); ++shard) {
    const auto partitions = read(shards[shard]->database(), partition_leftovers);
    if (!partitions) return fail(partitions.error());
    for (const auto partition : *partitions) found.emplace_back(shard, partition);
  }
  if (found.empty()) return 0;
  const auto lock = MoveLock::take(shards);
  if (!lock) return fail(lock.error());
  if (*lock == nullptr) return 0;
  // No move begins from here on.
  if (auto known = layout.read(); !known) return fail(known.error());
  const auto count = static_cast<std::int32_t>(layout.places().size());
  std::int64_t rows = 0;
  for (const auto& each : found) {
    const auto shard = each.first;
    const auto partition = each.second;
    if (layout.is_moving(partition) || layout.shard_of(partition) == shard) continue;
    auto removed = remove_rows(*shards[shard], {partition, count}, RowsToRemove::all);
    if (!removed) return removed;
    rows += *removed;
  }
  return rows;
}

}  // namespace conversed::store
