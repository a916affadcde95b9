// The part of Assets that gives a share of the sessions another version of a Flow.
#include <utility>

#include "store/accounts/audit.h"
#include "store/assets/assets.h"
#include "store/assets/flow_versions.h"
#include "store/model/ids.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

// The endings of flow_ramps.
constexpr const char* finished = "finished";
constexpr const char* stopped = "stopped";
constexpr const char* errors = "errors";

// Follows with a condition on `r`, the ramp.
constexpr std::string_view select_ramps =
    "SELECT r.id, r.flow_id, f.name, r.version, r.stable_version, r.share, r.max_errors,"
    " r.began_at, COALESCE(u.email, ''), r.ended_at, COALESCE(r.ending, ''), r.turns, r.failures,"
    " r.stable_turns, r.stable_failures FROM flow_ramps r JOIN flows f ON f.id = r.flow_id"
    " LEFT JOIN users u ON u.id = r.began_by WHERE ";

constexpr auto ramp_row = [](std::string id, std::string flow_id, std::string name,
                             std::int64_t version, std::int64_t stable_version, std::int64_t share,
                             std::int64_t max_errors, model::Timestamp began_at,
                             std::string began_by, std::optional<model::Timestamp> ended_at,
                             std::string ending, std::int64_t turns, std::int64_t failures,
                             std::int64_t stable_turns, std::int64_t stable_failures) {
  return RampInfo{.id = std::move(id),
                  .flow_id = std::move(flow_id),
                  .name = std::move(name),
                  .version = version,
                  .stable_version = stable_version,
                  .share = share,
                  .max_errors = max_errors,
                  .began_at = began_at,
                  .began_by = std::move(began_by),
                  .ended_at = ended_at,
                  .ending = std::move(ending),
                  .ramped = {turns, failures},
                  .stable = {stable_turns, stable_failures}};
};

std::optional<RampInfo> ramp_of_flow(Connection& connection, const std::string& flow_id) {
  return connection.first(ramp_row, std::string(select_ramps) + "r.flow_id = :f", flow_id);
}

constexpr std::string_view fails_too_often =
    "r.ended_at IS NULL AND r.turns >= :t AND r.failures * 100 > r.max_errors * r.turns";

void end_ramp(Writer& writer, const std::string& flow_id, const char* ending) {
  writer.connection().run("UPDATE flow_ramps SET ended_at = :n, ending = :e WHERE flow_id = :f",
                          writer.now(), ending, flow_id);
}

void begin_ramp(Writer& writer, const WantedRamp& wanted, std::int64_t stable_version) {
  writer.connection().run("DELETE FROM flow_ramps WHERE flow_id = :f", wanted.flow_id);
  writer.connection().run(
      "INSERT INTO flow_ramps (flow_id, id, version, stable_version, share, max_errors, began_at,"
      " began_by, turns, failures, stable_turns, stable_failures)"
      " VALUES (:f, :i, :v, :s, :p, :m, :n, :b, 0, 0, 0, 0)",
      wanted.flow_id, model::new_id(), wanted.version, stable_version, wanted.share,
      wanted.max_errors.value_or(usual_ramp_errors), writer.now(), wanted.by);
}

// The entry of the audit trail for a ramp that ends by itself.
void note_end(Writer& writer, const RampInfo& ramp) {
  AuditEntry entry;
  entry.id = model::new_id();
  entry.organisation_id = writer.connection()
                              .value<std::string>(
                                  "SELECT p.organisation_id FROM flows f JOIN projects p"
                                  " ON p.id = f.project_id WHERE f.id = :f",
                                  ramp.flow_id)
                              .value_or("");
  entry.credential = "daemon";
  entry.operation = "stopFlowRamp";
  entry.route = "DELETE /management/flows/{flowId}/ramp";
  entry.object = "flowId=" + ramp.flow_id + ", name=" + ramp.name +
                 ", version=" + std::to_string(ramp.version) +
                 ", reason=" + std::to_string(ramp.ramped.failures) + " of " +
                 std::to_string(ramp.ramped.turns) + " Turns have failed";
  constexpr int ok = 200;
  entry.status = ok;
  entry.trace_id = model::new_trace_id();
  Audit::add(writer, std::move(entry));
}

}  // namespace

Result<std::optional<RampInfo>> Assets::ramp(const std::string& flow_id) const {
  return read(database_, [&](Connection& connection) { return ramp_of_flow(connection, flow_id); });
}

Result<RampInfo> Assets::set_ramp(const WantedRamp& wanted) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<RampInfo> {
    Connection& connection = writer.connection();
    const auto flow = connection.row<std::string, std::int64_t>(
        "SELECT f.name, f.version FROM flows f JOIN flow_versions v ON v.flow_id = f.id"
        " WHERE f.id = :f AND v.version = :v",
        wanted.flow_id, wanted.version);
    if (!flow) return fail(Errc::not_found, "there is no such version of the Flow");
    const auto& [name, in_effect] = *flow;
    const auto running = version_in_ramp(connection, wanted.flow_id);
    if (running && *running != wanted.version) return fail(in_ramp(name, *running));
    if (running) {
      connection.run(
          "UPDATE flow_ramps SET share = :s, max_errors = COALESCE(:m, max_errors)"
          " WHERE flow_id = :f",
          wanted.share, wanted.max_errors, wanted.flow_id);
    } else if (in_effect == wanted.version) {
      return fail(Errc::conflict,
                  "all sessions run version " + std::to_string(wanted.version) + " of the Flow '" +
                      name +
                      "' already; import with --hold to give a new version to a share of them");
    } else {
      begin_ramp(writer, wanted, in_effect);
    }
    if (wanted.share == all_sessions) {
      connection.run("UPDATE flows SET version = :v WHERE id = :i", wanted.version, wanted.flow_id);
      connection.run(
          "UPDATE flow_versions SET took_effect_at = :t WHERE flow_id = :f AND version = :v",
          writer.now(), wanted.flow_id, wanted.version);
      end_ramp(writer, wanted.flow_id, finished);
    }
    grow(writer);
    return *ramp_of_flow(connection, wanted.flow_id);
  });
}

Result<RampInfo> Assets::stop_ramp(const std::string& flow_id,
                                   std::optional<std::int64_t> version) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<RampInfo> {
    const auto running = version_in_ramp(writer.connection(), flow_id);
    if (!running) return fail(Errc::conflict, "the Flow is in no ramp");
    if (version && *version != *running) {
      return fail(Errc::conflict, "version " + std::to_string(*version) +
                                      " is in no ramp: the Flow is in a ramp with version " +
                                      std::to_string(*running));
    }
    end_ramp(writer, flow_id, stopped);
    grow(writer);
    return *ramp_of_flow(writer.connection(), flow_id);
  });
}

Result<std::vector<RampInfo>> Assets::take_back_ramps() {
  const auto failing = [](Connection& connection) {
    return connection.all(ramp_row, std::string(select_ramps).append(fails_too_often),
                          least_ramp_turns);
  };
  auto found = read(database_, failing);
  if (!found || found->empty()) return found;
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::vector<RampInfo>> {
    Connection& connection = writer.connection();
    auto ended = failing(connection);
    for (auto& ramp : ended) {
      end_ramp(writer, ramp.flow_id, errors);
      ramp = *ramp_of_flow(connection, ramp.flow_id);
      note_end(writer, ramp);
    }
    if (!ended.empty()) grow(writer);
    return ended;
  });
}

}  // namespace conversed::store
