#pragma once

#include <cstdint>
#include <functional>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/bundle.h"
#include "store/model/clock.h"
#include "store/model/result.h"
#include "store/shards/shard.h"

// Deletes parts of a project, unless something still uses them.
namespace conversed::store {

// The uses of a Flow or an Endpoint.
struct PartUsage {
  enum class Kind : std::uint8_t {
    endpoint,        // the Endpoint `by` runs the Flow
    follow_up_flow,  // the Flow follows up silent users of the Endpoint `by`
    flow,            // the Flow `by` enters the Flow, in its newest version
    journey,         // the project's journey names it
    sessions,        // sessions wait at Nodes of the Flow, or anywhere with the Endpoint
    follow_ups,      // follow-ups wait for their time
    outputs,         // outputs wait for the Endpoint's webhook
    schedules,       // scheduled injects come to the Endpoint
  };
  std::string part;  // `Flow` or `Endpoint`
  std::string name;
  Kind kind = Kind::sessions;
  std::string by{};        // a name
  std::int64_t count = 0;  // of sessions, follow-ups, outputs or schedules

  bool operator==(const PartUsage&) const = default;
};
[[nodiscard]] std::string_view to_string(PartUsage::Kind kind);

// Reads Flow states and definitions for the store.
struct FlowReader {
  // The names of the Flows in which a session waits.
  std::function<std::vector<std::string>(const nlohmann::json& flow_state,
                                         const std::optional<model::Execution>& execution)>
      standing;
  // The names of the Flows that a definition enters.
  std::function<std::vector<std::string>(const std::string& definition)> entered;
};

// Flows and Endpoints of one project that are deleted together, and what uses them.
struct PartsToDelete {
  struct Part {
    std::string id;
    std::string name;
  };
  std::string project_id{};
  std::vector<Part> flows{};
  std::vector<Part> endpoints{};
  std::vector<PartUsage> usages{};
  // The Flows that were searched for entered Flows, by id: the version in effect, and the version
  // in a ramp, or 0.
  std::map<std::string, std::pair<std::int64_t, std::int64_t>> searched{};
};

struct RemovedPart {
  std::string part;  // as import_plan names it: `Flow`, `Endpoint`, `lexicon` and so on
  std::string name;

  bool operator==(const RemovedPart&) const = default;
};

struct Removal {
  std::vector<RemovedPart> parts;
  std::vector<PartUsage> usages;
};

// A deletion has two steps. The first one looks for usages by a reading connection: it reads the
// Flow states of all sessions of the project, some at a time, and compiles Flows. The second one
// deletes, in the Committer's transaction, and looks at indexes alone. A Turn may commit between
// the two steps, or have begun before them. Its outputs become dead letters, and its session starts
// with its Endpoint's Flow at the user's next message.
// Kept by: RemovalCostTest.TheTransactionCostsTheSameWithAnyNumberOfSessions.
//
// The first step asks all shards, and fails if one can't be read. The second one sees the first
// shard alone. A delivery or a schedule that another shard gets between the two steps stays. The
// delivery becomes a dead letter. The events of the schedule become dead letters, until an operator
// cancels it or the housekeeper erases its deleted project.
// Kept by: ShardsTest.RemovalIsRefusedForWorkInAnotherShard.
//
// A session counts as waiting until it expires, or as long as it has a call or a timer.
//
// The sessions of a deleted Endpoint stay until the retention removes them, and an erasure of a
// user finds them. An event that the log has for it becomes a dead letter.
// Kept by: RemovalTest.ErasureFindsSessionsOfADeletedEndpoint.
//
// Thread-safe; blocks on the disk. Errors: `not_found`; `conflict` if a Flow of the project has
// changed between the steps; `unavailable`, `internal`.
class Removals {
 public:
  // Must outlive it.
  explicit Removals(const Shards& shards) : shards_(shards), first_(shards.front()->database()) {}

  // First steps. `now`: by the wall clock.
  [[nodiscard]] model::Result<PartsToDelete> flow(const std::string& id, const FlowReader& reader,
                                                  model::Timestamp now) const;
  [[nodiscard]] model::Result<PartsToDelete> endpoint(const std::string& id,
                                                      const FlowReader& reader,
                                                      model::Timestamp now) const;
  // The Flows and Endpoints that the bundle, which is to be imported, does not name. A Flow that
  // follows up silent users stays, unless the bundle's journey names another one: the set-up of
  // proactive follow-up makes such a Flow. Omits usages that the import may change.
  [[nodiscard]] model::Result<PartsToDelete> left_over(const std::string& project_id,
                                                       const model::Bundle& bundle,
                                                       const FlowReader& reader,
                                                       model::Timestamp now) const;

  // Deletes the parts, or returns their usages. The caller calls Assets::grow.
  [[nodiscard]] static model::Result<std::vector<PartUsage>> remove(Writer& writer,
                                                                    const PartsToDelete& parts);

  // Runs `import`, which imports the bundle. Deletes all parts that the bundle does not name,
  // except members and locales. A slot is a part of its lexicon, a source a part of its knowledge
  // store. The caller rolls back a dry run, and a run that returns usages.
  enum class Mode : std::uint8_t { real, dry_run };
  [[nodiscard]] static model::Result<Removal> prune(
      Writer& writer, const PartsToDelete& left, const model::Bundle& bundle, Mode mode,
      const std::function<model::Result<void>()>& import);

  // Deletes the health of deleted Endpoints in the other shards than the first, whose transaction
  // deletes its own. For the housekeeper.
  [[nodiscard]] model::Result<void> forget_health();

 private:
  const Shards& shards_;
  Database& first_;
};

}  // namespace conversed::store
