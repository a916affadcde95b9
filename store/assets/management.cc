// The part of Assets for the API and operators: whole lists and pages.
#include <array>
#include <iterator>
#include <map>
#include <set>

#include "store/assets/assets.h"
#include "store/assets/lists.h"
#include "store/commit/row_writes.h"
#include "store/model/ids.h"
#include "store/sql/read.h"

namespace conversed::store {

std::int64_t token_count(Connection& connection, const std::string& organisation_id) {
  return connection.number(
      "SELECT COUNT(*) FROM tokens WHERE project_id IN"
      " (SELECT id FROM projects WHERE organisation_id = :o)",
      organisation_id);
}

std::map<std::string, std::string, std::less<>> read_pairs(Connection& connection,
                                                           std::string_view sql,
                                                           const std::string& owner) {
  std::map<std::string, std::string, std::less<>> pairs;
  connection.rows(
      [&](std::string key, std::string value) { pairs.emplace(std::move(key), std::move(value)); },
      sql, owner);
  return pairs;
}

Result<std::vector<ProjectInfo>> Assets::projects(const std::string& organisation_id) const {
  return read_all(
      database_, row_of<&ProjectInfo::id, &ProjectInfo::organisation_id, &ProjectInfo::name>,
      "SELECT id, organisation_id, name FROM projects WHERE organisation_id = :o ORDER BY name",
      organisation_id);
}

Result<ProjectInfo> Assets::project(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) -> Result<ProjectInfo> {
    auto found = connection.first(
        row_of<&ProjectInfo::id, &ProjectInfo::organisation_id, &ProjectInfo::name>,
        "SELECT id, organisation_id, name FROM projects WHERE id = :i", project_id);
    if (!found) return fail(Errc::not_found, "there is no such project");
    return *std::move(found);
  });
}

Result<std::vector<Locale>> Assets::locales(const std::string& project_id) const {
  return read_all(database_, row_of<&Locale::id, &Locale::name>,
                  "SELECT id, name FROM locales WHERE project_id = :p ORDER BY n", project_id);
}

Result<nlohmann::json> Assets::proactive(const std::string& project_id) const {
  return read_value<nlohmann::json>(database_, "there is no such project",
                                    "SELECT proactive FROM projects WHERE id = :i", project_id);
}

Result<Token> Assets::create_token(const std::string& project_id, const NewToken& wanted,
                                   std::int64_t max_tokens) {
  Token token{.id = model::new_id(),
              .project_id = project_id,
              .type = wanted.type,
              .script = wanted.script,
              .created_by = wanted.created_by,
              .changed_by = wanted.created_by};
  return committer_.write_and_wait([&](Writer& writer) -> Result<Token> {
    Connection& connection = writer.connection();
    const auto taken = [&](const std::string& name) {
      return connection.exists("SELECT 1 FROM tokens WHERE project_id = :p AND label = :l",
                               project_id, name);
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
    connection.run(
        "INSERT INTO tokens (id, project_id, label, type, script, created_at, created_by,"
        " changed_at, changed_by) VALUES (:i, :p, :l, :t, :s, :c, :b, :d, :e)",
        token.id, project_id, token.label, token.type, token.script, token.created_at,
        token.created_by, token.changed_at, token.changed_by);
    grow(writer);
    return token;
  });
}

Result<std::vector<ConnectionInfo>> Assets::connections(const std::string& project_id) const {
  using Row = ConnectionInfo;
  return read_all(database_, row_of<&Row::id, &Row::name, &Row::type, &Row::hosts>,
                  "SELECT id, name, type, hosts FROM connections WHERE project_id = :p"
                  " ORDER BY name",
                  project_id);
}

Result<std::vector<EndpointInfo>> Assets::endpoints(const std::string& project_id) const {
  using Row = EndpointInfo;
  return read_all(database_,
                  row_of<&Row::id, &Row::project_id, &Row::name, &Row::url_token, &Row::flow,
                         &Row::has_webhook>,
                  "SELECT e.id, e.project_id, e.name, e.url_token, f.name,"
                  " CASE WHEN e.webhook_url = '' THEN 0 ELSE 1 END FROM endpoints e"
                  " JOIN flows f ON f.id = e.flow_id WHERE e.project_id = :p ORDER BY e.name",
                  project_id);
}

Result<PartNames> Assets::part_names(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) -> Result<PartNames> {
    const auto names = [&](std::string_view sql) {
      auto list = connection.values<std::string>(sql, project_id);
      return std::set<std::string, std::less<>>(std::make_move_iterator(list.begin()),
                                                std::make_move_iterator(list.end()));
    };
    return PartNames{
        .connections = names("SELECT name FROM connections WHERE project_id = :p"),
        .flows = names("SELECT name FROM flows WHERE project_id = :p"),
        .knowledge_stores = names("SELECT name FROM knowledge_stores WHERE project_id = :p"),
        .lexicons = names("SELECT name FROM lexicons WHERE project_id = :p")};
  });
}

Result<std::string> Assets::project_of_connection(const std::string& id) const {
  return read_value<std::string>(database_, "there is no such Connection",
                                 "SELECT project_id FROM connections WHERE id = :i", id);
}

Result<void> Assets::delete_connection(const std::string& project_id, const std::string& id) {
  return committer_.write_and_wait([&](Writer& writer) {
    grow(writer);
    return change_one(writer.connection(), "there is no such Connection",
                      "DELETE FROM connections WHERE id = :i AND project_id = :p", id, project_id);
  });
}

Result<std::string> Assets::project_of_lexicon(const std::string& id) const {
  return read_value<std::string>(database_, "there is no such Lexicon",
                                 "SELECT project_id FROM lexicons WHERE id = :i", id);
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
  return read_value<std::string>(database_, "there is no such Knowledge source",
                                 "SELECT s.project_id FROM knowledge_sources c"
                                 " JOIN knowledge_stores s ON s.id = c.store_id"
                                 " WHERE c.id = :c AND s.id = :s",
                                 source_id, store_id);
}

Result<std::vector<KnowledgeChunk>> Assets::chunks(const std::string& source_id) const {
  return read_all(database_, chunk_row,
                  std::string(select_chunks).append("WHERE k.source_id = :s ORDER BY k.place"),
                  source_id);
}

Result<std::int64_t> Assets::count_chunks(const std::string& organisation_id) const {
  return read_number(
      database_,
      "SELECT SUM(c.chunk_count) FROM projects p JOIN knowledge_stores s ON s.project_id = p.id"
      " JOIN knowledge_sources c ON c.store_id = s.id WHERE p.organisation_id = :o",
      organisation_id);
}

// ---- Read page by page

namespace {

constexpr std::array entry_fields{
    PagedField{"_id", "id", SqlType::text, Unique::yes},
    PagedField{"mainKeyphrase", "main_keyphrase", SqlType::text, Unique::yes},
    PagedField{"data", "data", SqlType::text, Unique::no},
};

// Within one source, the references are the same for all chunks.
constexpr std::array chunk_fields{
    PagedField{"_id", "id", SqlType::text, Unique::yes},
    PagedField{"order", "place", SqlType::integer, Unique::yes},
    PagedField{"text", "text", SqlType::text, Unique::no},
    PagedField{"disabled", "disabled", SqlType::integer, Unique::no},
    PagedField{"storeReference", "source_id", SqlType::text, Unique::no},
    PagedField{"sourceReference", "source_id", SqlType::text, Unique::no},
    // In seconds, as the API shows it.
    PagedField{"createdAt", "(created_at / 1000)", SqlType::integer, Unique::no},
};

}  // namespace

PagedList entry_list(const std::string& lexicon_id) {
  return {.scope = "entries " + lexicon_id,
          .from = "lexicon_entries WHERE lexicon_id = :p0",
          .values = {lexicon_id},
          .fields = entry_fields,
          .own_order = entry_fields[0],
          .total_sql = "SELECT entry_count FROM lexicons WHERE id = :p0"};
}

PagedList chunk_list(const std::string& source_id) {
  return {.scope = "chunks " + source_id,
          .from = "knowledge_chunks WHERE source_id = :p0",
          .values = {source_id},
          .fields = chunk_fields,
          .own_order = chunk_fields[1],
          .total_sql = "SELECT chunk_count FROM knowledge_sources WHERE id = :p0",
          .numbering_sql = "SELECT numbering FROM knowledge_sources WHERE id = :p0",
          .filter_text = "text"};
}

void name_slots(Connection& connection, const std::string& lexicon_id,
                std::vector<LexiconEntry>& entries) {
  auto names = read_pairs(connection, "SELECT id, name FROM lexicon_slots WHERE lexicon_id = :l",
                          lexicon_id);
  for (auto& entry : entries) {
    for (const auto& slot : entry.slot_ids) entry.slots.push_back(names[slot]);
  }
}

std::vector<std::string_view> Assets::entry_sort_fields() {
  return names_of(entry_fields);
}

std::vector<std::string_view> Assets::chunk_sort_fields() {
  return names_of(chunk_fields);
}

Result<Page<LexiconEntry>> Assets::lexicon_entries(const std::string& lexicon_id,
                                                   const PageRequest& request) const {
  auto ids = read_page(database_, committer_, entry_list(lexicon_id), request);
  if (!ids) return fail(ids.error());
  return read(database_, [&](Connection& connection) {
    const auto sql = std::string(select_entries).append("WHERE id = :i");
    auto page = Page<LexiconEntry>::of(
        *std::move(ids), [&](const auto& id) { return connection.first(entry_row, sql, id); });
    name_slots(connection, lexicon_id, page.items);
    return page;
  });
}

Result<Page<KnowledgeChunk>> Assets::chunks(const std::string& source_id,
                                            const PageRequest& request) const {
  auto ids = read_page(database_, committer_, chunk_list(source_id), request);
  if (!ids) return fail(ids.error());
  return read(database_, [&](Connection& connection) {
    const auto sql = std::string(select_chunks).append("WHERE k.id = :i");
    return Page<KnowledgeChunk>::of(
        *std::move(ids), [&](const auto& id) { return connection.first(chunk_row, sql, id); });
  });
}

}  // namespace conversed::store
