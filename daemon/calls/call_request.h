#pragma once

#include <cstddef>
#include <cstdint>
#include <string>
#include <string_view>
#include <tl/expected.hpp>
#include <vector>

#include "daemon/outbound/http_client.h"
#include "store/assets/assets.h"
#include "store/knowledge/knowledge.h"
#include "store/model/effects.h"

// Makes the HTTP request of a Node's call, and a call's result of the answer.
namespace conversed::daemon {

// The request of a call. `connection` has the Connection's fields in clear; it is null if the call
// names none. The Connection's headers, Idempotency-Key, traceparent and tracestate replace headers
// of the same name that the Node wrote. A call to a language model gets its base URL, key and model
// from the Connection. `span_id`: of this attempt. A Connection that does not fit the call, or the
// host of its URL, is an error.
//
// A language model's key goes to its base URL only: an `httpRequest` can't take such a Connection,
// nor `llmPrompt` another. Kept by: CallerTest.AModelsKeyGoesNowhereElse.
[[nodiscard]] tl::expected<HttpRequest, model::CallResult> call_request(
    const model::PendingCall& call, const store::ConnectionSecrets* connection,
    std::size_t max_response_bytes, std::string_view span_id);

// Whether a retry may help: after time-outs, broken or refused connections, 408,
// 425, 429 and 5xx but 501 and 505.
[[nodiscard]] bool worth_retrying(const HttpOutcome& outcome);

// The result of the last attempt. A JSON body (of a depth that an Event can hold) is parsed. Any
// other body is text, with invalid UTF-8 replaced.
[[nodiscard]] model::CallResult call_result(const std::string& call_id, const HttpOutcome& outcome);

// The result of a search: `{"hits": [...]}`, as model::KnowledgeQuery says. A hit that would exceed
// `max_bytes` of texts and data is left out; later hits may still fit.
[[nodiscard]] model::CallResult search_result(const std::string& call_id,
                                              const std::vector<store::KnowledgeHit>& hits,
                                              std::size_t max_bytes);

// The tokens that a language model's answer reports, each limited to 0 to 1,000,000,000.
struct ModelUsage {
  std::int64_t prompt = 0;
  std::int64_t completion = 0;
};
[[nodiscard]] ModelUsage model_usage(const nlohmann::json& body);

// A result without an answer. `message` has no URL, header or body.
[[nodiscard]] model::CallResult failed_call(const std::string& call_id, std::string_view code,
                                            std::string_view message);

// The result of a search that fails permanently. None if a retry may help.
[[nodiscard]] std::optional<model::CallResult> search_failure(const std::string& call_id,
                                                              model::Errc code);

// The Event with a call's result. Its claim is the call.
[[nodiscard]] model::Event result_event(const model::PendingCall& call, model::CallResult result,
                                        model::Timestamp now);

// The upstream of a call's target (store::target_of): calls to one upstream share its limit.
[[nodiscard]] std::string upstream_of(const std::string& target, store::Assets& assets);

}  // namespace conversed::daemon
