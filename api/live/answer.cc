#include "api/live/answer.h"

#include <nlohmann/json.hpp>
#include <utility>

#include "store/model/clock.h"
#include "store/model/json.h"

namespace conversed::api {

using nlohmann::json;

std::string compose_answer(const std::vector<model::Output>& outputs, std::string_view user_id,
                           std::string_view session_id) {
  std::string text;
  bool first = true;
  const json* data = nullptr;
  json stack = json::array();
  for (const model::Output& output : outputs) {
    if (!output.text.empty()) {
      if (!first) text += '\n';
      first = false;
      text += output.text;
    }
    if (!output.data.is_null()) data = &output.data;
    stack.push_back({{"text", output.text},
                     {"data", output.data},
                     {"traceId", output.trace_id},
                     {"source", output.source}});
  }
  const json body{{"text", std::move(text)},
                  {"data", data != nullptr ? *data : json(nullptr)},
                  {"outputStack", std::move(stack)},
                  {"userId", user_id},
                  {"sessionId", session_id}};
  return model::json_text(body);
}

json output_item(const model::Output& output) {
  return {{"seq", output.seq},       {"text", output.text},
          {"data", output.data},     {"traceId", output.trace_id},
          {"source", output.source}, {"createdAt", model::to_unix_ms(output.created_at) / 1000}};
}

}  // namespace conversed::api
