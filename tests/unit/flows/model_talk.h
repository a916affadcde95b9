#pragma once

#include "tests/unit/flows/conversation.h"

namespace conversed::flows {

// A project with a language model and a knowledge store for Nodes to ask.
inline constexpr const char* models_project =
    "connections:\n"
    "- {name: model, type: llm, fields: {baseUrl: \"https://llm.example.com/v1\"}}\n"
    "- {name: crm, type: httpBearer, fields: {token: t}}\n"
    "knowledgeStores:\n"
    "- {name: Manual, sources: [{name: FAQ, chunks: [{text: a}]}]}\n"
    "- {name: Prices, sources: [{name: List, chunks: [{text: a}]}]}\n";

struct Talk : Conversation {
  explicit Talk(const std::string& nodes) : Conversation(nodes, models_project) {
    assets.connection_ids = {{"model", "model-id"}};
  }

  Result<model::Effects> hits(const nlohmann::json& list) { return answer_call({{"hits", list}}); }
  Result<model::Effects> model_says(const std::string& text, std::int64_t tokens = 10) {
    return model_answers({{"role", "assistant"}, {"content", text}}, tokens);
  }
  Result<model::Effects> model_calls(const std::vector<std::pair<std::string, std::string>>& tools,
                                     std::int64_t tokens = 10) {
    nlohmann::json calls = nlohmann::json::array();
    for (const auto& [name, arguments] : tools) {
      calls.push_back({{"id", "id-" + name},
                       {"type", "function"},
                       {"function", {{"name", name}, {"arguments", arguments}}}});
    }
    return model_answers({{"role", "assistant"}, {"content", nullptr}, {"tool_calls", calls}},
                         tokens);
  }
  Result<model::Effects> model_answers(const nlohmann::json& message, std::int64_t tokens) {
    auto made = event(model::EventType::call_result);
    made.result = model::CallResult{.call_id = session.execution->pending_call_id,
                                    .status = 200,
                                    .body = {{"choices", {{{"message", message}}}}},
                                    .error_code = "",
                                    .error_message = "",
                                    .model_tokens = tokens};
    return take(made);
  }
};

inline nlohmann::json body_of(const Result<model::Effects>& effects) {
  if (!effects || !effects->call || !effects->call->http) return nullptr;
  return nlohmann::json::parse(effects->call->http->body);
}
inline nlohmann::json messages_of(const Result<model::Effects>& effects) {
  const nlohmann::json body = body_of(effects);
  return body.is_object() ? body["messages"] : nlohmann::json("none");
}

}  // namespace conversed::flows
