#pragma once

#include <nlohmann/json.hpp>
#include <string>

#include "flows/node_types.h"
#include "store/text/utf8.h"

// What Nodes that search in knowledge ask, and what comes back.
namespace conversed::flows {

inline constexpr int max_knowledge_hits = 20;
inline constexpr std::size_t max_query_bytes = 4096;  // the rest of a question is left out

[[nodiscard]] inline model::KnowledgeQuery knowledge_query(const NodeConfig::Knowledge& knowledge,
                                                           const std::string& text, int limit) {
  return {.store = knowledge.store,
          .sources = knowledge.sources,
          .text = std::string(text::cut(text, max_query_bytes)),
          .limit = static_cast<std::size_t>(limit)};
}

// The list of hits; empty if the answer has none.
[[nodiscard]] inline nlohmann::json hits_of(const nlohmann::json& answer) {
  const auto none = nlohmann::json::array();
  if (!answer.is_object()) return none;
  const auto hits = answer.find("hits");
  return hits != answer.end() && hits->is_array() ? *hits : none;
}

}  // namespace conversed::flows
