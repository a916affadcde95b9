#pragma once

#include <atomic>
#include <cstdint>
#include <map>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/commit/committer.h"
#include "store/model/assets.h"
#include "store/model/bundle.h"
#include "store/model/result.h"
#include "store/paging/page.h"

namespace conversed::store {

class Sealer;

// How many versions of a Flow are kept, besides those that executions are pinned to.
inline constexpr std::int64_t kept_flow_versions = 20;

// What an import may come to.
struct ImportLimits {
  std::uint64_t tokens = 0;  // of the organisation, in all; 0: no limit
};

struct ProjectInfo {
  std::string id;
  std::string organisation_id;
  std::string name;
  bool operator==(const ProjectInfo&) const = default;
};

struct FlowInfo {
  std::string id;
  std::string name;
  std::int64_t version = 0;  // the newest
};

struct FlowVersionInfo {
  std::int64_t version = 0;
  model::Timestamp created_at{};
  std::string created_by;  // an e-mail address; empty: not made by a user, or by one who is gone
  std::optional<std::int64_t> restored_from;  // the version that a rollback made it equal to
};

struct ConnectionInfo {
  std::string id;
  std::string name;
  std::string type;
  std::vector<std::string> hosts;  // that it may go to; none: to any
};

struct Token {
  std::string id;
  std::string project_id;
  std::string label;
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

// What a keyphrase lookup needs of a lexicon.
struct LexiconEntry {
  std::string id;
  std::string main_keyphrase;
  std::vector<std::string> keyphrases;
  std::vector<std::string> slots;     // names
  std::vector<std::string> slot_ids;  // beside `slots`
  std::string data;                   // JSON text; "null" when there is none
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
  std::string data;  // JSON text; "null" when there is none
  model::Timestamp created_at{};
};

// An HTTP Connection with its secret fields in clear: for the code that sends the request alone.
struct ConnectionSecrets {
  std::string id;
  std::string project_id;
  std::string name;
  std::string type;
  std::vector<std::string> hosts;  // as in ConnectionInfo
  std::string fields;              // JSON text
};

// What signs the deliveries to an Endpoint's webhook, in clear: for the code that signs alone.
struct WebhookSecrets {
  std::optional<std::string> current;   // none: they are not signed
  std::optional<std::string> previous;  // the one before, which an import has replaced
  model::Timestamp changed_at{};        // when it did
};

// Projects and what belongs to them. Thread-safe; blocks on the disk. Errors: `not_found` (what is
// another organisation's or project's is just as missing), `conflict`, `unavailable`, `internal`.
class Assets {
 public:
  // All must outlive it.
  Assets(Database& database, Committer& committer, const Sealer& sealer)
      : database_(database), committer_(committer), sealer_(sealer) {}

  // Grows after each committed change of any asset; a cache that was filled at another value is
  // stale.
  [[nodiscard]] std::uint64_t generation() const { return generation_.load(); }
  // Likewise, but grows only after what may have changed a lexicon: those are large, and what is
  // made of them should not be lost to each new Token.
  [[nodiscard]] std::uint64_t lexicon_generation() const { return lexicon_generation_.load(); }

  // --- What conversations read -------------------------------------------------------------------
  [[nodiscard]] model::Result<std::optional<model::Endpoint>> endpoint_by_token(
      const std::string& url_token) const;
  [[nodiscard]] model::Result<std::optional<model::Endpoint>> endpoint(const std::string& id) const;
  // Version 0 is the newest.
  [[nodiscard]] model::Result<std::optional<model::FlowVersion>> flow(const std::string& flow_id,
                                                                      std::int64_t version) const;
  [[nodiscard]] model::Result<model::ProjectAssets> project_assets(
      const std::string& project_id) const;
  // A lexicon of a project with its entries, by its name.
  [[nodiscard]] model::Result<std::optional<Lexicon>> lexicon(const std::string& project_id,
                                                              const std::string& name) const;
  [[nodiscard]] model::Result<ConnectionSecrets> connection_secrets(const std::string& id) const;
  [[nodiscard]] model::Result<WebhookSecrets> webhook_secrets(const std::string& endpoint_id) const;
  // Chunks of a knowledge store by the store's name, in order; all sources.
  [[nodiscard]] model::Result<std::vector<KnowledgeChunk>> knowledge(
      const std::string& project_id, const std::string& store_name) const;

  // --- Import ------------------------------------------------------------------------------------
  // Takes the bundle whole or not at all. What has the same name keeps its id and takes the
  // bundle's values; what is new gets an id; what the bundle does not name stays as it is, because
  // a bundle may be one part of a project and running sessions hold on to Endpoints and Flows. Of
  // a lexicon or knowledge source that is named, entries and chunks that are gone are removed. A
  // Flow whose definition is the same keeps its version. `by` is the user whose doing it is.
  // A webhook's secret that is replaced by another one is kept as its previous one.
  //
  // Returns the ids in the shape that `conversectl import --json` prints. `conflict` if a URL token
  // or a member's address belongs to somebody else; `quota_exhausted` if it adds Tokens beyond the
  // limit. Members that are new get users without a password.
  [[nodiscard]] model::Result<nlohmann::json> import_bundle(const std::string& organisation_id,
                                                            const model::Bundle& bundle,
                                                            const ImportLimits& limits = {},
                                                            const std::string& by = {});

  // The same inside a transaction.
  [[nodiscard]] model::Result<nlohmann::json> import_bundle(Writer& writer,
                                                            const std::string& organisation_id,
                                                            const model::Bundle& bundle,
                                                            const ImportLimits& limits,
                                                            const std::string& by = {});
  // Creates or updates one Flow by name; returns id and version. Versions beyond those that are
  // kept are removed.
  [[nodiscard]] static model::Result<model::FlowVersion> put_flow(Writer& writer,
                                                                  const std::string& project_id,
                                                                  const std::string& name,
                                                                  const std::string& definition);
  // For what another daemon has changed.
  enum class Lexicons : std::uint8_t { stay, may_change };
  void bump_generation(Lexicons lexicons) {
    if (lexicons == Lexicons::may_change) lexicon_generation_.fetch_add(1);
    generation_.fetch_add(1);
  }

  // The project as a bundle that imports to the same, in the order of names where nothing else has
  // an order. Connections and webhooks have their sources, never their secrets.
  [[nodiscard]] model::Result<model::Bundle> export_bundle(const std::string& project_id) const;

  // --- Versions of Flows -------------------------------------------------------------------------
  [[nodiscard]] model::Result<std::vector<FlowInfo>> flows(const std::string& project_id) const;
  [[nodiscard]] model::Result<std::string> project_of_flow(const std::string& id) const;
  // Newest first.
  [[nodiscard]] model::Result<std::vector<FlowVersionInfo>> flow_versions(
      const std::string& flow_id) const;
  // Makes a new version that is equal to an older one; the newest stays if it is equal already.
  // Returns the newest. `not_found` if that version is not kept.
  [[nodiscard]] model::Result<model::FlowVersion> roll_back(const std::string& flow_id,
                                                            std::int64_t version,
                                                            const std::string& by);

  // Removes the previous secrets of webhooks that were replaced before then: how many.
  [[nodiscard]] model::Result<std::int64_t> forget_previous_secrets(model::Timestamp before);

  // --- Management --------------------------------------------------------------------------------
  [[nodiscard]] model::Result<std::vector<ProjectInfo>> projects(
      const std::string& organisation_id) const;
  [[nodiscard]] model::Result<ProjectInfo> project(const std::string& project_id) const;
  [[nodiscard]] model::Result<std::vector<Locale>> locales(const std::string& project_id) const;
  // The checked `proactive` part of the project's bundle; null if there is none.
  [[nodiscard]] model::Result<nlohmann::json> proactive(const std::string& project_id) const;

  struct NewToken {
    std::string label{};  // empty: `Token N`
    std::string type = "custom";
    std::string script{};
    std::string created_by{};  // a user's id
  };
  // `conflict` if the label is taken, `quota_exhausted` if the organisation has `max_tokens` (0: no
  // limit) already.
  [[nodiscard]] model::Result<Token> create_token(const std::string& project_id,
                                                  const NewToken& wanted,
                                                  std::int64_t max_tokens = 0);
  [[nodiscard]] model::Result<std::int64_t> count_tokens(const std::string& organisation_id) const;

  [[nodiscard]] model::Result<std::vector<ConnectionInfo>> connections(
      const std::string& project_id) const;
  // The project a Connection, Lexicon or Knowledge source belongs to.
  [[nodiscard]] model::Result<std::string> project_of_connection(const std::string& id) const;
  [[nodiscard]] model::Result<void> delete_connection(const std::string& project_id,
                                                      const std::string& id);

  [[nodiscard]] model::Result<std::string> project_of_lexicon(const std::string& id) const;
  // All entries of one lexicon, by id.
  [[nodiscard]] model::Result<std::vector<LexiconEntry>> lexicon_entries(
      const std::string& lexicon_id) const;
  // A page of them; sorted by `_id` unless asked otherwise. Errors: as read_page in paging.h.
  [[nodiscard]] model::Result<Page<LexiconEntry>> lexicon_entries(const std::string& lexicon_id,
                                                                  const PageRequest& request) const;
  // What they can be sorted by.
  [[nodiscard]] static std::vector<std::string_view> entry_sort_fields();
  [[nodiscard]] model::Result<std::string> project_of_source(const std::string& store_id,
                                                             const std::string& source_id) const;
  // All chunks of one source, in order.
  [[nodiscard]] model::Result<std::vector<KnowledgeChunk>> chunks(
      const std::string& source_id) const;
  // A page of them; sorted by `order` unless asked otherwise, filtered by their text.
  [[nodiscard]] model::Result<Page<KnowledgeChunk>> chunks(const std::string& source_id,
                                                           const PageRequest& request) const;
  [[nodiscard]] static std::vector<std::string_view> chunk_sort_fields();
  // Of all sources of all projects.
  [[nodiscard]] model::Result<std::int64_t> count_chunks(const std::string& organisation_id) const;

  // The generations grow once what the Writer's transaction does is durable: for whoever changes
  // what conversations read by other means than the functions above.
  void grow(Writer& writer, Lexicons lexicons);

 private:
  Database& database_;
  Committer& committer_;
  const Sealer& sealer_;
  std::atomic<std::uint64_t> generation_{1};
  std::atomic<std::uint64_t> lexicon_generation_{1};
};

}  // namespace conversed::store
