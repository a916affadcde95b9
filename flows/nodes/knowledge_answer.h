#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "flows/json_members.h"
#include "flows/node_types.h"
#include "store/model/json.h"
#include "store/text/utf8.h"

// Queries and answers of Nodes that search in knowledge.
namespace conversed::flows {

inline constexpr int max_knowledge_hits = 20;
inline constexpr int default_knowledge_hits = 5;
inline constexpr std::size_t max_query_bytes = 4096;  // a longer question is cut

[[nodiscard]] inline model::KnowledgeQuery knowledge_query(const NodeConfig::Knowledge& knowledge,
                                                           const std::string& text, int limit) {
  return {.store = knowledge.store,
          .sources = knowledge.sources,
          .text = std::string(text::cut(text, max_query_bytes)),
          .limit = static_cast<std::size_t>(limit)};
}

// The list of hits. Empty if the answer has none.
[[nodiscard]] inline nlohmann::json hits_of(const nlohmann::json& answer) {
  const nlohmann::json* hits = find_member(answer, "hits");
  return hits != nullptr && hits->is_array() ? *hits : nlohmann::json::array();
}

// The hits as JSON text of at most `most` bytes, the best first. Hits that do not fit are left out.
// If the best hit alone does not fit, its text is cut.
[[nodiscard]] inline std::string hits_text(const nlohmann::json& hits, std::size_t most) {
  std::string list = "[";
  for (const auto& hit : hits) {
    if (!hit.is_object()) continue;
    if (list.size() + 2 >= most) break;
    const std::size_t room = most - list.size() - 2;  // without a comma and the end
    std::string one = model::json_text(hit);
    if (one.size() > room) {
      const std::string* words = find_text(hit, "text");
      const std::size_t over = one.size() - room;
      if (list.size() > 1 || words == nullptr || words->size() <= over) continue;
      auto shorter = hit;
      shorter["text"] = std::string(text::cut(*words, words->size() - over));
      one = model::json_text(shorter);
    }
    if (list.size() > 1) list += ',';
    list += one;
  }
  return list + ']';
}

}  // namespace conversed::flows
