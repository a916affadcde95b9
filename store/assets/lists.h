#pragma once

#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "store/assets/assets.h"
#include "store/paging/paging.h"
#include "store/sql/read.h"

// Lists of assets. For the .cc files of this folder and their tests.
namespace conversed::store {

inline constexpr std::string_view select_entries =
    "SELECT id, main_keyphrase, keyphrases, slots, data FROM lexicon_entries ";
// Makes an entry without the names of its slots.
inline constexpr auto entry_row =
    row_of<&LexiconEntry::id, &LexiconEntry::main_keyphrase, &LexiconEntry::keyphrases,
           &LexiconEntry::slot_ids, &LexiconEntry::data>;
// Sets the names of the entries' slots. Throws SqlError.
void name_slots(Connection& connection, const std::string& lexicon_id,
                std::vector<LexiconEntry>& entries);

inline constexpr std::string_view select_chunks =
    "SELECT k.id, c.store_id, k.source_id, k.n, k.text, k.disabled, k.data, k.created_at"
    " FROM knowledge_chunks k JOIN knowledge_sources c ON c.id = k.source_id ";
inline constexpr auto chunk_row =
    row_of<&KnowledgeChunk::id, &KnowledgeChunk::store_id, &KnowledgeChunk::source_id,
           &KnowledgeChunk::order, &KnowledgeChunk::text, &KnowledgeChunk::disabled,
           &KnowledgeChunk::data, &KnowledgeChunk::created_at>;

// The single value of a statement. `not_found`, with the message, if there is no row.
template <typename Out, typename... In>
[[nodiscard]] Result<Out> read_value(Database& database, const char* missing, std::string_view sql,
                                     const In&... in) {
  return read(database, [&](Connection& connection) -> Result<Out> {
    auto value = connection.value<Out>(sql, in...);
    if (!value) return fail(Errc::not_found, missing);
    return *std::move(value);
  });
}

// The rows of a statement with two columns, as a map by the first column. Throws SqlError.
[[nodiscard]] std::map<std::string, std::string, std::less<>> read_pairs(Connection& connection,
                                                                         std::string_view sql,
                                                                         const std::string& owner);

[[nodiscard]] std::int64_t token_count(Connection& connection, const std::string& organisation_id);

[[nodiscard]] PagedList entry_list(const std::string& lexicon_id);
[[nodiscard]] PagedList chunk_list(const std::string& source_id);

}  // namespace conversed::store
