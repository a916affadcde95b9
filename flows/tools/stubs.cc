#include "flows/tools/stubs.h"

#include <utility>

#include "flows/tools/match.h"

namespace conversed::flows::tools {
namespace {

using nlohmann::json;

bool fits(const Stub& stub, const model::PendingCall& call) {
  const auto& http = *call.http;
  return (stub.method.empty() || stub.method == http.method) &&
         (stub.url.empty() || text_fits(http.url, stub.url)) && (!stub.of_model || http.to_model);
}

bool fits(const SearchStub& stub, const model::PendingCall& call) {
  return (stub.store.empty() || stub.store == call.search->store) &&
         (stub.query.empty() || text_fits(call.search->text, stub.query));
}

}  // namespace

std::optional<model::CallResult> Stubs::answer(const model::PendingCall& call) {
  const auto first_of = [&](const auto& stubs) -> std::optional<model::CallResult> {
    for (const auto& stub : stubs) {
      if ((stub.times != 0 && used_[&stub] >= stub.times) || !fits(stub, call)) continue;
      ++used_[&stub];
      return answer_of(stub, call);
    }
    return std::nullopt;
  };
  if (call.code) return std::nullopt;
  for (const auto* list : lists_) {
    if (auto found = call.http ? first_of(list->calls) : first_of(list->searches)) return found;
  }
  return std::nullopt;
}

model::CallResult answer_of(const Stub& stub, const model::PendingCall& call) {
  model::CallResult result{.call_id = call.id,
                           .status = stub.error.empty() ? stub.status : 0,
                           .body = stub.body,
                           .error_code = stub.error,
                           .error_message = stub.error,
                           .model_tokens = call.http->to_model ? stub.tokens : 0};
  if (stub.error.empty() && stub.status >= 400) {
    result.error_code = "status";
    result.error_message = "the upstream answered with status " + std::to_string(stub.status);
  }
  return result;
}

model::CallResult answer_of(const SearchStub& stub, const model::PendingCall& call) {
  json hits = json::array();
  for (const auto& hit : stub.hits) {
    if (hits.size() < call.search->limit) hits.push_back(hit);
  }
  return {.call_id = call.id,
          .status = stub.error.empty() ? 200 : 0,
          .body = {{"hits", std::move(hits)}},
          .error_code = stub.error,
          .error_message = stub.error};
}

json request_of(const model::PendingCall& call) {
  if (call.search) {
    const auto& query = *call.search;
    return {{"store", query.store},
            {"sources", query.sources},
            {"query", query.text},
            {"limit", query.limit}};
  }
  if (call.code) return {{"script", call.code->script}, {"values", call.code->values}};
  json body = json::parse(call.http->body, nullptr, false);
  if (body.is_discarded()) body = call.http->body;
  return {{"method", call.http->method}, {"url", call.http->url}, {"body", std::move(body)}};
}

std::string to_string(const model::PendingCall& call) {
  if (call.search) return '\'' + call.search->text + "' in " + call.search->store;
  if (call.code) return "a script";
  return call.http->method + ' ' + call.http->url;
}

}  // namespace conversed::flows::tools
