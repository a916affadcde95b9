#pragma once

#include <cstdint>
#include <functional>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/bundle.h"
#include "store/model/result.h"

// Deletes parts of a project, unless something still uses them. Each function runs in the caller's
// transaction. The caller rolls it back if there are usages, and calls Assets::grow.
namespace conversed::store {

// What still uses a Flow or an Endpoint.
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

// Reads what only Flows write and the store does not understand.
struct FlowReader {
  // The names of the Flows in which a session waits.
  std::function<std::vector<std::string>(const nlohmann::json& flow_state,
                                         const std::optional<model::Execution>& execution)>
      standing;
  // The names of the Flows that a definition enters.
  std::function<std::vector<std::string>(const std::string& definition)> entered;
};

struct RemovedPart {
  std::string part;  // as import_plan names it: `Flow`, `Endpoint`, `lexicon` and so on
  std::string name;

  bool operator==(const RemovedPart&) const = default;
};

struct Removal {
  std::vector<RemovedPart> parts;
  std::vector<PartUsage> usages;  // if there are any, the caller rolls back
};

// A session counts as waiting until it expires, or as long as it has a call or a timer. A session
// whose Flow is gone starts with its Endpoint's Flow at the user's next message.
//
// The sessions of a deleted Endpoint stay until the retention removes them, and an erasure of a
// user finds them. An event that the log has for it becomes a dead letter.
// Kept by: RemovalTest.ErasureFindsSessionsOfADeletedEndpoint.
//
// `not_found` if there is no such Flow or Endpoint.
[[nodiscard]] model::Result<Removal> remove_flow(Writer& writer, const std::string& flow_id,
                                                 const FlowReader& reader);
[[nodiscard]] model::Result<Removal> remove_endpoint(Writer& writer, const std::string& endpoint_id,
                                                     const FlowReader& reader);

// Deletes all parts that the bundle of the project, which was just imported, does not name, but for
// members and locales. Slots and knowledge sources count as parts of what has them.
[[nodiscard]] Removal remove_left_over(Writer& writer, const std::string& project_id,
                                       const model::Bundle& bundle, const FlowReader& reader);

}  // namespace conversed::store
