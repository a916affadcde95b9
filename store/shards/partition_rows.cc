#include "store/shards/partition_rows.h"

#include <algorithm>
#include <array>
#include <iterator>
#include <set>
#include <span>
#include <string>
#include <unordered_set>
#include <utility>
#include <vector>

#include "store/cluster/notifications.h"
#include "store/commit/partition_gate.h"
#include "store/commit/receipt_blocks.h"
#include "store/commit/row_writes.h"
#include "store/sql/read.h"

namespace conversed::store {
namespace {

// Children of sessions, by their column `session`.
constexpr std::array<std::string_view, 3> children_to_do{"deliveries", "pending_calls",
                                                         "follow_ups"};
constexpr std::array<std::string_view, 2> other_children{"inbox", "outputs"};

// Tables whose rows have the key of a session or of a user.
struct KeyedTable {
  std::string_view name;
  std::string_view key;         // an expression; empty: the row is of no session
  std::string_view condition;   // the row has one of the keys in the JSON array `:k`
  std::string_view conflict{};  // of the INSERT: the row may be on the target already
};
constexpr KeyedTable schedules{"schedules", "key", "key IN (SELECT value FROM json_each(:k))"};
constexpr std::array<KeyedTable, 4> other_keyed_tables{
    {{"dead_letters", "key", "key IN (SELECT value FROM json_each(:k))"},
     // The target may have the message as failed.
     {"answers", "session_key", "session_key IN (SELECT value FROM json_each(:k))",
      " ON CONFLICT (input_id) DO UPDATE SET session_key = excluded.session_key,"
      " body = excluded.body, expires_at = excluded.expires_at"},
     // The same Idempotency-Key may have been used in both shards.
     {"keyed_answers", "session_key", "session_key IN (SELECT value FROM json_each(:k))",
      " ON CONFLICT DO NOTHING"},
     {"profiles", "project_id || chr(31) || user_id",
      "(project_id, user_id) IN (SELECT split_part(value, chr(31), 1),"
      " split_part(value, chr(31), 2) FROM json_each(:k))"}}};

constexpr std::array<std::string_view, 3> tables_of_partitions{"attempts", "log_positions",
                                                               "partition_runs"};

// Rows of these tables may be on the target already.
constexpr std::string_view or_nothing = " ON CONFLICT DO NOTHING";

constexpr std::size_t rows_at_once = 500;
constexpr std::int64_t bytes_at_once = 1 << 20;
constexpr std::int64_t pages_at_once = 512;        // of the database, 4 MB
constexpr std::int64_t last_page = 4'294'967'294;  // of any table, which is never reached
constexpr std::int64_t blocks_at_once = 64;        // of receipts

std::string sql_of(std::string_view before, std::string_view table, std::string_view behind) {
  return std::string(before).append(table).append(behind);
}

// The elements, some at a time.
template <typename T, typename Use>
void in_parts(const std::vector<T>& all, const Use& use) {
  for (std::size_t at = 0; at < all.size(); at += rows_at_once) {
    use(std::span(all).subspan(at, std::min(rows_at_once, all.size() - at)));
  }
}

template <typename T>
std::string json_list(std::span<const T> values) {
  return nlohmann::json(std::vector<T>(values.begin(), values.end())).dump();
}

// An array of PostgreSQL.
std::string array_of(std::span<const std::string> places) {
  std::string text;
  for (const auto& place : places) text += (text.empty() ? "{\"" : ",\"") + place + '"';
  return text + '}';
}

// Calls `part(begin, end)` for parts of the table, which are ranges of its rows' places (`ctid`).
// Within a snapshot the parts have all rows, each once. A table that Citus keeps on another server
// is one part: its size is not known here.
template <typename Part>
void each_part(Connection& connection, std::string_view table, const Part& part) {
  const auto pages = connection.number(
      "SELECT pg_relation_size(CAST(:t AS regclass))"
      " / CAST(current_setting('block_size') AS BIGINT)",
      table);
  const auto place = [](std::int64_t page) { return '(' + std::to_string(page) + ",0)"; };
  std::int64_t page = 0;
  for (; page + pages_at_once < pages; page += pages_at_once) {
    part(place(page), place(page + pages_at_once));
  }
  part(place(page), place(last_page));
}

// Calls `row(place, key)` for each row of the table that has a key.
template <typename Row>
void each_key(Connection& connection, const KeyedTable& table, const Row& row) {
  const auto sql = sql_of("SELECT CAST(ctid AS text), ", table.key, " FROM ") +
                   std::string(table.name) +
                   " WHERE ctid >= CAST(:f AS tid) AND ctid < CAST(:t AS tid)";
  each_part(connection, table.name, [&](const std::string& begin, const std::string& end) {
    connection.rows([&](std::string place, const std::string& key) { row(std::move(place), key); },
                    sql, begin, end);
  });
}

struct SessionPlace {
  std::string place;
  std::int64_t id = 0;
};

// Calls `use` with the sessions of the partition, those of one part of the table at a time.
template <typename Use>
void each_sessions(Connection& connection, const PartitionOfLog& partition, const Use& use) {
  each_part(connection, "sessions", [&](const std::string& begin, const std::string& end) {
    std::vector<SessionPlace> found;
    connection.rows(
        [&](std::string place, std::int64_t id, const std::string& key) {
          if (partition.has(key)) found.push_back({std::move(place), id});
        },
        "SELECT CAST(ctid AS text), id, key FROM sessions"
        " WHERE ctid >= CAST(:f AS tid) AND ctid < CAST(:t AS tid)",
        begin, end);
    if (!found.empty()) use(found);
  });
}

struct StoredBlock {
  std::int64_t n = 0;
  std::string steps;
};

// Calls `use` with all blocks of receipts, 64 at a time.
template <typename Use>
void each_blocks(Connection& connection, const Use& use) {
  auto behind = connection.number("SELECT COALESCE(MIN(n), 0) - 1 FROM receipts");
  for (bool more = true; more;) {
    auto blocks = connection.all(row_of<&StoredBlock::n, &StoredBlock::steps>,
                                 "SELECT n, steps FROM receipts WHERE n > :b ORDER BY n LIMIT :l",
                                 behind, blocks_at_once);
    more = std::ssize(blocks) == blocks_at_once;
    if (blocks.empty()) return;
    behind = blocks.back().n;
    use(blocks);
  }
}

class Copy {
 public:
  Copy(Connection& from, Connection& to, const PartitionOfLog& partition)
      : from_(from), to_(to), partition_(partition) {}

  std::int64_t run() {
    each_sessions(from_, partition_, [&](const std::vector<SessionPlace>& sessions) {
      std::vector<std::string> places;
      places.reserve(sessions.size());
      for (const auto& each : sessions) places.push_back(each.place);
      copy("sessions", places);
      copy_children(sessions);
    });
    if (!sessions_.empty()) copy_receipts();
    copy(schedules);
    for (const auto& table : other_keyed_tables) copy(table);
    for (const std::string_view table : {"claims", "cuts"}) copy_all(table, "");
    copy_all("answers", "session_key = ''");
    for (const auto table : tables_of_partitions) {
      copy(table, from_.values<std::string>(
                      sql_of("SELECT CAST(ctid AS text) FROM ", table, " WHERE log_partition = :p"),
                      partition_.number));
    }
    announce(to_, timers_topic);
    to_.settle();
    return rows_;
  }

 private:
  void copy_children(const std::vector<SessionPlace>& sessions) {
    std::vector<std::int64_t> ids;
    ids.reserve(sessions.size());
    for (const auto& each : sessions) ids.push_back(each.id);
    sessions_.insert(ids.begin(), ids.end());
    in_parts(ids, [&](std::span<const std::int64_t> part) {
      const auto list = json_list(part);
      const auto copy_of = [&](std::string_view table) {
        copy(table,
             from_.values<std::string>(
                 sql_of("SELECT CAST(ctid AS text) FROM ", table,
                        " WHERE session IN (SELECT CAST(value AS BIGINT) FROM json_each(:s))"),
                 list));
      };
      std::ranges::for_each(children_to_do, copy_of);
      std::ranges::for_each(other_children, copy_of);
    });
  }

  // Reads each block once. The chain of a session would read a block for each of its receipts.
  void copy_receipts() {
    const auto is_moved = [&](std::int64_t session) { return sessions_.contains(session); };
    each_blocks(from_, [&](std::vector<StoredBlock>& blocks) {
      std::vector<std::string> texts;
      texts.reserve(blocks.size());
      for (auto& block : blocks) texts.push_back(std::move(block.steps));
      const auto events = store::copy_receipts(from_, to_, texts, is_moved);
      rows_ += std::ssize(events);
      in_parts(events, [&](std::span<const std::string> part) {
        copy("later_steps",
             from_.values<std::string>("SELECT CAST(ctid AS text) FROM later_steps"
                                       " WHERE event_id IN (SELECT value FROM json_each(:e))",
                                       json_list(part)),
             or_nothing);  // an event may be in two blocks
      });
    });
  }

  void copy(const KeyedTable& table) {
    std::vector<std::string> places;
    each_key(from_, table, [&](std::string place, const std::string& key) {
      if (!key.empty() && partition_.has(key)) places.push_back(std::move(place));
    });
    copy(table.name, places, table.conflict);
  }

  // Copies all rows with this condition.
  void copy_all(std::string_view table, std::string_view condition) {
    auto sql = sql_of("SELECT CAST(ctid AS text) FROM ", table,
                      " WHERE ctid >= CAST(:f AS tid) AND ctid < CAST(:t AS tid)");
    if (!condition.empty()) sql.append(" AND ").append(condition);
    each_part(from_, table, [&](const std::string& begin, const std::string& end) {
      copy(table, from_.values<std::string>(sql, begin, end), or_nothing);
    });
  }

  // Copies the rows at these places, in batches of `rows_at_once` and about `bytes_at_once`.
  void copy(std::string_view table, const std::vector<std::string>& places,
            std::string_view conflict = "") {
    const auto sql_of_sizes =
        sql_of("SELECT CAST(ctid AS text), octet_length(CAST(row_to_json(t) AS text)) FROM ", table,
               " t WHERE ctid = ANY(CAST(:c AS tid[]))");
    in_parts(places, [&](std::span<const std::string> part) {
      std::vector<std::string> batch;
      std::int64_t bytes = 0;
      const auto sizes = from_.all(
          [](std::string place, std::int64_t size) { return std::pair(std::move(place), size); },
          sql_of_sizes, array_of(part));
      for (const auto& [place, size] : sizes) {
        if (!batch.empty() && bytes + size > bytes_at_once) {
          copy_batch(table, std::exchange(batch, {}), conflict);
          bytes = 0;
        }
        batch.push_back(place);
        bytes += size;
      }
      if (!batch.empty()) copy_batch(table, batch, conflict);
    });
  }

  // JSON keeps the texts as the server has them, and writes integers in full.
  void copy_batch(std::string_view table, const std::vector<std::string>& places,
                  std::string_view conflict) {
    const auto rows =
        from_.value<std::string>(sql_of("SELECT CAST(json_agg(row_to_json(t)) AS text) FROM ",
                                        table, " t WHERE ctid = ANY(CAST(:c AS tid[]))"),
                                 array_of(places));
    const auto name = std::string(table);
    const auto copied =
        to_.run_counted(sql_of("INSERT INTO ", name,
                               " SELECT * FROM json_populate_recordset(CAST(NULL AS " + name +
                                   "), CAST(:r AS json))") +
                            std::string(conflict),
                        rows.value_or("[]"));
    if (conflict.empty() && copied != std::ssize(places)) {
      throw SqlError(SqlError::Kind::failed, "(a row was not copied)", SqlError::Effect::none);
    }
    rows_ += copied;
  }

  Connection& from_;
  Connection& to_;
  const PartitionOfLog partition_;
  std::unordered_set<std::int64_t> sessions_;
  std::int64_t rows_ = 0;
};

class Removal {
 public:
  Removal(Shard& shard, const PartitionOfLog& partition) : shard_(shard), partition_(partition) {}

  Result<std::int64_t> run(RowsToRemove which) {
    auto sessions = find_sessions();
    if (!sessions) return fail(sessions.error());
    if (auto gone = remove_children(*sessions, children_to_do); !gone) return fail(gone.error());
    if (auto gone = remove(schedules); !gone) return fail(gone.error());
    if (which == RowsToRemove::to_do) return rows_;
    if (auto gone = remove_receipts(*sessions); !gone) return fail(gone.error());
    if (auto gone = remove_children(*sessions, other_children); !gone) return fail(gone.error());
    auto gone = in_parts_of(*sessions, [&](const std::string& list) {
      return remove_batches(
          "DELETE FROM sessions WHERE id IN (SELECT id FROM sessions WHERE id IN"
          " (SELECT CAST(value AS BIGINT) FROM json_each(:s)) LIMIT :l)",
          list);
    });
    if (!gone) return fail(gone.error());
    for (const auto& table : other_keyed_tables) {
      if (gone = remove(table); !gone) return fail(gone.error());
    }
    for (const auto table : tables_of_partitions) {
      gone = remove_batches(delete_some(table, "log_partition = :p"), partition_.number);
      if (!gone) return fail(gone.error());
    }
    gone = shard_.committer().write_and_wait(
        [&](Writer& writer) { forget_leftovers(writer.connection(), partition_.number); });
    if (!gone) return fail(gone.error());
    return rows_;
  }

 private:
  Result<std::vector<std::int64_t>> find_sessions() {
    return read_snapshot(shard_.database(), [&](Connection& connection) {
      std::vector<std::int64_t> ids;
      each_sessions(connection, partition_, [&](const std::vector<SessionPlace>& sessions) {
        for (const auto& each : sessions) ids.push_back(each.id);
      });
      return ids;
    });
  }

  template <typename Use>
  static Result<void> in_parts_of(const std::vector<std::int64_t>& sessions, const Use& use) {
    Result<void> done;
    in_parts(sessions, [&](std::span<const std::int64_t> part) {
      if (done) done = use(json_list(part));
    });
    return done;
  }

  Result<void> remove_children(const std::vector<std::int64_t>& sessions,
                               std::span<const std::string_view> tables) {
    return in_parts_of(sessions, [&](const std::string& list) -> Result<void> {
      for (const auto table : tables) {
        auto gone = remove_batches(
            delete_some(table, "session IN (SELECT CAST(value AS BIGINT) FROM json_each(:s))"),
            list);
        if (!gone) return gone;
      }
      return {};
    });
  }

  Result<void> remove(const KeyedTable& table) {
    auto found = read_snapshot(shard_.database(), [&](Connection& connection) {
      std::set<std::string> keys;
      each_key(connection, table, [&](const std::string&, const std::string& key) {
        if (!key.empty() && partition_.has(key)) keys.insert(key);
      });
      return keys;
    });
    if (!found) return fail(found.error());
    const std::vector<std::string> keys(found->begin(), found->end());
    const auto sql = delete_some(table.name, table.condition);
    Result<void> done;
    in_parts(keys, [&](std::span<const std::string> part) {
      if (done) done = remove_batches(sql, json_list(part));
    });
    return done;
  }

  // Finds the blocks on a reader's connection, so the writer loses no time.
  Result<void> remove_receipts(const std::vector<std::int64_t>& sessions) {
    if (sessions.empty()) return {};
    const std::unordered_set<std::int64_t> wanted(sessions.begin(), sessions.end());
    const auto is_wanted = [&](std::int64_t session) { return wanted.contains(session); };
    auto blocks = read(shard_.database(), [&](Connection& connection) {
      std::vector<std::int64_t> numbers;
      each_blocks(connection, [&](const std::vector<StoredBlock>& blocks) {
        for (const auto& block : blocks) {
          const auto receipts = receipts_in(block.steps);
          const bool is_of_one = std::ranges::any_of(receipts, is_wanted, &ReceiptBegin::session);
          if (is_of_one) numbers.push_back(block.n);
        }
      });
      return numbers;
    });
    if (!blocks) return fail(blocks.error());
    for (auto next = blocks->begin(); next != blocks->end();) {
      auto behind = next;
      auto written = shard_.committer().write_and_wait([&](Writer& writer) {
        std::int64_t removed = 0;
        for (behind = next; behind != blocks->end() && removed < rows_a_batch; ++behind) {
          removed += remove_from_block(writer.connection(), *behind, is_wanted);
        }
        return removed;
      });
      if (!written) return fail(written.error());
      rows_ += *written;
      next = behind;
    }
    return {};
  }

  static std::string delete_some(std::string_view table, std::string_view condition) {
    const std::string name(table);
    return "DELETE FROM " + name + " WHERE ctid = ANY(ARRAY(SELECT ctid FROM " + name + " WHERE " +
           std::string(condition) + " LIMIT :l))";
  }

  // Runs a deletion whose last parameter is the size of a batch, until it finds no more.
  template <typename In>
  Result<void> remove_batches(const std::string& sql, const In& in) {
    for (std::int64_t removed = rows_a_batch; removed == rows_a_batch;) {
      const auto written = write_counted(shard_.committer(), sql, in, rows_a_batch);
      if (!written) return fail(written.error());
      removed = *written;
      rows_ += removed;
    }
    return {};
  }

  Shard& shard_;
  const PartitionOfLog partition_;
  std::int64_t rows_ = 0;
};

}  // namespace

std::int64_t copy_rows(Connection& from, Connection& to, const PartitionOfLog& partition) {
  return Copy(from, to, partition).run();
}

Result<std::int64_t> remove_rows(Shard& shard, const PartitionOfLog& partition,
                                 RowsToRemove which) {
  return Removal(shard, partition).run(which);
}

}  // namespace conversed::store
