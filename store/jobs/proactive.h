#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>

#include "store/commit/committer.h"
#include "store/model/result.h"
#include "store/shards/shard.h"

namespace conversed::store {

class Sealer;

// A project's tenant of proactive follow-up. Proactive::tenant_secret has its secret.
struct Tenant {
  std::string id;
  std::string project_id;
  std::int64_t follow_ups_per_month = 0;  // 0: unlimited
  std::string external_id{};              // at the provisioning service; empty: none
};

// The state of a project's proactive follow-up.
enum class FollowUpSwitch : std::uint8_t {
  not_set_up,  // never set up, a set-up runs, or the set-up was undone
  off,
  on,
};

// The steps of the set-up of proactive follow-up and their undoing, one function each; and the
// switch. Each runs in the caller's transaction, which also holds the job's progress. Conversations
// see the change once the caller calls Assets::grow. Undoing a missing part is no error.
// Thread-safe. Errors: `unavailable`, `internal`, and those named.
class Proactive {
 public:
  // Both must outlive it.
  Proactive(const Shards& shards, const Sealer& sealer)
      : shards_(shards), database_(shards.front()->database()), sealer_(sealer) {}

  // The secret in clear, only for the request that announces the tenant. Error: `not_found`.
  [[nodiscard]] model::Result<std::string> tenant_secret(const std::string& tenant_id) const;
  // The definition of the active or inactive journey; null: there is no journey.
  [[nodiscard]] model::Result<nlohmann::json> journey(const std::string& project_id) const;

  // Adds the tenant with a new secret. `conflict` if the project has a tenant.
  [[nodiscard]] model::Result<void> add_tenant(Writer& writer, const Tenant& tenant) const;
  static void set_external_id(Writer& writer, const std::string& tenant_id,
                              const std::string& external_id);
  static void remove_tenant(Writer& writer, const std::string& tenant_id);

  // Adds the journey, still inactive. `conflict` if the project has a journey.
  [[nodiscard]] static model::Result<void> add_journey(Writer& writer,
                                                       const std::string& project_id,
                                                       const std::string& journey_id,
                                                       const nlohmann::json& definition);
  // Replaces the journey of a project that is set up, even if it is switched off. `definition` is
  // as for `add_journey`. If the definition names a Flow, that Flow follows up silent users from
  // now on. A generated Flow stays, since an author may have edited it. Does nothing in a project
  // that is not set up.
  [[nodiscard]] static model::Result<void> replace_journey(Writer& writer,
                                                           const std::string& project_id,
                                                           const nlohmann::json& definition);
  static void remove_journey(Writer& writer, const std::string& journey_id);
  static void activate(Writer& writer, const std::string& journey_id);

  [[nodiscard]] model::Result<FollowUpSwitch> follow_up_switch(const std::string& project_id) const;
  // Makes the journey inactive and deletes its waiting follow-ups in the first shard.
  // Follow-ups of Nodes, tenant, journey and Flow stay. If a Turn that began before adds a
  // follow-up, it is dropped when it is due. Returns the number of deleted follow-ups; 0 in a
  // project that is not set up. `conflict` while a set-up runs, which would switch it on.
  [[nodiscard]] static model::Result<std::int64_t> switch_off(Writer& writer,
                                                              const std::string& project_id);
  // After switch_off: deletes the journey's waiting follow-ups in the other shards. Returns their
  // number. A repeated call does no harm. A shard that can't be written keeps its follow-ups. They
  // are dropped when they are due, unless the journey is on again. Blocks.
  // Kept by: ShardsTest.FollowUpsOfAJourneyAreWithdrawnInAllShards.
  [[nodiscard]] std::int64_t withdraw_elsewhere(const std::string& project_id);
  // Makes the journey active: it follows up each user after the user's next message. `conflict`
  // unless the project is set up.
  [[nodiscard]] static model::Result<void> switch_on(Writer& writer, const std::string& project_id);

  // Attaches the Flow to all Endpoints of the project, or to the Endpoint with this name.
  // `not_found` if the project has no such Endpoint, or no Flow of this id.
  [[nodiscard]] static model::Result<void> attach(Writer& writer, const std::string& project_id,
                                                  const std::string& flow_id,
                                                  const std::string& endpoint_name);
  static void detach(Writer& writer, const std::string& project_id);

  // A name for a new Flow that no Flow of the project has: `wanted`, else `wanted 2` and so on.
  [[nodiscard]] static std::string free_flow_name(Writer& writer, const std::string& project_id,
                                                  const std::string& wanted);
  // The id of the project's Flow of this name. `not_found`.
  [[nodiscard]] static model::Result<std::string> flow_named(Writer& writer,
                                                             const std::string& project_id,
                                                             const std::string& name);
  // Removes a generated Flow, unless it has a new version or an Endpoint uses it.
  static void remove_generated_flow(Writer& writer, const std::string& flow_id);

 private:
  const Shards& shards_;
  Database& database_;  // the first shard's
  const Sealer& sealer_;
};

}  // namespace conversed::store
