// The part of Assets that the API and the operators use.
#include <algorithm>

#include "store/accounts/people.h"
#include "store/assets/assets.h"
#include "store/assets/lists.h"
#include "store/commit/row_writes.h"
#include "store/model/ids.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

template <typename T>
Result<T> found_or(std::optional<T> found, std::string message) {
  if (!found) return fail(Errc::not_found, std::move(message));
  return *std::move(found);
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
  return read_all(
      database_, row_of<&ProjectInfo::id, &ProjectInfo::organisation_id, &ProjectInfo::name>,
      "SELECT id, organisation_id, name FROM projects WHERE organisation_id = :o ORDER BY name",
      organisation_id);
}

Result<ProjectInfo> Assets::project(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) {
    return found_or(connection.first(
                        row_of<&ProjectInfo::id, &ProjectInfo::organisation_id, &ProjectInfo::name>,
                        "SELECT id, organisation_id, name FROM projects WHERE id = :i", project_id),
                    "there is no such project");
  });
}

Result<std::vector<Locale>> Assets::locales(const std::string& project_id) const {
  return read_all(database_, row_of<&Locale::id, &Locale::name>,
                  "SELECT id, name FROM locales WHERE project_id = :p ORDER BY n", project_id);
}

Result<nlohmann::json> Assets::proactive(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) {
    return found_or(connection.value<nlohmann::json>("SELECT proactive FROM projects WHERE id = :i",
                                                     project_id),
                    "there is no such project");
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
  using Row = ConnectionInfo;
  return read_all(database_, row_of<&Row::id, &Row::name, &Row::type, &Row::hosts>,
                  "SELECT id, name, type, hosts FROM connections WHERE project_id = :p"
                  " ORDER BY name",
                  project_id);
}

Result<std::string> Assets::project_of_connection(const std::string& id) const {
  return read(database_, [&](Connection& connection) {
    return found_or(
        connection.value<std::string>("SELECT project_id FROM connections WHERE id = :i", id),
        "there is no such Connection");
  });
}

Result<void> Assets::delete_connection(const std::string& project_id, const std::string& id) {
  return committer_.write_and_wait([&](Writer& writer) {
    grow(writer, Lexicons::stay);
    return change_one(writer.connection(), "there is no such Connection",
                      "DELETE FROM connections WHERE id = :i AND project_id = :p", id, project_id);
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
    auto entries = connection.all(
        entry_row, std::string(select_entries).append("WHERE lexicon_id = :l ORDER BY n"),
        lexicon_id);
    name_slots(connection, lexicon_id, entries);
    return entries;
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
  return read_all(database_, chunk_row,
                  std::string(select_chunks).append("WHERE k.source_id = :s ORDER BY k.n"),
                  source_id);
}

Result<std::int64_t> Assets::count_chunks(const std::string& organisation_id) const {
  return read_number(
      database_,
      "SELECT SUM(c.chunk_count) FROM projects p JOIN knowledge_stores s ON s.project_id = p.id"
      " JOIN knowledge_sources c ON c.store_id = s.id WHERE p.organisation_id = :o",
      organisation_id);
}

}  // namespace conversed::store
