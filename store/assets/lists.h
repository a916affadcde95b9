#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/assets/assets.h"
#include "store/paging/paging.h"

// Lists of assets, whole or paged. For the .cc files of this folder and their tests.
namespace conversed::store {

inline constexpr std::string_view select_entries =
    "SELECT id, main_keyphrase, keyphrases, slots, data FROM lexicon_entries ";
// Without the names of the slots.
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

[[nodiscard]] PagedList entry_list(const std::string& lexicon_id);
[[nodiscard]] PagedList chunk_list(const std::string& source_id);

}  // namespace conversed::store
