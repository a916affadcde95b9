// The part of Assets that imports a bundle, as a whole or not at all: the import is one write of
// the Committer, whose savepoint undoes it at the first error.
#include <algorithm>

#include "store/accounts/people.h"
#include "store/assets/assets.h"
#include "store/assets/flow_versions.h"
#include "store/assets/lists.h"
#include "store/knowledge/knowledge.h"
#include "store/model/ids.h"
#include "store/secrets/sealer.h"
#include "store/sql/read.h"
#include "store/text/ascii.h"

namespace conversed::store {

using nlohmann::json;

namespace {

struct PlacedChunk {
  std::string id;
  std::optional<std::int64_t> place{};  // none: the chunk is new
  model::Timestamp created{};
};

// The distances of new places: behind the last place, and between two present places.
constexpr std::int64_t step = std::int64_t{1} << 28;
constexpr std::int64_t near = std::int64_t{1} << 16;

// Keeps the places of the longest run: chunks with rising places, maybe with others between them.
// The other known chunks have moved and lose their places.
void keep_longest_run(std::vector<PlacedChunk>& chunks) {
  std::vector<std::size_t> ends;  // ends[k]: the chunk with the lowest place that ends a run of k+1
  std::vector<std::size_t> earlier(chunks.size(), chunks.size());  // its predecessor in its run
  for (std::size_t i = 0; i < chunks.size(); ++i) {
    if (!chunks[i].place) continue;
    const auto end = std::ranges::lower_bound(ends, *chunks[i].place, {},
                                              [&](auto each) { return *chunks[each].place; });
    if (end != ends.begin()) earlier[i] = *std::prev(end);
    if (end == ends.end())
      ends.push_back(i);
    else
      *end = i;
  }
  std::size_t kept = ends.empty() ? chunks.size() : ends.back();
  for (std::size_t i = chunks.size(); i-- > 0;) {
    if (i == kept)
      kept = earlier[i];
    else
      chunks[i].place.reset();
  }
}

// Gives each new chunk a place behind all `old` places of its gap, and at the end behind `last`, so
// that cursors at removed chunks lead to it. `old` is in rising order. False: there is no room.
bool place_new(std::vector<PlacedChunk>& chunks, const std::vector<std::int64_t>& old,
               std::int64_t last) {
  for (std::size_t begin = 0; begin < chunks.size(); ++begin) {
    std::size_t end = begin;
    while (end < chunks.size() && !chunks[end].place) ++end;
    std::int64_t place = last;
    std::int64_t distance = step;
    if (end < chunks.size()) {
      const auto steps = static_cast<std::int64_t>(end - begin) + 1;
      const auto behind = std::ranges::lower_bound(old, *chunks[end].place);
      const bool in_front = behind == old.begin();
      place = in_front ? *behind - steps * step : *std::prev(behind);
      if (!in_front) distance = std::min((*behind - place) / steps, near);
    }
    if (distance < 1) return false;
    for (; begin < end; ++begin) chunks[begin].place = place += distance;
  }
  return true;
}

struct Import {
  Writer& writer_;
  const Sealer& sealer_;
  const std::string& organisation_id_;
  const model::Bundle& bundle_;
  const ImportLimits& limits_;
  const std::string& by_;
  const NewVersions versions_;
  Connection& connection_ = writer_.connection();
  const model::Timestamp now_ = writer_.now();
  std::string project_{};
  std::map<std::string, std::string> locales_{};  // name → id
  std::map<std::string, std::string> slots_{};    // name → id, of the lexicon in hand
  std::map<std::string, std::string> flows_{};    // name → id
  json report_{};

  Result<json> run() {
    if (auto taken = take_project(); !taken) return fail(taken.error());
    // Locales that the bundle does not name follow the bundle's locales.
    connection_.run("UPDATE locales SET n = n + :c WHERE project_id = :p", bundle_.locales.size(),
                    project_);
    report_["project"]["locales"] =
        take_names("locales", "project_id", project_, bundle_.locales, locales_);
    if (auto taken = take_members(); !taken) return fail(taken.error());
    if (auto taken = take_tokens(); !taken) return fail(taken.error());
    take_connections();
    take_lexicons();
    take_knowledge();
    index_knowledge(connection_);
    if (auto taken = take_flows(); !taken) return fail(taken.error());
    if (auto taken = take_endpoints(); !taken) return fail(taken.error());
    return std::move(report_);
  }

  struct SealedSecrets {
    std::string current;   // empty: none
    std::string previous;  // empty: none
    model::Timestamp changed_at{};
  };

  // The id of the owner's row with this name, or a new id.
  std::string id_of(const std::string& table, const std::string& owner_column,
                    const std::string& owner, const std::string& name,
                    const std::string& name_column = "name") {
    const auto sql =
        "SELECT id FROM " + table + " WHERE " + owner_column + " = :o AND " + name_column + " = :n";
    return connection_.value<std::string>(sql, owner, name).value_or(model::new_id());
  }

  Result<void> take_project() {
    if (!connection_.value<std::string>("SELECT id FROM organisations WHERE id = :i",
                                        organisation_id_)) {
      return fail(Errc::not_found, "there is no such organisation");
    }
    project_ = id_of("projects", "organisation_id", organisation_id_, bundle_.project_name);
    connection_.run(
        "INSERT INTO projects (id, organisation_id, name, proactive) VALUES (:i, :o, :n, :p)"
        " ON CONFLICT (id) DO UPDATE SET proactive = excluded.proactive",
        project_, organisation_id_, bundle_.project_name, bundle_.proactive.dump());
    report_["project"] = {{"_id", project_}, {"name", bundle_.project_name}};
    return {};
  }

  // Writes rows that have only a name, in the bundle's order. Sets `ids`, by name; returns the
  // report.
  json take_names(const std::string& table, const std::string& owner_column,
                  const std::string& owner, const std::vector<std::string>& names,
                  std::map<std::string, std::string>& ids) {
    const std::string sql = "INSERT INTO " + table + " (id, " + owner_column +
                            ", name, n) VALUES (:i, :o, :m, :n)"
                            " ON CONFLICT (id) DO UPDATE SET n = excluded.n";
    auto report = json::array();
    ids.clear();
    for (std::size_t n = 0; n < names.size(); ++n) {
      const auto id = id_of(table, owner_column, owner, names[n]);
      connection_.run(sql, id, owner, names[n], n);
      ids[names[n]] = id;
      report.push_back({{"_id", id}, {"name", names[n]}});
    }
    return report;
  }

  Result<void> take_members() {
    auto& report = report_["members"] = json::array();
    for (const auto& member : bundle_.members) {
      auto row = connection_.row<std::string, std::string>(
          "SELECT id, organisation_id FROM users WHERE email_folded = :e",
          text::lower_case(member.email));
      if (row && std::get<1>(*row) != organisation_id_) {
        return fail(Errc::conflict, "the address " + member.email + " is taken");
      }
      std::string id;
      if (row) {
        id = std::get<0>(*row);
        connection_.run("UPDATE users SET name = :n WHERE id = :i", member.name, id);
      } else {
        auto made =
            insert_user(connection_, organisation_id_, {.email = member.email, .name = member.name},
                        std::nullopt, writer_.now());
        if (!made) return fail(made.error());
        id = *std::move(made);
      }
      std::vector<std::string> allowed;
      for (const auto& name : member.allowed_locales) {
        const auto locale = locales_.find(name);
        if (locale == locales_.end()) {
          return fail(Errc::invalid_argument, "the project has no locale " + name);
        }
        allowed.push_back(locale->second);
      }
      connection_.run(
          "INSERT INTO members (project_id, user_id, roles, allowed_locales) VALUES"
          " (:p, :u, :r, :l) ON CONFLICT (project_id, user_id) DO UPDATE"
          " SET roles = excluded.roles, allowed_locales = excluded.allowed_locales",
          project_, id, member.roles, allowed);
      report.push_back({{"_id", id}, {"email", member.email}});
    }
    return {};
  }

  // If the limit is exceeded already, only new Tokens are refused.
  Result<void> take_tokens() {
    const auto before = token_count(connection_, organisation_id_);
    auto& report = report_["tokens"] = json::array();
    for (const auto& token : bundle_.tokens) {
      const auto id = id_of("tokens", "project_id", project_, token.label, "label");
      connection_.run(
          "INSERT INTO tokens (id, project_id, label, type, script, created_at, created_by,"
          " changed_at, changed_by) VALUES (:i, :p, :l, :t, :s, :c, '', :d, '')"
          " ON CONFLICT (id) DO UPDATE SET type = excluded.type, script = excluded.script,"
          " changed_at = excluded.changed_at",
          id, project_, token.label, token.type, token.script, now_, now_);
      report.push_back({{"_id", id}, {"label", token.label}});
    }
    const auto after = token_count(connection_, organisation_id_);
    const bool within = limits_.tokens == 0 || static_cast<std::uint64_t>(after) <= limits_.tokens;
    if (after == before || within) return {};
    return fail(Errc::quota_exhausted,
                "the plan's quota of Tokens does not suffice; nothing was imported");
  }

  void take_connections() {
    auto& report = report_["connections"] = json::array();
    for (const auto& connection : bundle_.connections) {
      const auto id = id_of("connections", "project_id", project_, connection.name);
      connection_.run(
          "INSERT INTO connections (id, project_id, name, type, fields, source, hosts)"
          " VALUES (:i, :p, :n, :t, :f, :s, :h) ON CONFLICT (id) DO UPDATE SET"
          " type = excluded.type, fields = excluded.fields, source = excluded.source,"
          " hosts = excluded.hosts",
          id, project_, connection.name, connection.type,
          sealer_.seal("connections/fields/" + id, connection.fields.dump()),
          sealer_.seal("connections/source/" + id, connection.source.dump()), connection.hosts);
      report.push_back({{"_id", id}, {"name", connection.name}});
    }
  }

  void take_lexicons() {
    auto& report = report_["lexicons"] = json::array();
    for (const auto& lexicon : bundle_.lexicons) {
      const auto id = id_of("lexicons", "project_id", project_, lexicon.name);
      connection_.run(
          "INSERT INTO lexicons (id, project_id, name) VALUES (:i, :p, :n)"
          " ON CONFLICT (id) DO UPDATE SET version = lexicons.version + 1",
          id, project_, lexicon.name);
      auto slots = take_names("lexicon_slots", "lexicon_id", id, lexicon.slots, slots_);
      take_entries(id, lexicon);
      report.push_back({{"_id", id}, {"name", lexicon.name}, {"slots", std::move(slots)}});
    }
  }

  // Entries keep their ids by their main keyphrase; entries that the bundle does not name are
  // removed.
  void take_entries(const std::string& lexicon, const model::BundleLexicon& source) {
    const auto known =
        read_pairs(connection_,
                   "SELECT main_keyphrase, id FROM lexicon_entries WHERE lexicon_id = :l", lexicon);
    connection_.run("DELETE FROM lexicon_entries WHERE lexicon_id = :l", lexicon);
    for (std::size_t n = 0; n < source.entries.size(); ++n) {
      const auto& entry = source.entries[n];
      const auto old = known.find(entry.main_keyphrase);
      std::vector<std::string> slots;
      for (const auto& slot : entry.slots) slots.push_back(slots_[slot]);
      connection_.run(
          "INSERT INTO lexicon_entries (id, lexicon_id, main_keyphrase, keyphrases, slots, data, n)"
          " VALUES (:i, :l, :m, :k, :s, :d, :n)",
          old == known.end() ? model::new_id() : old->second, lexicon, entry.main_keyphrase,
          entry.keyphrases, slots, entry.data.dump(), n);
    }
  }

  void take_knowledge() {
    auto& report = report_["knowledgeStores"] = json::array();
    for (const auto& store : bundle_.knowledge_stores) {
      const auto id = id_of("knowledge_stores", "project_id", project_, store.name);
      connection_.run(
          "INSERT INTO knowledge_stores (id, project_id, name) VALUES (:i, :p, :n)"
          " ON CONFLICT (id) DO NOTHING",
          id, project_, store.name);
      auto sources = json::array();
      std::int64_t n = 0;
      for (const auto& source : store.sources) {
        const auto source_id = id_of("knowledge_sources", "store_id", id, source.name);
        connection_.run(
            "INSERT INTO knowledge_sources (id, store_id, name, n) VALUES (:i, :s, :m, :n)"
            " ON CONFLICT (id) DO UPDATE SET n = excluded.n",
            source_id, id, source.name, n++);
        take_chunks(source_id, source.chunks);
        sources.push_back({{"_id", source_id}, {"name", source.name}});
      }
      report.push_back({{"_id", id}, {"name", store.name}, {"sources", std::move(sources)}});
    }
  }

  // A chunk has no name: a chunk with the same text keeps its id, and its place unless it has
  // moved.
  void take_chunks(const std::string& source, const std::vector<model::BundleChunk>& chunks) {
    std::multimap<std::string, PlacedChunk> known;  // chunks with the same text keep their order
    std::vector<std::int64_t> places;
    connection_.rows(
        [&](std::string text, std::string id, std::int64_t place, model::Timestamp created) {
          places.push_back(place);
          known.emplace(std::move(text), PlacedChunk{std::move(id), place, created});
        },
        "SELECT text, id, place, created_at FROM knowledge_chunks WHERE source_id = :s"
        " ORDER BY place",
        source);
    std::vector<PlacedChunk> all;
    for (const auto& chunk : chunks) {
      const auto old = known.lower_bound(chunk.text);
      const bool is_new = old == known.end() || old->first != chunk.text;
      all.push_back(is_new ? PlacedChunk{model::new_id(), std::nullopt, now_}
                           : std::move(old->second));
      if (!is_new) known.erase(old);
    }
    for (const auto& [text, chunk] : known) {
      connection_.run("DELETE FROM knowledge_chunks WHERE id = :i", chunk.id);
    }
    keep_longest_run(all);
    auto last =
        connection_.number("SELECT last_place FROM knowledge_sources WHERE id = :s", source);
    const bool renumbered = !place_new(all, places, last);
    if (renumbered) {
      for (auto& chunk : all) chunk.place = last += step;
    }
    if (!all.empty()) last = std::max(last, *all.back().place);
    connection_.run(
        "UPDATE knowledge_sources SET last_place = :l, numbering = numbering + :r WHERE id = :s",
        last, renumbered, source);
    // Unchanged chunks are not written, so that a second import of the same bundle does not change
    // the index.
    for (std::size_t i = 0; i < all.size(); ++i) {
      const std::string data = chunks[i].data.dump();
      connection_.run(
          "INSERT INTO knowledge_chunks (id, source_id, n, place, text, data, disabled, created_at)"
          " VALUES (:i, :s, :n, :p, :t, :d, 0, :c) ON CONFLICT (id) DO UPDATE SET n = excluded.n,"
          " place = excluded.place, data = excluded.data, disabled = 0"
          " WHERE knowledge_chunks.n <> excluded.n OR knowledge_chunks.place <> excluded.place"
          " OR knowledge_chunks.data <> excluded.data OR knowledge_chunks.disabled <> 0",
          all[i].id, source, i, all[i].place, chunks[i].text, data, all[i].created);
    }
  }

  Result<void> take_flows() {
    auto& report = report_["flows"] = json::array();
    for (const auto& flow : bundle_.flows) {
      const auto put = write_flow_version(writer_, {.project_id = project_,
                                                    .name = flow.name,
                                                    .definition = flow.definition.dump(),
                                                    .by = by_,
                                                    .restored_from = std::nullopt,
                                                    .as = versions_});
      if (!put) return fail(put.error());
      flows_[flow.name] = put->flow_id;
      report.push_back({{"_id", put->flow_id}, {"name", flow.name}, {"version", put->version}});
    }
    prune_flow_versions(connection_, project_);
    return {};
  }

  Result<std::string> url_token_for(const model::BundleEndpoint& endpoint, const std::string& id) {
    if (endpoint.url_token.empty()) {
      return connection_.value<std::string>("SELECT url_token FROM endpoints WHERE id = :i", id)
          .value_or(model::random_hex(model::url_token_length / 2));
    }
    const auto owner = connection_.value<std::string>(
        "SELECT id FROM endpoints WHERE url_token = :t", endpoint.url_token);
    if (owner && *owner != id) {
      return fail(Errc::conflict, "the urlToken of the Endpoint " + endpoint.name +
                                      " is taken by another Endpoint");
    }
    return endpoint.url_token;
  }

  // A replaced secret becomes the previous one. The same secret again changes nothing.
  SealedSecrets webhook_secrets_for(const std::string& id, const std::string& secret) {
    if (secret.empty()) return {};
    const auto place = "endpoints/webhook_secret/" + id;
    auto row = connection_.row<std::string, std::string, model::Timestamp>(
        "SELECT webhook_secret, previous_webhook_secret, webhook_secret_changed_at FROM endpoints"
        " WHERE id = :i",
        id);
    if (!row || std::get<0>(*row).empty()) return {sealer_.seal(place, secret), "", now_};
    auto& [current, previous, changed_at] = *row;
    const auto before = sealer_.open_sealed(place, current);
    if (before && *before == secret) return {std::move(current), std::move(previous), changed_at};
    return {sealer_.seal(place, secret),
            before ? sealer_.seal("endpoints/previous_webhook_secret/" + id, *before) : "", now_};
  }

  Result<void> take_endpoints() {
    auto& report = report_["endpoints"] = json::array();
    for (const auto& endpoint : bundle_.endpoints) {
      const auto id = id_of("endpoints", "project_id", project_, endpoint.name);
      const auto flow = flows_.find(endpoint.flow);
      if (flow == flows_.end()) {
        return fail(Errc::invalid_argument, "the bundle has no Flow " + endpoint.flow);
      }
      std::optional<std::string> error_flow;
      if (!endpoint.error_flow.empty()) {
        const auto found = flows_.find(endpoint.error_flow);
        if (found == flows_.end()) {
          return fail(Errc::invalid_argument, "the bundle has no Flow " + endpoint.error_flow);
        }
        error_flow = found->second;
      }
      auto token = url_token_for(endpoint, id);
      if (!token) return fail(token.error());
      model::BundleWebhook webhook;
      if (!endpoint.webhook.empty()) webhook = endpoint.webhook.front();
      const auto secrets = webhook_secrets_for(id, webhook.secret);
      connection_.run(
          "INSERT INTO endpoints (id, project_id, name, flow_id, url_token, session_expiry_ms,"
          " active_only, error_text, error_flow_id, webhook_url, webhook_url_source, "
          "webhook_secret,"
          " previous_webhook_secret, webhook_secret_changed_at, webhook_secret_source)"
          " VALUES (:i, :p, :n, :f, :t, :e, :a, :x, :g, :w, :u, :s, :r, :h, :c)"
          " ON CONFLICT (id) DO UPDATE SET flow_id = excluded.flow_id,"
          " url_token = excluded.url_token,"
          " session_expiry_ms = excluded.session_expiry_ms, active_only = excluded.active_only,"
          " error_text = excluded.error_text, error_flow_id = excluded.error_flow_id,"
          " webhook_url = excluded.webhook_url,"
          " webhook_url_source = excluded.webhook_url_source, webhook_secret = "
          "excluded.webhook_secret,"
          " previous_webhook_secret = excluded.previous_webhook_secret,"
          " webhook_secret_changed_at = excluded.webhook_secret_changed_at,"
          " webhook_secret_source = excluded.webhook_secret_source",
          id, project_, endpoint.name, flow->second, *token, endpoint.session_expiry.count(),
          endpoint.active_only, endpoint.error_text, error_flow, webhook.url, webhook.url_source,
          secrets.current, secrets.previous, secrets.changed_at,
          webhook.secret_source.empty()
              ? std::string()
              : sealer_.seal("endpoints/webhook_secret_source/" + id, webhook.secret_source));
      report.push_back({{"_id", id}, {"name", endpoint.name}, {"urlToken", *token}});
    }
    follow_up_new_endpoints();
    return {};
  }

  // If the project's proactive follow-up is set up, a new Endpoint gets the follow-up Flow of the
  // others.
  void follow_up_new_endpoints() {
    const auto journey = connection_.value<std::string>(
        "SELECT definition FROM journeys WHERE project_id = :p", project_);
    if (!journey || stored_json(*journey).contains("endpoint")) return;
    const auto flow = connection_.value<std::string>(
        "SELECT MIN(follow_up_flow_id) FROM endpoints WHERE project_id = :p", project_);
    if (!flow) return;
    connection_.run(
        "UPDATE endpoints SET follow_up_flow_id = :f WHERE project_id = :p"
        " AND follow_up_flow_id IS NULL",
        *flow, project_);
  }
};

}  // namespace

Result<json> Assets::import_bundle(Writer& writer, const std::string& organisation_id,
                                   const model::Bundle& bundle, const ImportLimits& limits,
                                   const std::string& by, NewVersions versions) {
  grow(writer);
  return Import{writer, sealer_, organisation_id, bundle, limits, by, versions}.run();
}

Result<json> Assets::import_bundle(const std::string& organisation_id, const model::Bundle& bundle,
                                   const ImportLimits& limits, const std::string& by,
                                   NewVersions versions) {
  return committer_.write_and_wait([&](Writer& writer) {
    return import_bundle(writer, organisation_id, bundle, limits, by, versions);
  });
}

}  // namespace conversed::store
