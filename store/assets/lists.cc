// The part of Assets that is read page by page.
#include "store/assets/lists.h"

#include <array>
#include <map>

#include "store/accounts/people.h"
#include "store/assets/assets.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::fail;
using model::Result;

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
template <typename T, typename Find>
Page<T> with_items(Page<std::string>&& ids, const Find& find) {
  Page<T> page{.items = {},
               .total = ids.total,
               .next = std::move(ids.next),
               .previous = std::move(ids.previous)};
  for (const auto& id : ids.items) {
    if (std::optional<T> item = find(id)) page.items.push_back(*std::move(item));
  }
  return page;
}

std::optional<LexiconEntry> find_entry(Connection& connection, const std::string& id,
                                       const std::map<std::string, std::string>& slot_names) {
  auto row = connection.row<std::string, std::string, std::string, std::string>(
      "SELECT main_keyphrase, keyphrases, slots, data FROM lexicon_entries WHERE id = :i", id);
  if (!row) return std::nullopt;
  auto& [main, keyphrases, slots, data] = *row;
  LexiconEntry entry{.id = id,
                     .main_keyphrase = std::move(main),
                     .keyphrases = list_from_text(keyphrases),
                     .slots = {},
                     .slot_ids = list_from_text(slots),
                     .data = std::move(data)};
  for (const auto& slot : entry.slot_ids) {
    const auto name = slot_names.find(slot);
    entry.slots.push_back(name == slot_names.end() ? std::string() : name->second);
  }
  return entry;
}

std::optional<KnowledgeChunk> find_chunk(Connection& connection, const std::string& id) {
  auto row = connection.row<std::string, std::string, std::int64_t, std::string, bool, std::string,
                            model::Timestamp>(
      "SELECT c.store_id, k.source_id, k.n, k.text, k.disabled, k.data, k.created_at"
      " FROM knowledge_chunks k JOIN knowledge_sources c ON c.id = k.source_id WHERE k.id = :i",
      id);
  if (!row) return std::nullopt;
  auto& [store, source, n, text, disabled, data, created] = *row;
  return KnowledgeChunk{.id = id,
                        .store_id = std::move(store),
                        .source_id = std::move(source),
                        .order = n,
                        .text = std::move(text),
                        .disabled = disabled,
                        .data = std::move(data),
                        .created_at = created};
}

}  // namespace

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
  return read(database_, [&](Connection& connection) -> Result<Page<LexiconEntry>> {
    std::map<std::string, std::string> slot_names;
    connection.rows([&](std::string id,
                        std::string name) { slot_names.emplace(std::move(id), std::move(name)); },
                    "SELECT id, name FROM lexicon_slots WHERE lexicon_id = :l", lexicon_id);
    return with_items<LexiconEntry>(*std::move(ids), [&](const std::string& id) {
      return find_entry(connection, id, slot_names);
    });
  });
}

Result<Page<KnowledgeChunk>> Assets::chunks(const std::string& source_id,
                                            const PageRequest& request) const {
  auto ids = read_page(database_, committer_, chunk_list(source_id), request);
  if (!ids) return fail(ids.error());
  return read(database_, [&](Connection& connection) -> Result<Page<KnowledgeChunk>> {
    return with_items<KnowledgeChunk>(
        *std::move(ids), [&](const std::string& id) { return find_chunk(connection, id); });
  });
}

}  // namespace conversed::store
