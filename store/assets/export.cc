// The part of Assets that writes a project as a bundle.
#include "store/assets/assets.h"
#include "store/secrets/sealer.h"
#include "store/sql/read.h"

namespace conversed::store {

using nlohmann::json;

namespace {

class Export {
 public:
  Export(Connection& connection, const Sealer& sealer, const std::string& project_id)
      : connection_(connection), sealer_(sealer), project_(project_id) {}

  Result<model::Bundle> run() {
    auto row = connection_.row<std::string, json>(
        "SELECT name, proactive FROM projects WHERE id = :i", project_);
    if (!row) return fail(Errc::not_found, "there is no such project");
    bundle_.project_name = std::get<0>(*row);
    bundle_.proactive = std::move(std::get<1>(*row));
    add_members();
    add_tokens();
    add_connections();
    add_lexicons();
    add_knowledge();
    add_flows();
    add_endpoints();
    return std::move(bundle_);
  }

 private:
  using Named = std::pair<std::string, std::string>;  // id and name
  using Names = std::map<std::string, std::string>;   // by id

  template <typename... In>
  std::vector<Named> named(std::string_view sql, const In&... in) {
    return connection_.all(row_of<&Named::first, &Named::second>, sql, in...);
  }

  // Replaces ids by names. An id without a name is left out.
  static void put_names(std::vector<std::string>& ids, const Names& names) {
    std::erase_if(ids, [&](const auto& id) { return !names.contains(id); });
    for (auto& id : ids) id = names.at(id);
  }

  static Names listed(const std::vector<Named>& all, std::vector<std::string>& list) {
    for (const auto& each : all) list.push_back(each.second);
    return {all.begin(), all.end()};
  }

  void add_members() {
    const auto locales =
        listed(named("SELECT id, name FROM locales WHERE project_id = :p ORDER BY n", project_),
               bundle_.locales);
    using Row = model::BundleMember;
    bundle_.members = connection_.all(
        row_of<&Row::email, &Row::name, &Row::roles, &Row::allowed_locales>,
        "SELECT u.email, u.name, m.roles, m.allowed_locales FROM members m"
        " JOIN users u ON u.id = m.user_id WHERE m.project_id = :p ORDER BY u.email_folded",
        project_);
    for (auto& member : bundle_.members) put_names(member.allowed_locales, locales);
  }

  void add_tokens() {
    using Row = model::BundleToken;
    bundle_.tokens = connection_.all(
        row_of<&Row::label, &Row::type, &Row::script>,
        "SELECT label, type, script FROM tokens WHERE project_id = :p ORDER BY label", project_);
  }

  void add_connections() {
    connection_.rows(
        [&](const std::string& id, std::string name, std::string type, const std::string& source,
            std::vector<std::string> hosts) {
          bundle_.connections.push_back(
              {.name = std::move(name),
               .type = std::move(type),
               .source = stored_json(opened("connections/source/" + id, source)),
               .hosts = std::move(hosts)});
        },
        "SELECT id, name, type, source, hosts FROM connections WHERE project_id = :p"
        " ORDER BY name",
        project_);
  }

  std::string opened(const std::string& place, const std::string& sealed) const {
    return stored_or_throw(sealer_.open_sealed(place, sealed));
  }

  void add_lexicons() {
    for (auto& [id, name] :
         named("SELECT id, name FROM lexicons WHERE project_id = :p ORDER BY name", project_)) {
      auto& lexicon = bundle_.lexicons.emplace_back();
      lexicon.name = std::move(name);
      const auto slots =
          listed(named("SELECT id, name FROM lexicon_slots WHERE lexicon_id = :l ORDER BY n", id),
                 lexicon.slots);
      using Row = model::BundleLexiconEntry;
      lexicon.entries =
          connection_.all(row_of<&Row::main_keyphrase, &Row::keyphrases, &Row::slots, &Row::data>,
                          "SELECT main_keyphrase, keyphrases, slots, data FROM lexicon_entries"
                          " WHERE lexicon_id = :l ORDER BY n",
                          id);
      for (auto& entry : lexicon.entries) put_names(entry.slots, slots);
    }
  }

  void add_knowledge() {
    using Row = model::BundleChunk;
    for (auto& [id, name] :
         named("SELECT id, name FROM knowledge_stores WHERE project_id = :p ORDER BY name",
               project_)) {
      auto& store = bundle_.knowledge_stores.emplace_back();
      store.name = std::move(name);
      for (auto& [source, source_name] :
           named("SELECT id, name FROM knowledge_sources WHERE store_id = :s ORDER BY n", id)) {
        store.sources.push_back(
            {std::move(source_name),
             connection_.all(
                 row_of<&Row::text, &Row::data>,
                 "SELECT text, data FROM knowledge_chunks WHERE source_id = :s ORDER BY place",
                 source)});
      }
    }
  }

  void add_flows() {
    using Row = model::BundleFlow;
    bundle_.flows = connection_.all(
        row_of<&Row::name, &Row::definition>,
        "SELECT f.name, v.definition FROM flows f JOIN flow_versions v ON v.flow_id = f.id"
        " AND v.version = f.version WHERE f.project_id = :p ORDER BY f.name",
        project_);
  }

  std::string webhook_source(const std::string& id, const std::string& sealed) const {
    return sealed.empty() ? sealed : opened("endpoints/webhook_secret_source/" + id, sealed);
  }

  void add_endpoints() {
    connection_.rows(
        [&](const std::string& id, std::string name, std::string flow,
            std::chrono::milliseconds expiry, bool active_only, std::string error_text,
            std::string error_flow, std::string token, std::string url, std::string url_source,
            bool has_secret, const std::string& secret_source) {
          model::BundleEndpoint endpoint{.name = std::move(name),
                                         .flow = std::move(flow),
                                         .session_expiry = expiry,
                                         .active_only = active_only,
                                         .error_text = std::move(error_text),
                                         .error_flow = std::move(error_flow),
                                         .url_token = std::move(token)};
          if (!url.empty()) {
            endpoint.webhook.push_back({.url = std::move(url),
                                        .secret_source = webhook_source(id, secret_source),
                                        .url_source = std::move(url_source),
                                        .has_secret = has_secret});
          }
          bundle_.endpoints.push_back(std::move(endpoint));
        },
        "SELECT e.id, e.name, f.name, e.session_expiry_ms, e.active_only, e.error_text, "
        "COALESCE(g.name, ''), e.url_token,"
        " e.webhook_url, e.webhook_url_source, CASE WHEN e.webhook_secret = '' THEN 0 ELSE 1 END,"
        " e.webhook_secret_source FROM endpoints e JOIN flows f ON f.id = e.flow_id"
        " LEFT JOIN flows g ON g.id = e.error_flow_id"
        " WHERE e.project_id = :p ORDER BY e.name",
        project_);
  }

  Connection& connection_;
  const Sealer& sealer_;
  const std::string& project_;
  model::Bundle bundle_;
};

}  // namespace

Result<model::Bundle> Assets::export_bundle(const std::string& project_id) const {
  return read_snapshot(database_, [&](Connection& connection) {
    return Export(connection, sealer_, project_id).run();
  });
}

}  // namespace conversed::store
