// The part of Assets that is read page by page.
#include "store/assets/lists.h"

#include <array>
#include <map>

#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr std::array entry_fields{
    PagedField{"_id", "id", SqlType::text, Unique::yes},
    PagedField{"mainKeyphrase", "main_keyphrase", SqlType::text, Unique::yes},
    PagedField{"data", "data", SqlType::text, Unique::no},
};

// Within one source, the references are the same for all.
constexpr std::array chunk_fields{
    PagedField{"_id", "id", SqlType::text, Unique::yes},
    PagedField{"order", "n", SqlType::integer, Unique::yes},
    PagedField{"text", "text", SqlType::text, Unique::no},
    PagedField{"disabled", "disabled", SqlType::integer, Unique::no},
    PagedField{"storeReference", "source_id", SqlType::text, Unique::no},
    PagedField{"sourceReference", "source_id", SqlType::text, Unique::no},
    // In seconds, as it is shown.
    PagedField{"createdAt", "(created_at / 1000)", SqlType::integer, Unique::no},
};

}  // namespace

PagedList entry_list(const std::string& lexicon_id) {
  return {.scope = "entries " + lexicon_id,
          .from = "lexicon_entries WHERE lexicon_id = :p0",
          .values = {lexicon_id},
          .fields = entry_fields,
          .own_order = entry_fields[0],
          .own_direction = Order::ascending,
          .total_sql = "SELECT entry_count FROM lexicons WHERE id = :p0",
          .filter_text = {},
          .numbering = {}};
}

PagedList chunk_list(const std::string& source_id) {
  return {.scope = "chunks " + source_id,
          .from = "knowledge_chunks WHERE source_id = :p0",
          .values = {source_id},
          .fields = chunk_fields,
          .own_order = chunk_fields[1],
          .own_direction = Order::ascending,
          .total_sql = "SELECT chunk_count FROM knowledge_sources WHERE id = :p0",
          .filter_text = "text",
          .numbering = "order"};
}

namespace {

// The page with the items of its ids; one that has gone since the page was read is left out.
template <typename T, typename Make>
Page<T> with_items(Connection& connection, Page<std::string>&& ids, const Make& make,
                   const std::string& sql) {
  Page<T> page{.items = {},
               .total = ids.total,
               .next = std::move(ids.next),
               .previous = std::move(ids.previous)};
  for (const auto& id : ids.items) {
    if (auto item = connection.first(make, sql, id)) page.items.push_back(*std::move(item));
  }
  return page;
}

}  // namespace

void name_slots(Connection& connection, const std::string& lexicon_id,
                std::vector<LexiconEntry>& entries) {
  std::map<std::string, std::string> names;
  connection.rows(
      [&](std::string id, std::string name) { names.emplace(std::move(id), std::move(name)); },
      "SELECT id, name FROM lexicon_slots WHERE lexicon_id = :l", lexicon_id);
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
    auto page = with_items<LexiconEntry>(connection, *std::move(ids), entry_row,
                                         std::string(select_entries).append("WHERE id = :i"));
    name_slots(connection, lexicon_id, page.items);
    return page;
  });
}

Result<Page<KnowledgeChunk>> Assets::chunks(const std::string& source_id,
                                            const PageRequest& request) const {
  auto ids = read_page(database_, committer_, chunk_list(source_id), request);
  if (!ids) return fail(ids.error());
  return read(database_, [&](Connection& connection) {
    return with_items<KnowledgeChunk>(connection, *std::move(ids), chunk_row,
                                      std::string(select_chunks).append("WHERE k.id = :i"));
  });
}

}  // namespace conversed::store
