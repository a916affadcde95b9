#include "store/shards/layout.h"

#include <algorithm>
#include <string>
#include <utility>

#include "store/commit/partition_gate.h"
#include "store/model/session_keys.h"
#include "store/sql/read.h"

namespace conversed::store {
namespace {

bool has_sessions(Connection& connection) {
  return connection.exists("SELECT 1 FROM sessions LIMIT 1") ||
         connection.exists("SELECT 1 FROM log_positions LIMIT 1");
}

}  // namespace

Layout::Places Layout::stored_places(Connection& connection) {
  return connection.all(row_of<&Place::shard, &Place::moves_to>,
                        "SELECT shard, moves_to FROM partition_shards ORDER BY log_partition");
}

Result<void> Layout::read() {
  const std::lock_guard one_by_one(reading_);
  auto stored = store::read(shards_.front()->database(), stored_places);
  if (!stored) return fail(stored.error());
  return take(*std::move(stored));
}

Result<void> Layout::settle(std::int32_t partitions) {
  if (shards_.size() == 1) return {};
  const std::lock_guard one_by_one(reading_);
  const auto count = static_cast<std::size_t>(partitions);
  auto settled = shards_.front()->committer().write_and_wait([&](Writer& writer) {
    Connection& connection = writer.connection();
    auto places = stored_places(connection);
    if (!places.empty()) return places;
    const std::size_t shards = has_sessions(connection) ? 1 : shards_.size();
    for (std::size_t partition = 0; partition < count; ++partition) {
      places.push_back({partition % shards});
      connection.run("INSERT INTO partition_shards (log_partition, shard) VALUES (:p, :s)",
                     partition, places.back().shard);
    }
    return places;
  });
  if (!settled) return fail(settled.error());
  if (settled->size() != count) {
    return fail(Errc::conflict, "the log has " + std::to_string(count) +
                                    " partitions, and the store's shards were laid out for " +
                                    std::to_string(settled->size()));
  }
  if (auto taken = take(*settled); !taken) return taken;
  return open_partitions(*settled);
}

// A new shard has no list yet.
Result<void> Layout::open_partitions(const Places& places) {
  const auto count = static_cast<std::int32_t>(places.size());
  for (std::size_t number = 0; number < shards_.size(); ++number) {
    // A shard that was used before has a list.
    if (!shards_[number]->healthy()) continue;
    const auto has = store::read(shards_[number]->database(), has_partition_list);
    if (!has) return fail(has.error());
    if (*has) continue;
    auto opened = shards_[number]->committer().write_and_wait([&](Writer& writer) {
      if (has_partition_list(writer.connection())) return;  // another daemon was first
      note_log_partitions(writer.connection(), count);
      for (std::int32_t partition = 0; partition < count; ++partition) {
        if (places[static_cast<std::size_t>(partition)].shard != number) continue;
        open_partition(writer.connection(), partition);
      }
    });
    if (!opened) return opened;
  }
  return {};
}

Result<void> Layout::take(Places places) {
  for (const auto& place : places) {
    const auto highest = std::max(place.shard, place.moves_to.value_or(0));
    if (highest < shards_.size()) continue;
    return fail(Errc::conflict, "sessions are in shard " + std::to_string(highest) +
                                    ", which store.postgres.shards does not list; the store has " +
                                    std::to_string(shards_.size()) +
                                    " servers now, the first one included");
  }
  places_.with([&](Places& kept) { kept = std::move(places); });
  return {};
}

bool Layout::is_settled() const {
  return shards_.size() == 1 || places_.with([](const Places& places) { return !places.empty(); });
}

Layout::Places Layout::places() const {
  return places_.with([](const Places& places) { return places; });
}

bool Layout::is_moving(std::int32_t partition) const {
  return places_.with([&](const Places& places) {
    const auto at = static_cast<std::size_t>(partition);
    return at < places.size() && places[at].moves_to.has_value();
  });
}

std::size_t Layout::shard_of(const model::SessionKey& key) const {
  if (shards_.size() == 1) return 0;
  return places_.with([&](const Places& places) -> std::size_t {
    if (places.empty()) return 0;
    const auto count = static_cast<std::int32_t>(places.size());
    return places[static_cast<std::size_t>(model::partition_of(key.encode(), count))].shard;
  });
}

std::size_t Layout::shard_of(std::int32_t partition) const {
  return places_.with([&](const Places& places) -> std::size_t {
    const auto at = static_cast<std::size_t>(partition);
    return at < places.size() ? places[at].shard : 0;
  });
}

}  // namespace conversed::store
