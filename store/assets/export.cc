// The part of Assets that gives a project back as the bundle that it could have come from.
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
    add_locales();
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
  // Id and name of each, in this order.
  template <typename... In>
  std::vector<std::pair<std::string, std::string>> named(std::string_view sql, const In&... in) {
    std::vector<std::pair<std::string, std::string>> list;
    connection_.rows([&](std::string id,
                         std::string name) { list.emplace_back(std::move(id), std::move(name)); },
                     sql, in...);
    return list;
  }

  void add_locales() {
    for (auto& [id, name] :
         named("SELECT id, name FROM locales WHERE project_id = :p ORDER BY n", project_)) {
      bundle_.locales.push_back(name);
      locales_.emplace(id, std::move(name));
    }
  }

  void add_members() {
    connection_.rows(
        [&](std::string email, std::string name, std::vector<std::string> roles,
            const std::vector<std::string>& allowed) {
          model::BundleMember member{.email = std::move(email),
                                     .name = std::move(name),
                                     .roles = std::move(roles),
                                     .allowed_locales = {}};
          for (const auto& id : allowed) {
            const auto locale = locales_.find(id);
            if (locale != locales_.end()) member.allowed_locales.push_back(locale->second);
          }
          bundle_.members.push_back(std::move(member));
        },
        "SELECT u.email, u.name, m.roles, m.allowed_locales FROM members m"
        " JOIN users u ON u.id = m.user_id WHERE m.project_id = :p ORDER BY u.email_folded",
        project_);
  }

  void add_tokens() {
    connection_.rows(
        [&](std::string label, std::string type, std::string script) {
          bundle_.tokens.push_back({std::move(label), std::move(type), std::move(script)});
        },
        "SELECT label, type, script FROM tokens WHERE project_id = :p ORDER BY label", project_);
  }

  void add_connections() {
    connection_.rows(
        [&](const std::string& id, std::string name, std::string type, const std::string& source,
            std::vector<std::string> hosts) {
          bundle_.connections.push_back(
              {.name = std::move(name),
               .type = std::move(type),
               .fields = nullptr,
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
      model::BundleLexicon lexicon{.name = std::move(name), .slots = {}, .entries = {}};
      std::map<std::string, std::string> slots;
      for (auto& [slot, slot_name] :
           named("SELECT id, name FROM lexicon_slots WHERE lexicon_id = :l ORDER BY n", id)) {
        lexicon.slots.push_back(slot_name);
        slots.emplace(slot, std::move(slot_name));
      }
      connection_.rows(
          [&](std::string main, std::vector<std::string> keyphrases,
              const std::vector<std::string>& slot_ids, json data) {
            model::BundleLexiconEntry entry{.main_keyphrase = std::move(main),
                                            .keyphrases = std::move(keyphrases),
                                            .slots = {},
                                            .data = std::move(data)};
            for (const auto& slot : slot_ids) {
              const auto known = slots.find(slot);
              if (known != slots.end()) entry.slots.push_back(known->second);
            }
            lexicon.entries.push_back(std::move(entry));
          },
          "SELECT main_keyphrase, keyphrases, slots, data FROM lexicon_entries"
          " WHERE lexicon_id = :l ORDER BY n",
          id);
      bundle_.lexicons.push_back(std::move(lexicon));
    }
  }

  void add_knowledge() {
    for (auto& [id, name] :
         named("SELECT id, name FROM knowledge_stores WHERE project_id = :p ORDER BY name",
               project_)) {
      model::BundleKnowledgeStore store{.name = std::move(name), .sources = {}};
      for (auto& [source_id, source_name] :
           named("SELECT id, name FROM knowledge_sources WHERE store_id = :s ORDER BY n", id)) {
        model::BundleSource source{.name = std::move(source_name), .chunks = {}};
        connection_.rows(
            [&](std::string text, json data) {
              source.chunks.push_back({std::move(text), std::move(data)});
            },
            "SELECT text, data FROM knowledge_chunks WHERE source_id = :s ORDER BY n", source_id);
        store.sources.push_back(std::move(source));
      }
      bundle_.knowledge_stores.push_back(std::move(store));
    }
  }

  void add_flows() {
    connection_.rows(
        [&](std::string name, json definition) {
          bundle_.flows.push_back({std::move(name), std::move(definition)});
        },
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
            std::string token, std::string url, std::string url_source, bool has_secret,
            const std::string& secret_source) {
          model::BundleEndpoint endpoint{.name = std::move(name),
                                         .flow = std::move(flow),
                                         .session_expiry = expiry,
                                         .active_only = active_only,
                                         .error_text = std::move(error_text),
                                         .url_token = std::move(token),
                                         .webhook = {}};
          if (!url.empty()) {
            endpoint.webhook.push_back({.url = std::move(url),
                                        .secret = {},
                                        .secret_source = webhook_source(id, secret_source),
                                        .url_source = std::move(url_source),
                                        .has_secret = has_secret});
          }
          bundle_.endpoints.push_back(std::move(endpoint));
        },
        "SELECT e.id, e.name, f.name, e.session_expiry_ms, e.active_only, e.error_text, "
        "e.url_token,"
        " e.webhook_url, e.webhook_url_source, CASE WHEN e.webhook_secret = '' THEN 0 ELSE 1 END,"
        " e.webhook_secret_source FROM endpoints e JOIN flows f ON f.id = e.flow_id"
        " WHERE e.project_id = :p ORDER BY e.name",
        project_);
  }

  Connection& connection_;
  const Sealer& sealer_;
  const std::string& project_;
  model::Bundle bundle_;
  std::map<std::string, std::string> locales_;  // id → name
};

}  // namespace

Result<model::Bundle> Assets::export_bundle(const std::string& project_id) const {
  return read_snapshot(database_, [&](Connection& connection) {
    return Export(connection, sealer_, project_id).run();
  });
}

}  // namespace conversed::store
