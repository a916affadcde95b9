#include "daemon/data/move.h"

#include <algorithm>
#include <array>
#include <memory>
#include <vector>

#include "daemon/data/storage.h"
#include "store/shards/move.h"
#include "store/store.h"
#include "store/text/quantity.h"

namespace conversed::daemon {
namespace {

using model::Errc;
using model::fail;
using model::Result;
using store::MoveStep;

// Daemons read the layout again within a second.
constexpr std::chrono::milliseconds time_of_readers{3'000};
constexpr std::size_t readers = 2;  // daemons need the server's other connections

Result<std::unique_ptr<store::Store>> open_shards(const config::Settings& settings,
                                                  const model::Clock& clock) {
  if (settings.store.driver != config::StoreDriver::postgres ||
      settings.store.postgres.shards.empty()) {
    return fail(Errc::conflict,
                "the store has one server; list further ones in store.postgres.shards and restart "
                "all daemons with that list");
  }
  auto opening = store_settings(settings, store::PostgresSettings::Place::shared);
  opening.readers = readers;
  auto opened = store::Store::open(opening, clock);
  if (!opened) {
    return fail(opened.error().code,
                "all servers of the store have to be reachable: " + opened.error().message);
  }
  return opened;
}

// Columns of equal width, with two spaces between them.
std::string table_of(const std::vector<std::vector<std::string>>& rows) {
  std::vector<std::size_t> widths(rows.front().size());
  for (const auto& row : rows) {
    for (std::size_t i = 0; i < row.size(); ++i) widths[i] = std::max(widths[i], row[i].size());
  }
  std::string text;
  for (const auto& row : rows) {
    std::string line;
    for (std::size_t i = 0; i < row.size(); ++i) {
      line += row[i] + std::string(widths[i] + 2 - row[i].size(), ' ');
    }
    line.erase(line.find_last_not_of(' ') + 1);
    text += line + '\n';
  }
  return text;
}

// The number of sessions, read within bounds. Unknown while the server is away.
std::string sessions_in(store::Shard& shard) {
  const auto count = shard.sessions().count();
  if (!count) return "unknown";
  return std::to_string(*count) + (*count == store::most_counted ? " or more" : "");
}

std::string line_of(MoveStep step, std::int64_t rows, const PartitionMove& move) {
  const auto partition = "partition " + std::to_string(move.partition);
  const auto target = "shard " + std::to_string(move.to);
  switch (step) {
    case MoveStep::announced:
      return "The daemons give up " + partition + ". Its events wait until the move is done.";
    case MoveStep::given_up:
      return "No daemon runs events of " + partition + ".";
    case MoveStep::not_given_up:
      return "Its owner has not given it up in " + text::duration_text(move.drain) +
             ". Its commits are refused from now on.";
    case MoveStep::closed:
      return "The old server takes no changes of its sessions any more.";
    case MoveStep::cleared:
      return "Deleted " + text::counted(rows, "row") + " that an earlier move left on " + target +
             ".";
    case MoveStep::copied:
      return "Copied " + text::counted(rows, "row") + " to " + target + ".";
    case MoveStep::switched:
      return "The daemons take up " + partition + " again, from " + target + ".";
    case MoveStep::removed:
      return "Deleted " + text::counted(rows, "row") + " on the old server.";
    case MoveStep::ended:
      return "The move is ended. The daemons take up " + partition + " again, from " + target + ".";
  }
  return {};
}

}  // namespace

Result<std::string> describe_shards(const config::Settings& settings, const model::Clock& clock) {
  const auto opened = open_shards(settings, clock);
  if (!opened) return fail(opened.error());
  const auto& store = **opened;
  const auto places = (*opened)->layout().places();
  if (places.empty()) {
    return fail(Errc::conflict,
                "the partitions have no places yet; start a daemon with these settings first");
  }
  std::vector<std::vector<std::string>> partitions{{"PARTITION", "SHARD", "MOVING TO"}};
  std::vector<std::size_t> counts(store.shards().size());
  for (std::size_t number = 0; number < places.size(); ++number) {
    const auto& place = places[number];
    ++counts[place.shard];
    partitions.push_back({std::to_string(number), std::to_string(place.shard),
                          place.moves_to ? std::to_string(*place.moves_to) : ""});
  }
  std::vector<std::vector<std::string>> shards{{"SHARD", "PARTITIONS", "SESSIONS"}};
  for (std::size_t number = 0; number < counts.size(); ++number) {
    shards.push_back({std::to_string(number), std::to_string(counts[number]),
                      sessions_in(*store.shards()[number])});
  }
  return table_of(partitions) + '\n' + table_of(shards);
}

Result<void> move_partition(const config::Settings& settings, const PartitionMove& move,
                            const model::Clock& clock,
                            const std::function<void(std::string_view)>& say) {
  const auto opened = open_shards(settings, clock);
  if (!opened) return fail(opened.error());
  const auto done = [&](MoveStep step, std::int64_t rows) {
    if (step != MoveStep::cleared || rows > 0) say(line_of(step, rows, move));
    return true;
  };
  const auto moved =
      store::move_partition((*opened)->shards(), (*opened)->layout(), move.partition, move.to,
                            {.drain = move.drain, .readers = time_of_readers, .done = done});
  if (!moved) return fail(moved.error());
  return {};
}

}  // namespace conversed::daemon
