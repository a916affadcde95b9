#include "store/model/effects.h"

#include <limits>
#include <utility>

#include "store/model/json.h"

namespace conversed::model {

std::size_t size_of(const Output& output) {
  return sizeof(Output) + output.text.size() +
         json_size(output.data, std::numeric_limits<std::size_t>::max());
}

nlohmann::json to_json(const HttpCall& call) {
  auto headers = nlohmann::json::array();
  for (const auto& [name, value] : call.headers) headers.push_back({name, value});
  return {{"method", call.method},
          {"url", call.url},
          {"headers", std::move(headers)},
          {"body", call.body},
          {"connectionId", call.connection_id},
          {"timeoutMs", call.timeout.count()},
          {"retries", call.retries},
          {"idempotencyKey", call.idempotency_key},
          {"toModel", call.to_model}};
}

nlohmann::json to_json(const KnowledgeQuery& query) {
  return {{"search",
           {{"store", query.store},
            {"sources", query.sources},
            {"text", query.text},
            {"limit", query.limit}}}};
}

nlohmann::json to_json(const CodeCall& code) {
  return {
      {"code",
       {{"script", code.script}, {"values", code.values}, {"timeoutMs", code.timeout.count()}}}};
}

namespace {

HttpCall http_call_from(const nlohmann::json& value) {
  HttpCall call;
  call.method = value.at("method").get<std::string>();
  call.url = value.at("url").get<std::string>();
  for (const auto& header : value.at("headers")) {
    call.headers.emplace_back(header.at(0).get<std::string>(), header.at(1).get<std::string>());
  }
  call.body = value.at("body").get<std::string>();
  call.connection_id = value.at("connectionId").get<std::string>();
  call.timeout = std::chrono::milliseconds(value.at("timeoutMs").get<std::int64_t>());
  call.retries = value.at("retries").get<int>();
  call.idempotency_key = value.at("idempotencyKey").get<std::string>();
  call.to_model = value.at("toModel").get<bool>();
  return call;
}

KnowledgeQuery query_from(const nlohmann::json& value) {
  KnowledgeQuery query;
  query.store = value.at("store").get<std::string>();
  query.sources = value.at("sources").get<std::vector<std::string>>();
  query.text = value.at("text").get<std::string>();
  query.limit = value.at("limit").get<std::size_t>();
  return query;
}

CodeCall code_from(const nlohmann::json& value) {
  CodeCall code;
  code.script = value.at("script").get<std::string>();
  code.values = value.at("values");
  code.timeout = std::chrono::milliseconds(value.at("timeoutMs").get<std::int64_t>());
  return code;
}

}  // namespace

Result<void> read_request(const nlohmann::json& value, PendingCall& call) {
  try {
    if (const auto search = value.find("search"); search != value.end()) {
      call.search = query_from(*search);
    } else if (const auto code = value.find("code"); code != value.end()) {
      call.code = code_from(*code);
    } else {
      call.http = http_call_from(value);
    }
    return {};
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::internal, "a stored call can't be read");
  }
}

}  // namespace conversed::model
