// The part of Assets that the API and the operators use.
#include <algorithm>

#include "store/accounts/people.h"
#include "store/assets/assets.h"
#include "store/assets/connection_hosts.h"
#include "store/model/ids.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::Result;

namespace {

Result<std::string> found_or(std::optional<std::string> id, std::string message) {
  if (!id) return fail(Errc::not_found, std::move(message));
  return *std::move(id);
}

std::int64_t token_count(Connection& connection, const std::string& organisation_id) {
  return connection.number(
      "SELECT COUNT(*) FROM tokens WHERE project_id IN"
      " (SELECT id FROM projects WHERE organisation_id = :o)",
      organisation_id);
}

}  // namespace

void Assets::grow(Writer& writer, Lexicons lexicons) {
  writer.on_commit([this, lexicons] {
    if (lexicons == Lexicons::may_change) lexicon_generation_.fetch_add(1);
    generation_.fetch_add(1);
  });
}

Result<std::vector<ProjectInfo>> Assets::projects(const std::string& organisation_id) const {
  return read(database_, [&](Connection& connection) {
    return connection.all(
        [&](std::string id, std::string name) {
          return ProjectInfo{std::move(id), organisation_id, std::move(name)};
        },
        "SELECT id, name FROM projects WHERE organisation_id = :o ORDER BY name", organisation_id);
  });
}

Result<ProjectInfo> Assets::project(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) -> Result<ProjectInfo> {
    auto row = connection.row<std::string, std::string>(
        "SELECT organisation_id, name FROM projects WHERE id = :i", project_id);
    if (!row) return fail(Errc::not_found, "there is no such project");
    return ProjectInfo{project_id, std::get<0>(*row), std::get<1>(*row)};
  });
}

Result<std::vector<Locale>> Assets::locales(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) {
    return connection.all(
        [&](std::string id, std::string name) {
          return Locale{std::move(id), std::move(name)};
        },
        "SELECT id, name FROM locales WHERE project_id = :p ORDER BY n", project_id);
  });
}

Result<nlohmann::json> Assets::proactive(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) -> Result<nlohmann::json> {
    const auto text =
        connection.value<std::string>("SELECT proactive FROM projects WHERE id = :i", project_id);
    if (!text) return fail(Errc::not_found, "there is no such project");
    return stored_json(*text);
  });
}

Result<Token> Assets::create_token(const std::string& project_id, const NewToken& wanted,
                                   std::int64_t max_tokens) {
  Token token{.id = model::new_id(),
              .project_id = project_id,
              .label = {},
              .type = wanted.type,
              .script = wanted.script,
              .created_by = wanted.created_by,
              .changed_by = wanted.created_by};
  return committer_.write_and_wait([&](Writer& writer) -> Result<Token> {
    Connection& connection = writer.connection();
    const auto taken = [&](const std::string& name) {
      return connection
          .value<std::string>("SELECT id FROM tokens WHERE project_id = :p AND label = :l",
                              project_id, name)
          .has_value();
    };
    const auto organisation = connection.value<std::string>(
        "SELECT organisation_id FROM projects WHERE id = :i", project_id);
    if (!organisation) return fail(Errc::not_found, "there is no such project");
    token.label = wanted.label;
    auto n = connection.number("SELECT COUNT(*) FROM tokens WHERE project_id = :p", project_id);
    while (token.label.empty() || (wanted.label.empty() && taken(token.label))) {
      token.label = "Token " + std::to_string(++n);
    }
    if (taken(token.label)) {
      return fail(Errc::conflict, "there is a Token with this label already");
    }
    if (max_tokens > 0 && token_count(connection, *organisation) >= max_tokens) {
      return fail(Errc::quota_exhausted, "the plan's quota of Tokens is used up");
    }
    token.created_at = token.changed_at = writer.now();
    const auto now = writer.now();
    connection.run(
        "INSERT INTO tokens (id, project_id, label, type, script, created_at, created_by,"
        " changed_at, changed_by) VALUES (:i, :p, :l, :t, :s, :c, :b, :d, :e)",
        token.id, project_id, token.label, token.type, token.script, now, token.created_by, now,
        token.changed_by);
    grow(writer, Lexicons::stay);
    return token;
  });
}

Result<std::int64_t> Assets::count_tokens(const std::string& organisation_id) const {
  return read(database_, [&](Connection& connection) -> Result<std::int64_t> {
    return token_count(connection, organisation_id);
  });
}

Result<std::vector<ConnectionInfo>> Assets::connections(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) {
    return connection.all(
        [&](std::string id, std::string name, std::string type, const std::string& hosts) {
          return ConnectionInfo{std::move(id), std::move(name), std::move(type), hosts_of(hosts)};
        },
        "SELECT id, name, type, hosts FROM connections WHERE project_id = :p ORDER BY name",
        project_id);
  });
}

Result<std::string> Assets::project_of_connection(const std::string& id) const {
  return read(database_, [&](Connection& connection) {
    return found_or(
        connection.value<std::string>("SELECT project_id FROM connections WHERE id = :i", id),
        "there is no such Connection");
  });
}

Result<void> Assets::delete_connection(const std::string& project_id, const std::string& id) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    grow(writer, Lexicons::stay);
    const auto deleted = writer.connection().run_counted(
        "DELETE FROM connections WHERE id = :i AND project_id = :p", id, project_id);
    return deleted == 1 ? Result<void>() : fail(Errc::not_found, "there is no such Connection");
  });
}

Result<std::string> Assets::project_of_lexicon(const std::string& id) const {
  return read(database_, [&](Connection& connection) {
    return found_or(
        connection.value<std::string>("SELECT project_id FROM lexicons WHERE id = :i", id),
        "there is no such Lexicon");
  });
}

Result<std::vector<LexiconEntry>> Assets::lexicon_entries(const std::string& lexicon_id) const {
  return read(database_, [&](Connection& connection) {
    std::map<std::string, std::string> names;
    connection.rows(
        [&](std::string id, std::string name) { names.emplace(std::move(id), std::move(name)); },
        "SELECT id, name FROM lexicon_slots WHERE lexicon_id = :l", lexicon_id);
    return connection.all(
        [&](std::string id, std::string main, const std::string& keyphrases,
            const std::string& slots, std::string data) {
          LexiconEntry entry{.id = std::move(id),
                             .main_keyphrase = std::move(main),
                             .keyphrases = list_from_text(keyphrases),
                             .slots = {},
                             .slot_ids = list_from_text(slots),
                             .data = std::move(data)};
          for (const auto& slot : entry.slot_ids) entry.slots.push_back(names[slot]);
          return entry;
        },
        "SELECT id, main_keyphrase, keyphrases, slots, data FROM lexicon_entries"
        " WHERE lexicon_id = :l ORDER BY n",
        lexicon_id);
  });
}

Result<std::string> Assets::project_of_source(const std::string& store_id,
                                              const std::string& source_id) const {
  return read(database_, [&](Connection& connection) {
    return found_or(connection.value<std::string>(
                        "SELECT s.project_id FROM knowledge_sources c JOIN knowledge_stores s"
                        " ON s.id = c.store_id WHERE c.id = :c AND s.id = :s",
                        source_id, store_id),
                    "there is no such Knowledge source");
  });
}

Result<std::vector<KnowledgeChunk>> Assets::chunks(const std::string& source_id) const {
  return read(database_, [&](Connection& connection) {
    return connection.all(
        [&](std::string id, std::string store, std::int64_t n, std::string text, bool disabled,
            std::string data, model::Timestamp created) {
          return KnowledgeChunk{.id = std::move(id),
                                .store_id = std::move(store),
                                .source_id = source_id,
                                .order = n,
                                .text = std::move(text),
                                .disabled = disabled,
                                .data = std::move(data),
                                .created_at = created};
        },
        "SELECT k.id, c.store_id, k.n, k.text, k.disabled, k.data, k.created_at"
        " FROM knowledge_chunks k JOIN knowledge_sources c ON c.id = k.source_id"
        " WHERE k.source_id = :s ORDER BY k.n",
        source_id);
  });
}

Result<std::int64_t> Assets::count_chunks(const std::string& organisation_id) const {
  return read(database_, [&](Connection& connection) {
    return connection.number(
        "SELECT SUM(c.chunk_count) FROM projects p JOIN knowledge_stores s ON s.project_id = p.id"
        " JOIN knowledge_sources c ON c.store_id = s.id WHERE p.organisation_id = :o",
        organisation_id);
  });
}

}  // namespace conversed::store
