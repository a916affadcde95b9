#include "store/shards/removed_projects.h"

#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "store/commit/receipt_blocks.h"
#include "store/commit/row_writes.h"
#include "store/conversation/rows_of_keys_sql.h"
#include "store/idempotency/append_keys.h"
#include "store/model/session_keys.h"
#include "store/sql/read.h"

namespace conversed::store {
namespace {

struct Removed {
  std::string id;
  model::Timestamp at{};
};

struct SessionRow {
  std::int64_t id = 0;
  std::string key;
  model::Position position;
  std::string last_receipt;
};

std::optional<SessionRow> session_behind(Connection& connection, const std::string& project_id,
                                         std::int64_t id) {
  return connection.first(
      [](std::int64_t row, std::string key, std::int64_t epoch, std::int32_t partition,
         std::int64_t offset, std::string last_receipt) {
        return SessionRow{row,
                          std::move(key),
                          {.epoch = epoch, .partition = partition, .offset = offset},
                          std::move(last_receipt)};
      },
      "SELECT id, key, position_epoch, position_partition, position_offset, last_receipt"
      " FROM sessions WHERE project_id = :p AND id > :i ORDER BY id LIMIT 1",
      project_id, id);
}

// The work of one transaction.
struct Batch {
  std::int64_t after = 0;  // the last session that is done
  bool has_more = true;
  std::int64_t left = rows_a_batch;  // rows that the transaction may still delete
  RemovedProjects::Erased erased{};

  void count(std::int64_t rows) {
    erased.rows += rows;
    left -= rows;
  }
};

// Deletes the session's receipts, newest first. False: the session has more. A Turn that has read
// the session is then built again.
bool remove_receipts(Connection& connection, SessionRow& session, Batch& batch) {
  while (batch.left > 0) {
    auto previous = remove_receipt(connection, session.last_receipt, session.id);
    if (!previous) return true;
    batch.count(1);
    session.last_receipt = *std::move(previous);
  }
  connection.run("UPDATE sessions SET last_receipt = :r, version = version + 1 WHERE id = :i",
                 session.last_receipt, session.id);
  return false;
}

// False: the session stays, because it has more rows than the batch takes. The limits of inboxes
// and Flows bound the other rows.
bool remove_session(Writer& writer, SessionRow session, Batch& batch) {
  Connection& connection = writer.connection();
  if (!remove_receipts(connection, session, batch)) return false;
  batch.count(connection.run_counted(
      "DELETE FROM deliveries WHERE (session, seq) IN (SELECT session, seq FROM deliveries"
      " WHERE session = :s LIMIT :l)",
      session.id, batch.left));
  if (batch.left <= 0) return false;
  batch.count(connection.run_counted(
      "DELETE FROM outputs WHERE id IN (SELECT id FROM outputs WHERE session = :s LIMIT :l)",
      session.id, batch.left));
  if (batch.left <= 0) return false;
  end_inputs(connection, session.id, session.key, writer.timer_now());
  batch.count(delete_session(connection, session.id) + 1);
  ++batch.erased.sessions;
  return true;
}

// Whether the log may have Idempotency-Keys of the project.
Result<bool> may_have_keys(Committer& committer, const std::string& project_id,
                           const model::KeyRange& range) {
  return committer.write_and_wait([&](Writer& writer) {
    Connection& connection = writer.connection();
    return connection.exists("SELECT 1 FROM sessions WHERE project_id = :p", project_id) ||
           connection.exists("SELECT 1 FROM answers WHERE session_key >= :f AND session_key < :t",
                             range.from, range.to) ||
           connection.exists(
               "SELECT 1 FROM keyed_answers WHERE session_key >= :f AND session_key < :t",
               range.from, range.to);
  });
}

// Deletes batches by a statement whose last argument is the size of a batch.
template <typename... In>
Result<void> delete_in_batches(Committer& committer, const RemovedProjects::Hooks& hooks,
                               RemovedProjects::Erased& erased, std::string_view sql,
                               const In&... in) {
  for (std::int64_t deleted = rows_a_batch; deleted == rows_a_batch && !hooks.stopped();) {
    const auto written = write_counted(committer, sql, in..., rows_a_batch);
    if (!written) return fail(written.error());
    deleted = *written;
    erased.rows += deleted;
  }
  return {};
}

}  // namespace

Result<RemovedProjects::Erased> RemovedProjects::erase(const Hooks& hooks, model::Timestamp now) {
  Committer& first = shards_.front()->committer();
  const auto projects = first.write_and_wait([](Writer& writer) {
    return writer.connection().all(row_of<&Removed::id, &Removed::at>,
                                   "SELECT id, removed_at FROM removed_projects ORDER BY id");
  });
  if (!projects) return fail(projects.error());
  std::map<std::string, Erased> erased;
  Result<void> done;
  bool stopped = false;
  // A shard that fails does not hold up the others.
  for (std::size_t at = 0; at < shards_.size() && !stopped; ++at) {
    for (const auto& project : *projects) {
      auto gone = erase_project(*shards_[at], project.id, hooks, erased[project.id]);
      if (!gone) done = gone;
      stopped = hooks.stopped();
      if (!gone || stopped) break;
    }
  }
  if (!done) return fail(done.error());
  Erased all;
  for (const auto& project : *projects) {
    const Erased& of_project = erased[project.id];
    all.sessions += of_project.sessions;
    all.rows += of_project.rows;
    if (of_project != Erased() || now - project.at < lifetime || stopped) continue;
    if (auto forgotten = forget(project.id); !forgotten) return fail(forgotten.error());
  }
  return all;
}

Result<void> RemovedProjects::erase_project(Shard& shard, const std::string& id, const Hooks& hooks,
                                            Erased& erased) {
  Committer& committer = shard.committer();
  const auto range = model::keys_of_project(id);
  // Frees the keys first: after a crash in between, they are freed again.
  if (hooks.forget_keys) {
    const auto wanted = may_have_keys(committer, id, range);
    if (!wanted) return fail(wanted.error());
    if (*wanted) {
      if (auto freed = hooks.forget_keys(range); !freed) return freed;
    }
  }
  if (auto gone = erase_sessions(committer, id, hooks, erased); !gone) return gone;
  for (const auto sql : {sql_to_delete_append_keys, sql_to_delete_keyed_answers,
                         sql_to_delete_dead_letters, sql_to_delete_answers}) {
    auto gone = delete_in_batches(committer, hooks, erased, sql, range.from, range.to);
    if (!gone) return gone;
  }
  auto gone = delete_in_batches(
      committer, hooks, erased,
      "DELETE FROM profiles WHERE (project_id, user_id) IN (SELECT project_id, user_id"
      " FROM profiles WHERE project_id = :p LIMIT :l)",
      id);
  if (!gone) return gone;
  // Another shard may have got a schedule while the first one deleted the project.
  gone = delete_in_batches(committer, hooks, erased,
                           "DELETE FROM schedules WHERE id IN (SELECT id FROM schedules"
                           " WHERE project_id = :p LIMIT :l)",
                           id);
  if (!gone) return gone;
  return delete_in_batches(committer, hooks, erased,
                           "DELETE FROM jobs WHERE id IN (SELECT id FROM jobs WHERE project_id = :p"
                           " AND state IN ('done', 'cancelled', 'error') LIMIT :l)",
                           id);
}

Result<void> RemovedProjects::erase_sessions(Committer& committer, const std::string& project_id,
                                             const Hooks& hooks, Erased& erased) {
  for (Batch last; last.has_more && !hooks.stopped();) {
    const auto written = committer.write_and_wait([&](Writer& writer) {
      Batch batch{.after = last.after};
      while (batch.has_more && batch.left > 0) {
        auto session = session_behind(writer.connection(), project_id, batch.after);
        batch.has_more = session.has_value();
        if (!session) break;
        const auto id = session->id;
        // A session that is being moved is erased at its new place.
        const bool is_away = !writer.check_place(session->key);
        if (is_away || (session->position.epoch != 0 && !hooks.finished(session->position))) {
          --batch.left;
        } else if (!remove_session(writer, *std::move(session), batch)) {
          break;
        }
        batch.after = id;
      }
      return batch;
    });
    if (!written) return fail(written.error());
    last = *written;
    erased.sessions += last.erased.sessions;
    erased.rows += last.erased.rows;
  }
  return {};
}

// Forgets the project unless a shard still has sessions of it.
Result<void> RemovedProjects::forget(const std::string& id) {
  constexpr std::string_view a_session = "SELECT 1 FROM sessions WHERE project_id = :p";
  for (std::size_t at = 1; at < shards_.size(); ++at) {
    const auto left = read_exists(shards_[at]->database(), a_session, id);
    if (!left) return fail(left.error());
    if (*left) return {};
  }
  return shards_.front()->committer().write_and_wait([&](Writer& writer) {
    Connection& connection = writer.connection();
    if (connection.exists(a_session, id)) return;
    connection.run("DELETE FROM removed_endpoints WHERE project_id = :p", id);
    connection.run("DELETE FROM removed_projects WHERE id = :i", id);
  });
}

}  // namespace conversed::store
