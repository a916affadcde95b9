#pragma once

#include <memory>
#include <optional>
#include <string>
#include <string_view>

#include "api/auth/principal.h"
#include "api/http/http.h"
#include "api/representation/input.h"
#include "api/services.h"
#include "queue/keyed_append.h"
#include "store/idempotency/keyed_answers.h"
#include "store/model/assets.h"
#include "store/model/event.h"
#include "store/model/result.h"

// The common part of inject, a user's message and the operators' inject: from a checked body to an
// Event that is ready for the append.
namespace conversed::api {

// The Endpoint of a URLToken. Errors: `not_found`; `unavailable` while the store is down and the
// Endpoint is not cached.
[[nodiscard]] model::Result<std::shared_ptr<const model::Endpoint>> find_endpoint(
    AssetsCache& assets, std::string_view url_token);

// The Endpoint, for a principal with conversationAdmin (or projectAdmin) in its project. A foreign
// Endpoint has the same error as a missing one. Without the role in the principal's own
// organisation the error is `permission_denied`.
[[nodiscard]] model::Result<std::shared_ptr<const model::Endpoint>> find_endpoint_for(
    AssetsCache& assets, const Principal& principal, std::string_view url_token);

// Moves the body into an event with a new id and the request's trace. Does not set `claim`.
[[nodiscard]] model::Event make_event(model::Timestamp now, model::EventType type,
                                      const model::Endpoint& endpoint, MessageBody&& body,
                                      const Request& request,
                                      const std::optional<queue::AppendKey>& key);

// Whether the session takes another event: its inbox is not full (`too_many`), and for an inject on
// an `activeOnly` Endpoint the conversation is active (`conflict`), by the committed state. Reads
// the store for `activeOnly` Endpoints only.
[[nodiscard]] model::Result<void> check_session(MessageServices& services,
                                                const model::Endpoint& endpoint,
                                                const model::Event& event);

// The key of a request with an `Idempotency-Key`. Nothing without one. `route` names the operation,
// and the Endpoint if the path names it. The hash is over the unchanged `body`. Errors:
// `invalid_argument` unless the key has 1 to 255 printable ASCII characters.
[[nodiscard]] model::Result<std::optional<queue::AppendKey>> append_key(
    const Request& request, const std::string& organisation_id, std::string_view route);

// The name under which receipts have an Idempotency-Key, over all routes of the organisation.
[[nodiscard]] std::string receipt_key(std::string_view organisation_id, std::string_view key);

// The key of an operation that changes only the store.
[[nodiscard]] store::AnswerKey answer_key(const queue::AppendKey& key);

}  // namespace conversed::api
