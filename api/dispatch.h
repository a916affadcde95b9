#pragma once

#include "api/operation.h"
#include "api/services.h"

namespace conversed::api {

// Authenticates the request, checks its rate, and calls its operation's handler with the services
// of its family, on this thread or on the pool. An audited request of a known user goes to the pool
// when its entry in the audit trail is durable. Answers 503 if too many requests wait. Answers 503
// to clients while the store fails. Blocks for a point select at most.
void dispatch(Call&& call, Services& services, Reply&& reply);

// Whether the address of a request without credentials or with wrong ones may send another request.
// Answers 429 if it may not.
[[nodiscard]] bool take_as_stranger(const Request& request, EntryServices& services, Reply& reply);

}  // namespace conversed::api
