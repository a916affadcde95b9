// The part of Assets that keeps versions of Flows.
#include "store/assets/flow_versions.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "store/assets/assets.h"
#include "store/assets/lists.h"
#include "store/model/ids.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

// The versions to which busy sessions are pinned: the Endpoint's Flow by id, entered Flows by name.
struct Pins {
  std::set<std::pair<std::string, std::int64_t>> by_id;
  std::set<std::pair<std::string, std::int64_t>> by_name;
};

void add_pins(Connection& connection, const std::string& project_id, Pins& pins) {
  connection.rows(
      [&](const std::string& text) {
        // A damaged execution pins no version: it can't go on.
        auto execution = model::execution_from(nlohmann::json::parse(text, nullptr, false));
        if (!execution) return;
        pins.by_id.emplace(std::move(execution->flow_id), execution->flow_version);
        for (auto& flow : execution->entered) {
          pins.by_name.emplace(std::move(flow.name), flow.version);
        }
      },
      "SELECT execution FROM sessions WHERE project_id = :p AND execution IS NOT NULL", project_id);
}

// A version that may be removed unless a session is pinned to it.
struct Old {
  std::string project_id;
  std::string flow_id;
  std::string name;
  std::int64_t version = 0;

  auto operator<=>(const Old&) const = default;
};

constexpr std::string_view select_old =
    "SELECT f.project_id, f.id, f.name, v.version FROM flows f"
    " JOIN flow_versions v ON v.flow_id = f.id WHERE v.version <> f.version AND v.version <="
    " (SELECT MAX(n.version) FROM flow_versions n WHERE n.flow_id = f.id) - :k"
    " AND NOT EXISTS (SELECT 1 FROM flow_ramps r WHERE r.flow_id = f.id"
    " AND r.version = v.version AND r.ended_at IS NULL)";

constexpr auto old_row = row_of<&Old::project_id, &Old::flow_id, &Old::name, &Old::version>;

std::int64_t remove_unpinned(Connection& connection, const std::vector<Old>& old,
                             const Pins& pins) {
  std::int64_t removed = 0;
  for (const Old& each : old) {
    if (pins.by_id.contains({each.flow_id, each.version})) continue;
    if (pins.by_name.contains({each.name, each.version})) continue;
    removed +=
        connection.run_counted("DELETE FROM flow_versions WHERE flow_id = :f AND version = :v",
                               each.flow_id, each.version);
  }
  return removed;
}

constexpr const char* no_flow = "there is no such Flow";

}  // namespace

std::optional<std::int64_t> version_in_ramp(Connection& connection, const std::string& flow_id) {
  return connection.value<std::int64_t>(
      "SELECT version FROM flow_ramps WHERE flow_id = :f AND ended_at IS NULL", flow_id);
}

model::Error in_ramp(const std::string& name, std::int64_t version) {
  return {Errc::conflict, "the Flow '" + name + "' is in a ramp with version " +
                              std::to_string(version) +
                              "; end the ramp first: `conversectl flow ramp` with --stop takes"
                              " the version back, with 100% gives it to all sessions. `import"
                              " --hold` is possible meanwhile"};
}

Result<model::FlowVersion> write_flow_version(Writer& writer, const WantedVersion& wanted) {
  Connection& connection = writer.connection();
  model::FlowVersion flow{.project_id = wanted.project_id,
                          .name = wanted.name,
                          .version = 1,
                          .definition = wanted.definition};
  bool took_effect = true;
  const auto row = connection.row<std::string, std::int64_t>(
      "SELECT id, version FROM flows WHERE project_id = :p AND name = :n", wanted.project_id,
      wanted.name);
  if (row) {
    flow.flow_id = std::get<0>(*row);
    const auto is_equal = [&](std::int64_t version) {
      flow.version = version;
      return connection.exists(
          "SELECT 1 FROM flow_versions WHERE flow_id = :f AND version = :v AND definition = :d",
          flow.flow_id, version, wanted.definition);
    };
    const auto last = connection.number("SELECT MAX(version) FROM flow_versions WHERE flow_id = :f",
                                        flow.flow_id);
    const bool held = wanted.as == NewVersions::held;
    const auto ramped = version_in_ramp(connection, flow.flow_id);
    if (held && is_equal(last)) return flow;
    if (ramped && is_equal(*ramped)) return flow;
    if (is_equal(std::get<1>(*row))) return flow;
    flow.version = last + 1;
    if (!held && ramped) return fail(in_ramp(wanted.name, *ramped));
    if (!held) {
      connection.run("UPDATE flows SET version = :v WHERE id = :i", flow.version, flow.flow_id);
    }
    took_effect = !held;
  } else {
    flow.flow_id = model::new_id();
    connection.run("INSERT INTO flows (id, project_id, name, version) VALUES (:i, :p, :n, 1)",
                   flow.flow_id, wanted.project_id, wanted.name);
  }
  connection.run(
      "INSERT INTO flow_versions (flow_id, version, definition, created_at, created_by,"
      " restored_from, took_effect_at) VALUES (:f, :v, :d, :c, :b, :r, :t)",
      flow.flow_id, flow.version, wanted.definition, writer.now(), wanted.by, wanted.restored_from,
      took_effect ? std::optional(writer.now()) : std::nullopt);
  return flow;
}

void prune_flow_versions(Connection& connection, const std::string& project_id) {
  const auto old = connection.all(old_row, std::string(select_old) + " AND f.project_id = :p",
                                  kept_flow_versions, project_id);
  if (old.empty()) return;
  if (connection.exists("SELECT 1 FROM partition_shards WHERE shard > 0")) return;
  Pins pins;
  add_pins(connection, project_id, pins);
  remove_unpinned(connection, old, pins);
}

Result<std::int64_t> Assets::prune_all_flow_versions() {
  if (shards_.size() == 1) return 0;
  const auto old_versions = [](Connection& connection) {
    return connection.all(old_row, select_old, kept_flow_versions);
  };
  const auto found = read(database_, old_versions);
  if (!found) return fail(found.error());
  if (found->empty()) return 0;
  std::map<std::string, Pins> pins;  // by project
  for (const Old& each : *found) pins[each.project_id];
  for (const auto& shard : shards_) {
    const auto added = read(shard->database(), [&](Connection& connection) {
      for (auto& [project, of_project] : pins) add_pins(connection, project, of_project);
    });
    if (!added) return fail(added.error());
  }
  return committer_.write_and_wait([&](Writer& writer) {
    // A version that became old after the first read may have sessions that were not seen. One that
    // is in use again since then must stay.
    const auto present = old_versions(writer.connection());
    std::int64_t removed = 0;
    for (const Old& each : *found) {
      if (std::ranges::find(present, each) == present.end()) continue;
      removed += remove_unpinned(writer.connection(), {each}, pins.at(each.project_id));
    }
    return removed;
  });
}

Result<model::FlowVersion> Assets::put_flow(Writer& writer, const std::string& project_id,
                                            const std::string& name,
                                            const std::string& definition) {
  auto flow = write_flow_version(
      writer, {.project_id = project_id, .name = name, .definition = definition});
  if (!flow) return flow;
  prune_flow_versions(writer.connection(), project_id);
  return flow;
}

Result<std::vector<FlowInfo>> Assets::flows(const std::string& project_id) const {
  return read_all(database_, row_of<&FlowInfo::id, &FlowInfo::name, &FlowInfo::version>,
                  "SELECT id, name, version FROM flows WHERE project_id = :p ORDER BY name",
                  project_id);
}

Result<std::string> Assets::project_of_flow(const std::string& id) const {
  return read_value<std::string>(database_, no_flow, "SELECT project_id FROM flows WHERE id = :i",
                                 id);
}

Result<std::vector<FlowVersionInfo>> Assets::flow_versions(const std::string& flow_id) const {
  return read(database_, [&](Connection& connection) -> Result<std::vector<FlowVersionInfo>> {
    auto list =
        connection.all(row_of<&FlowVersionInfo::version, &FlowVersionInfo::created_at,
                              &FlowVersionInfo::created_by, &FlowVersionInfo::restored_from,
                              &FlowVersionInfo::share, &FlowVersionInfo::took_effect_at>,
                       "SELECT v.version, v.created_at, COALESCE(u.email, ''), v.restored_from,"
                       " CASE v.version WHEN f.version THEN 100 - COALESCE(r.share, 0)"
                       " WHEN r.version THEN r.share ELSE 0 END, v.took_effect_at"
                       " FROM flow_versions v JOIN flows f ON f.id = v.flow_id"
                       " LEFT JOIN flow_ramps r ON r.flow_id = v.flow_id AND r.ended_at IS NULL"
                       " LEFT JOIN users u ON u.id = v.created_by"
                       " WHERE v.flow_id = :f ORDER BY v.version DESC",
                       flow_id);
    if (list.empty()) return fail(Errc::not_found, no_flow);
    return list;
  });
}

Result<model::FlowVersion> Assets::roll_back(const std::string& flow_id, std::int64_t version,
                                             const std::string& by) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<model::FlowVersion> {
    auto old = writer.connection().row<std::string, std::string, std::string>(
        "SELECT f.project_id, f.name, v.definition FROM flows f JOIN flow_versions v"
        " ON v.flow_id = f.id WHERE f.id = :f AND v.version = :v",
        flow_id, version);
    if (!old) return fail(Errc::not_found, "there is no such version of the Flow");
    auto& [project, name, definition] = *old;
    const auto ramped = version_in_ramp(writer.connection(), flow_id);
    if (ramped) return fail(in_ramp(name, *ramped));
    auto made = write_flow_version(writer, {.project_id = project,
                                            .name = std::move(name),
                                            .definition = std::move(definition),
                                            .by = by,
                                            .restored_from = version});
    if (!made) return made;
    prune_flow_versions(writer.connection(), project);
    grow(writer);
    return made;
  });
}

}  // namespace conversed::store
