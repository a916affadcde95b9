#include "store/model/effects.h"

#include <utility>

namespace conversed::model {

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
          {"idempotencyKey", call.idempotency_key}};
}

Result<HttpCall> http_call_from(const nlohmann::json& value) {
  try {
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
    return call;
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::internal, "a stored call can't be read");
  }
}

}  // namespace conversed::model
