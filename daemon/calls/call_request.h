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
#include "store/model/result.h"

// How a call of a Node becomes a request, and an answer the call's result.
namespace conversed::daemon {

// The request of a call. `connection` has the Connection's fields in clear, null if the call names
// none. Its headers replace those of the same name that the Node wrote, and so do Idempotency-Key
// and traceparent. A call to a language model gets its base URL, key and model from the Connection.
// A Connection that does not fit the call, or the host of its URL, is an error.
//
// A language model's key goes to its base URL only: an `httpRequest` can't take such a Connection,
// nor `llmPrompt` another. Kept by: CallerTest.AModelsKeyGoesNowhereElse.
[[nodiscard]] tl::expected<HttpRequest, model::CallResult> call_request(
    const model::PendingCall& call, const store::ConnectionSecrets* connection,
    std::size_t max_response_bytes);

// Whether another attempt may bring something else: time-outs, broken or refused connections, 408,
// 425, 429 and 5xx but 501 and 505.
[[nodiscard]] bool worth_retrying(const HttpOutcome& outcome);

// The result of the last attempt. A body that is JSON (of a depth that an Event can hold) is
// parsed, any other is text, in which invalid UTF-8 is replaced.
[[nodiscard]] model::CallResult call_result(const std::string& call_id, const HttpOutcome& outcome);

// The result of a search: `{"hits": [...]}`, as model::KnowledgeQuery says; a hit with which texts
// and data would come to more than `max_bytes` is left out, smaller ones behind it are not.
[[nodiscard]] model::CallResult search_result(const std::string& call_id,
                                              const std::vector<store::KnowledgeHit>& hits,
                                              std::size_t max_bytes);

// What a language model's answer says of the tokens that it took: none is negative or above a
// thousand million, whatever it says.
struct ModelUsage {
  std::int64_t prompt = 0;
  std::int64_t completion = 0;
};
[[nodiscard]] ModelUsage model_usage(const nlohmann::json& body);

// A result without an answer. `message` has no URL, header or body.
[[nodiscard]] model::CallResult failed_call(const std::string& call_id, std::string_view code,
                                            std::string_view message);

// The result of a search that the store refuses for good; none where it is worth another try.
[[nodiscard]] std::optional<model::CallResult> search_failure(const std::string& call_id,
                                                              model::Errc code);

// The Event that tells what a call came to, with the call for its claim.
[[nodiscard]] model::Event result_event(const model::PendingCall& call, model::CallResult result,
                                        model::Timestamp now);

// The authority of a language model's Connection; empty if it has no address.
[[nodiscard]] std::string authority_of_model(const store::ConnectionSecrets& connection);

// The upstream of a call's target (store::target_of): calls to one upstream share its limit.
[[nodiscard]] std::string upstream_of(const std::string& target, store::Assets& assets);

}  // namespace conversed::daemon
