// The part of Assets that gives a share of the sessions another version of a Flow.
//
// Each shard counts the Turns of its own sessions in `ramp_counts`. While a ramp runs, its counts
// are the sum over the shards. The end of the ramp stores the sum in `flow_ramps`, so later Turns
// do not change what is shown. The counts of a shard that can't be read are missing.
#include <algorithm>
#include <map>
#include <set>
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

// Follows with a condition on `r`, the ramp. Counts the Turns of the first shard.
constexpr std::string_view select_ramps =
    "SELECT r.id, r.flow_id, f.name, r.version, r.stable_version, r.share, r.max_errors,"
    " r.began_at, COALESCE(u.email, ''), r.ended_at, COALESCE(r.ending, ''),"
    " r.turns + COALESCE(c.turns, 0), r.failures + COALESCE(c.failures, 0),"
    " r.stable_turns + COALESCE(c.stable_turns, 0),"
    " r.stable_failures + COALESCE(c.stable_failures, 0)"
    " FROM flow_ramps r JOIN flows f ON f.id = r.flow_id"
    " LEFT JOIN users u ON u.id = r.began_by"
    " LEFT JOIN ramp_counts c ON c.ramp_id = r.id AND r.ended_at IS NULL WHERE ";

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

// The counts of ramps in the other shards than the first.
class CountsElsewhere {
 public:
  explicit CountsElsewhere(const Shards& shards) {
    for (std::size_t at = 1; at < shards.size(); ++at) {
      // An absent shard must not stop the ramps of the others.
      (void)read(shards[at]->database(), [&](Connection& connection) { add(connection); });
    }
  }

  void add_to(RampInfo& ramp) const {
    const auto found = counts_.find(ramp.id);
    if (found == counts_.end() || !ramp.runs()) return;
    add(found->second.ramped, ramp.ramped);
    add(found->second.stable, ramp.stable);
  }

 private:
  struct Counts {
    RampInfo::Counts ramped;
    RampInfo::Counts stable;
  };

  static void add(const RampInfo::Counts& more, RampInfo::Counts& counts) {
    counts.turns += more.turns;
    counts.failures += more.failures;
  }
  void add(Connection& connection) {
    connection.rows(
        [&](const std::string& ramp, std::int64_t turns, std::int64_t failures,
            std::int64_t stable_turns, std::int64_t stable_failures) {
          Counts& counts = counts_[ramp];
          add({turns, failures}, counts.ramped);
          add({stable_turns, stable_failures}, counts.stable);
        },
        "SELECT ramp_id, turns, failures, stable_turns, stable_failures FROM ramp_counts");
  }

  std::map<std::string, Counts> counts_;  // by ramp
};

std::optional<RampInfo> ramp_of_flow(Connection& connection, const std::string& flow_id,
                                     const CountsElsewhere& elsewhere) {
  auto ramp = connection.first(ramp_row, std::string(select_ramps) + "r.flow_id = :f", flow_id);
  if (ramp) elsewhere.add_to(*ramp);
  return ramp;
}

bool fails_too_often(const RampInfo& ramp) {
  return ramp.ramped.turns >= least_ramp_turns &&
         ramp.ramped.failures * 100 > ramp.max_errors * ramp.ramped.turns;
}

// The running ramps that fail too often.
std::vector<RampInfo> failing_ramps(Connection& connection, const CountsElsewhere& elsewhere) {
  auto ramps = connection.all(ramp_row, std::string(select_ramps) + "r.ended_at IS NULL");
  for (auto& ramp : ramps) elsewhere.add_to(ramp);
  std::erase_if(ramps, [](const RampInfo& ramp) { return !fails_too_often(ramp); });
  return ramps;
}

// Ends the ramp with its present counts. Returns it as it is stored.
RampInfo end_ramp(Writer& writer, RampInfo ramp, const char* ending) {
  writer.connection().run(
      "UPDATE flow_ramps SET ended_at = :n, ending = :e, turns = :t, failures = :f,"
      " stable_turns = :s, stable_failures = :g WHERE flow_id = :i",
      writer.now(), ending, ramp.ramped.turns, ramp.ramped.failures, ramp.stable.turns,
      ramp.stable.failures, ramp.flow_id);
  ramp.ended_at = writer.now();
  ramp.ending = ending;
  return ramp;
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
  const CountsElsewhere elsewhere(shards_);
  return read(database_,
              [&](Connection& connection) { return ramp_of_flow(connection, flow_id, elsewhere); });
}

Result<RampInfo> Assets::set_ramp(const WantedRamp& wanted) {
  const CountsElsewhere elsewhere(shards_);
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
    auto ramp = *ramp_of_flow(connection, wanted.flow_id, elsewhere);
    if (wanted.share == all_sessions) {
      connection.run("UPDATE flows SET version = :v WHERE id = :i", wanted.version, wanted.flow_id);
      connection.run(
          "UPDATE flow_versions SET took_effect_at = :t WHERE flow_id = :f AND version = :v",
          writer.now(), wanted.flow_id, wanted.version);
      ramp = end_ramp(writer, std::move(ramp), finished);
    }
    grow(writer);
    return ramp;
  });
}

Result<RampInfo> Assets::stop_ramp(const std::string& flow_id,
                                   std::optional<std::int64_t> version) {
  const CountsElsewhere elsewhere(shards_);
  return committer_.write_and_wait([&](Writer& writer) -> Result<RampInfo> {
    auto ramp = ramp_of_flow(writer.connection(), flow_id, elsewhere);
    if (!ramp || !ramp->runs()) return fail(Errc::conflict, "the Flow is in no ramp");
    if (version && *version != ramp->version) {
      return fail(Errc::conflict, "version " + std::to_string(*version) +
                                      " is in no ramp: the Flow is in a ramp with version " +
                                      std::to_string(ramp->version));
    }
    grow(writer);
    return end_ramp(writer, *std::move(ramp), stopped);
  });
}

Result<std::vector<RampInfo>> Assets::take_back_ramps() {
  const CountsElsewhere elsewhere(shards_);
  auto ended =
      read(database_, [&](Connection& connection) { return failing_ramps(connection, elsewhere); });
  if (ended && !ended->empty()) {
    ended = committer_.write_and_wait([&](Writer& writer) {
      std::vector<RampInfo> ramps;
      for (auto& failing : failing_ramps(writer.connection(), elsewhere)) {
        ramps.push_back(end_ramp(writer, std::move(failing), errors));
        note_end(writer, ramps.back());
      }
      if (!ramps.empty()) grow(writer);
      return ramps;
    });
  }
  return ended;
}

void Assets::forget_ramp_counts() {
  using Ids = std::vector<std::string>;
  // Reads the counts first: a ramp that begins afterwards has none of them.
  std::vector<Ids> counted;
  for (const auto& shard : shards_) {
    auto ids = read(shard->database(), [](Connection& connection) {
      return connection.values<std::string>("SELECT ramp_id FROM ramp_counts");
    });
    counted.push_back(ids ? *std::move(ids) : Ids());
  }
  if (std::ranges::all_of(counted, &Ids::empty)) return;
  const auto running = read(shards_.front()->database(), [](Connection& connection) {
    const auto ids =
        connection.values<std::string>("SELECT id FROM flow_ramps WHERE ended_at IS NULL");
    return std::set<std::string>(ids.begin(), ids.end());
  });
  if (!running) return;
  for (std::size_t at = 0; at < shards_.size(); ++at) {
    std::erase_if(counted[at], [&](const auto& id) { return running->contains(id); });
    if (counted[at].empty()) continue;
    (void)shards_[at]->committer().write_and_wait([&](Writer& writer) {
      for (const auto& id : counted[at]) {
        writer.connection().run("DELETE FROM ramp_counts WHERE ramp_id = :i", id);
      }
    });
  }
}

}  // namespace conversed::store
