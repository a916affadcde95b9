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

// What inject, a user's message and the operators' inject have in common: from a checked body to an
// Event that may be appended.
namespace conversed::api {

// The Endpoint of a URLToken. Errors: `not_found`; `unavailable` while the store is down and the
// Endpoint is not cached.
[[nodiscard]] model::Result<std::shared_ptr<const model::Endpoint>> find_endpoint(
    AssetsCache& assets, std::string_view url_token);

// The same for a principal with conversationAdmin (or projectAdmin) in the Endpoint's project. A
// foreign Endpoint is the very error of a missing one; on an own one without the role it is
// `permission_denied`.
[[nodiscard]] model::Result<std::shared_ptr<const model::Endpoint>> find_endpoint_for(
    AssetsCache& assets, const Principal& principal, std::string_view url_token);

// Moves the body into an event with a new id. `claim` is not set.
[[nodiscard]] model::Event make_event(model::Timestamp now, model::EventType type,
                                      const model::Endpoint& endpoint, MessageBody&& body,
                                      std::string trace_id);

// Whether the session takes another event: its inbox is not full (`too_many`) and, for an inject
// on an Endpoint that is `activeOnly`, the conversation is going on (`conflict`), decided from what
// is committed. Reads the store for `activeOnly` Endpoints only.
[[nodiscard]] model::Result<void> check_session(MessageServices& services,
                                                const model::Endpoint& endpoint,
                                                const model::Event& event);

// The key of a request with an `Idempotency-Key`; nothing without one. `route` names the operation
// and its Endpoint, if the path does. The hash is over `body` as it came. Errors:
// `invalid_argument` unless it has 1 to 255 printable ASCII characters.
[[nodiscard]] model::Result<std::optional<queue::AppendKey>> append_key(
    const Request& request, const std::string& organisation_id, std::string_view route);

// The same for what changes the store alone.
[[nodiscard]] store::AnswerKey answer_key(const queue::AppendKey& key);

}  // namespace conversed::api
