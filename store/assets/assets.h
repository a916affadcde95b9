#pragma once

#include <atomic>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/assets.h"
#include "store/model/bundle.h"
#include "store/model/result.h"
#include "store/paging/page.h"
#include "store/shards/shard.h"

namespace conversed::store {

class Sealer;

// The number of kept versions of a Flow, in addition to versions that executions are pinned to.
inline constexpr std::int64_t kept_flow_versions = 20;

struct ImportLimits {
  std::uint64_t tokens = 0;  // of the whole organisation; 0: no limit
};

// `held`: new versions of present Flows are stored, but not in effect. A ramp can give them to
// sessions.
enum class NewVersions : std::uint8_t { in_effect, held };

struct ProjectInfo {
  std::string id;
  std::string organisation_id;
  std::string name;
  bool operator==(const ProjectInfo&) const = default;
};

struct FlowInfo {
  std::string id;
  std::string name;
  std::int64_t version = 0;  // in effect
};

struct EndpointInfo {
  std::string id;
  std::string project_id;
  std::string name;
  std::string url_token;
  std::string flow;  // its name
  bool has_webhook = false;
};

struct FlowVersionInfo {
  std::int64_t version = 0;
  model::Timestamp created_at{};
  std::string created_by;  // an e-mail address; empty: no user made it, or the user was removed
  std::optional<std::int64_t> restored_from;       // the version that a rollback made it equal to
  std::int64_t share = 0;                          // of the sessions that run it, in percent
  std::optional<model::Timestamp> took_effect_at;  // none: it was never the version of all sessions
};

// A ramp is taken back by itself when the ramped version has at least that many Turns, and of 100
// of its Turns more than `max_errors` have failed.
inline constexpr std::int64_t least_ramp_turns = 20;
inline constexpr std::int64_t usual_ramp_errors = 5;
inline constexpr std::int64_t all_sessions = 100;  // percent

// The running ramp of a Flow, or its last one.
struct RampInfo {
  struct Counts {
    std::int64_t turns = 0;     // that ran a Node of the version while the ramp ran
    std::int64_t failures = 0;  // of these: became dead letters, or met a failed call
  };

  std::string id;
  std::string flow_id;
  std::string name;  // the Flow's
  std::int64_t version = 0;
  std::int64_t stable_version = 0;  // the Flow's own, when the ramp began
  std::int64_t share = 0;           // of the sessions, in percent
  std::int64_t max_errors = 0;      // failures of 100 Turns
  model::Timestamp began_at{};
  std::string began_by;  // an e-mail address; empty: the user was removed
  std::optional<model::Timestamp> ended_at;
  std::string ending;  // "finished", "stopped" or "errors"; empty: it runs
  Counts ramped{};
  Counts stable{};

  [[nodiscard]] bool runs() const { return !ended_at; }
};

struct WantedRamp {
  std::string flow_id;
  std::int64_t version = 0;
  std::int64_t share = 0;                    // 1 to 100
  std::optional<std::int64_t> max_errors{};  // none: stays as it is, or `usual_ramp_errors`
  std::string by{};                          // a user's id
};

struct ConnectionInfo {
  std::string id;
  std::string name;
  std::string type;
  std::vector<std::string> hosts;  // requests may go only there; empty: anywhere
};

// The names of a project's parts that Flows may refer to.
struct PartNames {
  std::set<std::string, std::less<>> connections;
  std::set<std::string, std::less<>> flows;
  std::set<std::string, std::less<>> knowledge_stores;
  std::set<std::string, std::less<>> lexicons;
};

struct Token {
  std::string id;
  std::string project_id;
  std::string label{};
  std::string type;
  std::string script;
  model::Timestamp created_at{};
  std::string created_by;  // a user's id
  model::Timestamp changed_at{};
  std::string changed_by;
};

struct Locale {
  std::string id;
  std::string name;
};

// An entry of a lexicon, for lookups of keyphrases.
struct LexiconEntry {
  std::string id;
  std::string main_keyphrase;
  std::vector<std::string> keyphrases;
  std::vector<std::string> slots;     // names
  std::vector<std::string> slot_ids;  // in the order of `slots`
  std::string data;                   // JSON text; "null" without data
};
struct LexiconVersion {
  std::string id;
  std::int64_t version = 0;
};
struct Lexicon {
  std::string id;
  std::string project_id;
  std::string name;
  std::vector<LexiconEntry> entries;  // in the bundle's order
};

struct KnowledgeChunk {
  std::string id;
  std::string store_id;
  std::string source_id;
  std::int64_t order = 0;
  std::string text;
  bool disabled = false;
  std::string data;  // JSON text; "null" without data
  model::Timestamp created_at{};
};

// An HTTP Connection with its secret fields in clear. Only for the code that sends the request.
struct ConnectionSecrets {
  std::string id;
  std::string project_id;
  std::string name;
  std::string type;
  std::vector<std::string> hosts;  // as in ConnectionInfo
  std::string fields;              // JSON text
};

// The secrets that sign deliveries to an Endpoint's webhook, in clear. Only for the code that
// signs.
struct WebhookSecrets {
  std::optional<std::string> current;   // none: deliveries are not signed
  std::optional<std::string> previous;  // the secret that an import has replaced
  model::Timestamp changed_at{};        // the time of that import
};

// Projects and their assets. Thread-safe; blocks on the disk. Errors: `not_found` (also for rows of
// another organisation or project), `conflict`, `unavailable`, `internal`.
class Assets {
 public:
  // Both must outlive it.
  Assets(const Shards& shards, const Sealer& sealer)
      : shards_(shards),
        database_(shards.front()->database()),
        committer_(shards.front()->committer()),
        sealer_(sealer) {}

  // Grows after each committed change of an asset. A cache filled at another value is stale.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(); }

  // --- For conversations
  // ---------------------------------------------------------------------------
  [[nodiscard]] model::Result<std::optional<model::Endpoint>> endpoint_by_token(
      const std::string& url_token) const;
  [[nodiscard]] model::Result<std::optional<model::Endpoint>> endpoint(const std::string& id) const;
  // Version 0 is the one in effect.
  [[nodiscard]] model::Result<std::optional<model::FlowVersion>> flow(const std::string& flow_id,
                                                                      std::int64_t version) const;
  [[nodiscard]] model::Result<model::ProjectAssets> project_assets(
      const std::string& project_id) const;
  // Which version of a project's lexicon is stored. Each import of the lexicon makes a new one.
  [[nodiscard]] model::Result<std::optional<LexiconVersion>> lexicon_version(
      const std::string& project_id, const std::string& name) const;
  // A lexicon of a project with its entries, by its name.
  [[nodiscard]] model::Result<std::optional<Lexicon>> lexicon(const std::string& project_id,
                                                              const std::string& name) const;
  [[nodiscard]] model::Result<ConnectionSecrets> connection_secrets(const std::string& id) const;
  [[nodiscard]] model::Result<WebhookSecrets> webhook_secrets(const std::string& endpoint_id) const;

  // --- Import ------------------------------------------------------------------------------------
  // Imports the whole bundle or nothing. An asset with the same name keeps its id and gets the
  // bundle's values; a new asset gets an id. An asset that the bundle does not name stays: a bundle
  // may be one part of a project, and sessions refer to Endpoints and Flows. If the bundle names a
  // lexicon or knowledge source, entries and chunks that it lacks are removed. Entries with the
  // same main keyphrase and chunks with the same text keep their ids. A Flow with the same
  // definition keeps its version. A replaced webhook secret becomes the previous one. `by`: the
  // user who imports. A Flow in a ramp stays in it if the bundle has the definition of one of its
  // two versions, or if new versions are held. Kept by:
  // AssetsTest.SecondImportKeepsEveryIdAndVersion, AssetsTest.PartsThatABundleDoesNotNameStay,
  // AssetsTest.ImportThatFailsLeavesNothingBehind.
  //
  // Returns the ids in the shape that `conversectl import --json` prints. `conflict` if a URL token
  // or a member's address belongs to another project or organisation, or if a Flow in a ramp would
  // get a third version; `quota_exhausted` if the
  // bundle adds Tokens beyond the limit. New members become users without a password.
  [[nodiscard]] model::Result<nlohmann::json> import_bundle(
      const std::string& organisation_id, const model::Bundle& bundle,
      const ImportLimits& limits = {}, const std::string& by = {},
      NewVersions versions = NewVersions::in_effect);

  // The same inside the Writer's transaction.
  [[nodiscard]] model::Result<nlohmann::json> import_bundle(
      Writer& writer, const std::string& organisation_id, const model::Bundle& bundle,
      const ImportLimits& limits, const std::string& by = {},
      NewVersions versions = NewVersions::in_effect);
  // Creates or updates one Flow by name; returns id and version. Removes versions beyond
  // `kept_flow_versions`. `conflict` in a ramp, as for an import.
  [[nodiscard]] static model::Result<model::FlowVersion> put_flow(Writer& writer,
                                                                  const std::string& project_id,
                                                                  const std::string& name,
                                                                  const std::string& definition);
  // Notes a change by another daemon.
  void bump_generation() { generation_.fetch_add(1); }

  // The project as a bundle whose import makes the same project. Read in one snapshot. Parts
  // without an order are ordered by name. Connections and webhooks have their sources, never their
  // secrets. Kept by: FlowVersions.ExportHasSourcesAndNoSecrets.
  [[nodiscard]] model::Result<model::Bundle> export_bundle(const std::string& project_id) const;

  [[nodiscard]] model::Result<std::vector<EndpointInfo>> endpoints(
      const std::string& project_id) const;

  // --- Versions of Flows -------------------------------------------------------------------------
  [[nodiscard]] model::Result<std::vector<FlowInfo>> flows(const std::string& project_id) const;
  [[nodiscard]] model::Result<std::string> project_of_flow(const std::string& id) const;
  // Newest first.
  [[nodiscard]] model::Result<std::vector<FlowVersionInfo>> flow_versions(
      const std::string& flow_id) const;
  // Makes a new version equal to an older one, unless the version in effect equals it. Returns the
  // version in effect. `not_found` if the older version is not kept, `conflict` in a ramp.
  [[nodiscard]] model::Result<model::FlowVersion> roll_back(const std::string& flow_id,
                                                            std::int64_t version,
                                                            const std::string& by);

  // With several shards: removes the versions of all projects beyond `kept_flow_versions`, as an
  // import does with one shard, where this does nothing. Looks for pinned sessions in all shards
  // before its transaction. No session becomes pinned to an old version meanwhile, since a session
  // begins with the version in effect or in a ramp. Removes nothing if a shard can't be read.
  // Returns the number of removed versions. For the housekeeper.
  // Kept by: ShardsTest.AVersionThatASessionOfAnotherShardIsPinnedToIsKept.
  [[nodiscard]] model::Result<std::int64_t> prune_all_flow_versions();

  // --- Ramps of Flows ----------------------------------------------------------------------------
  // The counts of a ramp that runs are the sum over the shards, without a shard that can't be read.
  // None: the Flow had no ramp.
  [[nodiscard]] model::Result<std::optional<RampInfo>> ramp(const std::string& flow_id) const;
  // Begins a ramp, or changes the running one's share and bound. The whole share ends it: the
  // version is in effect from then on. `not_found` if the version is not kept, `conflict` if it is
  // in effect already or the Flow is in a ramp with another version.
  [[nodiscard]] model::Result<RampInfo> set_ramp(const WantedRamp& wanted);
  // Ends the ramp: all sessions run the stable version with their next input. `conflict` if none
  // runs, or if the running one is of another version than `version`. None: whichever version.
  [[nodiscard]] model::Result<RampInfo> stop_ramp(const std::string& flow_id,
                                                  std::optional<std::int64_t> version = {});
  // Ends the ramps that have more failures than their bounds allow, and writes an entry of the
  // audit trail for each. Returns these ramps. In a cluster one daemon ends each of them. Kept by:
  // FlowRamps.AreTakenBackWhenTooManyTurnsFail, ShardsTest.TurnsOfARampAreCountedOverAllShards.
  [[nodiscard]] model::Result<std::vector<RampInfo>> take_back_ramps();
  // Deletes the counts of ramps that do not run any more. A Turn that began before the end of its
  // ramp may add some later, so call it again and again. A shard that is away keeps its counts.
  void forget_ramp_counts();

  // Removes the previous secrets of webhooks that were replaced earlier than `before`. Returns
  // their number.
  [[nodiscard]] model::Result<std::int64_t> forget_previous_secrets(model::Timestamp before);

  // --- Management --------------------------------------------------------------------------------
  [[nodiscard]] model::Result<std::vector<ProjectInfo>> projects(
      const std::string& organisation_id) const;
  [[nodiscard]] model::Result<ProjectInfo> project(const std::string& project_id) const;
  [[nodiscard]] model::Result<std::vector<Locale>> locales(const std::string& project_id) const;
  [[nodiscard]] model::Result<PartNames> part_names(const std::string& project_id) const;
  // The checked `proactive` part of the project's bundle; null if there is none.
  [[nodiscard]] model::Result<nlohmann::json> proactive(const std::string& project_id) const;

  struct NewToken {
    std::string label{};  // empty: `Token N`
    std::string type = "custom";
    std::string script{};
    std::string created_by{};  // a user's id
  };
  // `conflict` if the label is taken, `quota_exhausted` if the organisation already has
  // `max_tokens` (0: no limit).
  [[nodiscard]] model::Result<Token> create_token(const std::string& project_id,
                                                  const NewToken& wanted,
                                                  std::int64_t max_tokens = 0);

  [[nodiscard]] model::Result<std::vector<ConnectionInfo>> connections(
      const std::string& project_id) const;
  // The project a Connection, Lexicon or Knowledge source belongs to.
  [[nodiscard]] model::Result<std::string> project_of_connection(const std::string& id) const;
  [[nodiscard]] model::Result<void> delete_connection(const std::string& project_id,
                                                      const std::string& id);

  [[nodiscard]] model::Result<std::string> project_of_lexicon(const std::string& id) const;
  [[nodiscard]] model::Result<std::vector<LexiconEntry>> lexicon_entries(
      const std::string& lexicon_id) const;
  // A page of entries, by `_id` unless the request sorts it. Errors as read_page in paging.h.
  [[nodiscard]] model::Result<Page<LexiconEntry>> lexicon_entries(const std::string& lexicon_id,
                                                                  const PageRequest& request) const;
  [[nodiscard]] static std::vector<std::string_view> entry_sort_fields();
  [[nodiscard]] model::Result<std::string> project_of_source(const std::string& store_id,
                                                             const std::string& source_id) const;
  [[nodiscard]] model::Result<std::vector<KnowledgeChunk>> chunks(
      const std::string& source_id) const;
  // A page of chunks, by `order` unless the request sorts it, filtered by text.
  [[nodiscard]] model::Result<Page<KnowledgeChunk>> chunks(const std::string& source_id,
                                                           const PageRequest& request) const;
  [[nodiscard]] static std::vector<std::string_view> chunk_sort_fields();
  // The chunks of all sources of all projects.
  [[nodiscard]] model::Result<std::int64_t> count_chunks(const std::string& organisation_id) const;

  // Makes the generation grow once the Writer's transaction is durable. For changes of assets
  // without the functions above.
  void grow(Writer& writer) {
    writer.on_commit([this] { bump_generation(); });
  }

 private:
  const Shards& shards_;
  Database& database_;    // the first shard's
  Committer& committer_;  // the first shard's
  const Sealer& sealer_;
  std::atomic<std::uint64_t> generation_{1};
};

}  // namespace conversed::store
