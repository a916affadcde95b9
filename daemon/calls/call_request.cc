#include "daemon/calls/call_request.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/http/http_syntax.h"
#include "store/commit/call_target.h"
#include "store/conversation/calls.h"
#include "store/model/json.h"
#include "store/model/trace.h"
#include "store/model/url.h"
#include "store/text/base64.h"
#include "store/text/utf8.h"

namespace conversed::daemon {
namespace {

using model::CallResult;

using Header = std::pair<std::string, std::string>;

// An Event wraps the body in two levels. A Flow may store it some levels deeper.
constexpr std::size_t max_body_depth = model::max_json_depth - 8;

std::optional<std::string> text_member(const nlohmann::json& fields, const char* name) {
  const auto member = fields.find(name);
  if (member == fields.end() || !member->is_string()) return std::nullopt;
  return member->get<std::string>();
}

std::optional<Header> header_from(const std::string& type, const nlohmann::json& fields) {
  if (type == "httpBearer") {
    const auto token = text_member(fields, "token");
    if (token) return Header{"Authorization", "Bearer " + *token};
  } else if (type == "httpBasic") {
    const auto user = text_member(fields, "username");
    const auto password = text_member(fields, "password");
    if (user && password)
      return Header{"Authorization", "Basic " + text::encode_base64(*user + ":" + *password,
                                                                    text::Base64::standard)};
  } else if (type == "httpHeader") {
    auto name = text_member(fields, "name");
    auto value = text_member(fields, "value");
    if (name && value) return Header{std::move(*name), std::move(*value)};
  }
  return std::nullopt;
}

// The settings of a language model in its Connection: `baseUrl`, and maybe `apiKey` and `model`.
bool address_model(const nlohmann::json& fields, HttpRequest& request) {
  auto url = text_member(fields, "baseUrl");
  if (!url) return false;
  while (url->ends_with('/')) url->pop_back();
  request.url = *url + request.url;
  if (const auto key = text_member(fields, "apiKey"); key && !key->empty()) {
    request.headers.emplace_back("Authorization", "Bearer " + *key);
  }
  const auto model = text_member(fields, "model");
  if (!model || model->empty()) return true;
  auto body = model::parse_json(request.body, max_body_depth);
  if (body && body->is_object() && !body->contains("model")) {
    (*body)["model"] = *model;
    request.body = model::json_text(*body);
  }
  return true;
}

void put_header(std::vector<Header>& headers, Header header) {
  std::erase_if(headers, [&](const Header& other) {
    return api::equals_ignoring_case(other.first, header.first);
  });
  headers.push_back(std::move(header));
}

nlohmann::json body_of(const std::string& content) {
  if (auto parsed = model::parse_json(content, max_body_depth)) return std::move(*parsed);
  return text::well_formed(content);
}

std::pair<std::string_view, std::string_view> explain(HttpError error) {
  switch (error) {
    case HttpError::timeout:
      return {"timeout", "the upstream did not answer in time"};
    case HttpError::egress_refused:
      return {"egress_refused", "egress.allow does not open the upstream's address"};
    case HttpError::too_large:
      return {"too_large", "the upstream's answer is too large"};
    case HttpError::invalid:
      return {"refused", "the request can't be sent: its method, URL or a header is not valid"};
    default:
      return {"refused", "the upstream could not be reached"};
  }
}

// The authority of a language model's Connection; empty if it has no address.
std::string authority_of_model(const store::ConnectionSecrets& connection) {
  const auto fields = nlohmann::json::parse(connection.fields, nullptr, false);
  const auto url = fields.is_object() ? text_member(fields, "baseUrl") : std::nullopt;
  return url ? model::authority_of(*url) : std::string();
}

}  // namespace

tl::expected<HttpRequest, CallResult> call_request(const model::PendingCall& call,
                                                   const store::ConnectionSecrets* connection,
                                                   std::size_t max_response_bytes,
                                                   std::string_view span_id) {
  const auto refused = [&](std::string_view code, std::string_view message) {
    return tl::unexpected(failed_call(call.id, code, message));
  };
  if (connection != nullptr && !call.http->to_model &&
      !model::goes_to(call.http->url, connection->hosts)) {
    return refused("host_refused", "the Connection '" + connection->name +
                                       "' is not for the host " +
                                       model::authority_of(call.http->url) +
                                       "; its `hosts` say which ones it is for");
  }
  HttpRequest request;
  request.method = call.http->method;
  request.url = call.http->url;
  request.headers = call.http->headers;
  request.body = call.http->body;
  request.timeout = call.http->timeout;
  request.max_response_bytes = max_response_bytes;
  if (connection != nullptr) {
    const auto fields = nlohmann::json::parse(connection->fields, nullptr, false);
    const bool is_model = connection->type == "llm" && fields.is_object();
    if (call.http->to_model && !(is_model && address_model(fields, request))) {
      return refused("connection_deleted",
                     "the Connection is not of the type for a language model");
    }
    auto header = fields.is_object() ? header_from(connection->type, fields) : std::nullopt;
    if (!header && !call.http->to_model)
      return refused("connection_deleted", "the Connection is not of a type for HTTP requests");
    if (header) put_header(request.headers, std::move(*header));
  }
  if (!call.http->idempotency_key.empty()) {
    put_header(request.headers, {"Idempotency-Key", call.http->idempotency_key});
  }
  if (!call.trace_id.empty()) {
    put_header(request.headers,
               {"traceparent", model::make_traceparent(model::trace_id_of(call.trace_id), span_id,
                                                       model::is_sampled(call.id))});
  }
  if (!call.tracestate.empty()) put_header(request.headers, {"tracestate", call.tracestate});
  return request;
}

bool worth_retrying(const HttpOutcome& outcome) {
  if (outcome.error != HttpError::none) {
    return outcome.error == HttpError::timeout || outcome.error == HttpError::refused ||
           outcome.error == HttpError::aborted;
  }
  const int status = outcome.status;
  if (status == 408 || status == 425 || status == 429) return true;
  return status >= 500 && status != 501 && status != 505;
}

CallResult call_result(const std::string& call_id, const HttpOutcome& outcome) {
  if (outcome.error != HttpError::none) {
    const auto [code, message] = explain(outcome.error);
    return failed_call(call_id, code, message);
  }
  CallResult result;
  result.call_id = call_id;
  result.status = outcome.status;
  result.body = body_of(outcome.body);
  if (outcome.status >= 400) {
    result.error_code = "status";
    result.error_message = "the upstream answered " + std::to_string(outcome.status);
  }
  return result;
}

CallResult search_result(const std::string& call_id, const std::vector<store::KnowledgeHit>& hits,
                         std::size_t max_bytes) {
  constexpr double ppm = 1e6;
  CallResult result;
  result.call_id = call_id;
  result.status = 200;
  auto list = nlohmann::json::array();
  std::size_t bytes = 0;
  for (const auto& hit : hits) {
    const std::size_t size = hit.text.size() + hit.data.size() + hit.source.size();
    if (size > max_bytes - bytes) continue;
    bytes += size;
    auto data = nlohmann::json::parse(hit.data, nullptr, false);
    list.push_back({{"id", hit.chunk_id},
                    {"source", hit.source},
                    {"text", hit.text},
                    {"data", data.is_discarded() ? nlohmann::json() : std::move(data)},
                    {"score", static_cast<double>(hit.score_ppm) / ppm}});
  }
  result.body = {{"hits", std::move(list)}};
  return result;
}

ModelUsage model_usage(const nlohmann::json& body) {
  constexpr std::int64_t most = 1'000'000'000;
  const auto count = [&](const nlohmann::json& usage, const char* name) -> std::int64_t {
    const auto found = usage.find(name);
    if (found == usage.end() || !found->is_number()) return 0;
    return static_cast<std::int64_t>(
        std::clamp(found->get<double>(), 0.0, static_cast<double>(most)));
  };
  if (!body.is_object()) return {};
  const auto usage = body.find("usage");
  if (usage == body.end() || !usage->is_object()) return {};
  ModelUsage used{.prompt = count(*usage, "prompt_tokens"),
                  .completion = count(*usage, "completion_tokens")};
  // Some models report the sum only.
  if (used.prompt + used.completion == 0) used.prompt = count(*usage, "total_tokens");
  return used;
}

CallResult failed_call(const std::string& call_id, std::string_view code,
                       std::string_view message) {
  CallResult result;
  result.call_id = call_id;
  result.error_code = code;
  result.error_message = message;
  return result;
}

std::optional<CallResult> search_failure(const std::string& call_id, model::Errc code) {
  switch (code) {
    case model::Errc::not_found:
      return failed_call(call_id, "knowledge_deleted",
                         "the knowledge store does not exist any more");
    case model::Errc::internal:
      return failed_call(call_id, "knowledge_damaged", "the knowledge store can't be read");
    case model::Errc::timed_out:
      return failed_call(call_id, "timeout", "the search takes too long");
    default:
      return std::nullopt;
  }
}

model::Event result_event(const model::PendingCall& call, CallResult result, model::Timestamp now) {
  model::Event event;
  event.id = call.id + "-r";
  event.type = model::EventType::call_result;
  event.session = call.session;
  event.accepted_at = now;
  event.trace_id = call.trace_id;
  event.claim = model::Claim{model::Claim::Kind::pending_call, call.id};
  event.result = std::move(result);
  return event;
}

std::string upstream_of(const std::string& target, store::Assets& assets) {
  const auto connection_id = store::connection_of_target(target);
  if (connection_id.empty()) return target;
  const auto connection = assets.connection_secrets(connection_id);
  // Only the target of a language model names a Connection, so `connection` is that model's.
  return connection ? store::target_of_host(authority_of_model(*connection)) : target;
}

}  // namespace conversed::daemon
