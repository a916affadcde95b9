#include "store/secrets/key_rotation.h"

#include <sodium.h>

#include <string>
#include <vector>

#include "store/runtime/fault_points.h"
#include "store/secrets/sealer.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr std::int64_t values_a_batch = 64;

// Every column that holds sealed values; an empty text is none.
struct SealedColumn {
  std::string table;
  std::string name;

  // The associated data of the value in the row.
  [[nodiscard]] std::string place_of(const std::string& id) const {
    return table + '/' + name + '/' + id;
  }
};
const SealedColumn columns[] = {{"connections", "fields"},
                                {"connections", "source"},
                                {"endpoints", "webhook_secret"},
                                {"endpoints", "previous_webhook_secret"},
                                {"endpoints", "webhook_secret_source"},
                                {"proactive_tenants", "secret"}};

struct SealedValue {
  std::string id;
  std::string sealed;
};

// Values of the rows behind an id, in the order of ids.
std::vector<SealedValue> page_of(Connection& connection, const SealedColumn& column,
                                 const std::string& after) {
  return connection.all(row_of<&SealedValue::id, &SealedValue::sealed>,
                        "SELECT id, " + column.name + " FROM " + column.table +
                            " WHERE id > :a AND " + column.name + " <> '' ORDER BY id LIMIT :l",
                        after, values_a_batch);
}

struct Batch {
  std::string last_id;  // empty: there was nothing left
  std::int64_t resealed = 0;
  std::int64_t unreadable = 0;
};

Batch reseal(Connection& connection, const SealedColumn& column, const std::string& after,
             const Sealer& sealer) {
  Batch batch;
  for (auto& [id, sealed] : page_of(connection, column, after)) {
    batch.last_id = id;
    if (sealer.is_current(sealed)) continue;
    const auto place = column.place_of(id);
    auto value = sealer.open_sealed(place, sealed);
    if (!value) {
      ++batch.unreadable;
      continue;
    }
    connection.run("UPDATE " + column.table + " SET " + column.name + " = :v WHERE id = :i",
                   sealer.seal(place, *value), id);
    sodium_memzero(value->data(), value->size());
    ++batch.resealed;
  }
  return batch;
}

}  // namespace

Result<KeyRotation::Report> KeyRotation::rotate() {
  const std::unique_lock running(running_, std::try_to_lock);
  if (!running) {
    return fail(Errc::conflict,
                "the master key is being rotated already, or a backup is being made; try again "
                "when that is done");
  }
  if (auto added = sealer_.add_key(); !added) return fail(added.error());
  settled_ = false;
  model::fault_point("keys.after_add");
  return reseal_all();
}

Result<KeyRotation::Report> KeyRotation::resume() {
  const std::unique_lock running(running_);
  if (!is_unfinished()) return Report{.key = sealer_.newest()};
  return reseal_all();
}

bool KeyRotation::is_unfinished() const {
  return sealer_.keys_in_file() > 1;
}

Result<std::unique_lock<std::mutex>> KeyRotation::hold() {
  std::unique_lock held(running_, std::try_to_lock);
  if (!held || (is_unfinished() && !settled_)) {
    return fail(Errc::conflict,
                "the master key is being rotated; try again when all secrets are sealed anew");
  }
  return held;
}

// Only the Committer's thread seals values, with the newest key since before the first batch. So no
// value with an old key can appear in rows that a batch has passed.
Result<KeyRotation::Report> KeyRotation::reseal_all() {
  Report report{.key = sealer_.newest()};
  std::int64_t unreadable = 0;
  for (const auto& column : columns) {
    Batch batch;
    do {
      const auto work = [&, after = batch.last_id](Writer& writer) -> Result<void> {
        batch = reseal(writer.connection(), column, after, sealer_);
        return {};
      };
      if (auto written = committer_.write_and_wait(work); !written) return fail(written.error());
      model::fault_point("keys.after_batch");
      report.resealed += batch.resealed;
      unreadable += batch.unreadable;
    } while (!batch.last_id.empty());
  }
  settled_ = true;
  // Each start compares its keys with this row.
  for (const auto& shard : shards_) {
    auto noted = shard->committer().write_and_wait([&](Writer& writer) {
      writer.connection().run("UPDATE meta SET value = :v WHERE name = 'key'",
                              sealer_.fingerprint());
    });
    if (!noted) return fail(noted.error());
  }
  if (unreadable > 0) {
    return fail(Errc::internal, std::to_string(unreadable) +
                                    " sealed values can't be opened, so the old keys are kept; "
                                    "import the Connections and webhooks again");
  }
  auto dropped = sealer_.drop_old_keys();
  if (!dropped) return fail(dropped.error());
  report.kept = *std::move(dropped);
  return report;
}

Result<KeyRotation::Check> KeyRotation::check() const {
  return read(database_, [&](Connection& connection) -> Result<Check> {
    Check check;
    for (const auto& column : columns) {
      std::string after;
      for (auto page = page_of(connection, column, after); !page.empty();
           page = page_of(connection, column, after)) {
        for (const auto& [id, sealed] : page) {
          auto value = sealer_.open_sealed(column.place_of(id), sealed);
          ++(value ? check.opened : check.unreadable);
          if (value) sodium_memzero(value->data(), value->size());
        }
        after = page.back().id;
      }
    }
    return check;
  });
}

}  // namespace conversed::store
