#pragma once

#include "api/operation.h"
#include "api/services.h"

namespace conversed::api {

// Finds out who sends the request, checks its rate, and calls the handler of its operation with the
// services of its family, on this thread or on the pool. An audited request of a known user goes to
// the pool once its entry in the audit trail is durable. Answers 503 if too many requests wait, and
// to clients while the store fails. Blocks on no more than a point select.
void dispatch(Call&& call, Services& services, Reply&& reply);

// Whether the address of the request, which shows no credentials or wrong ones, may send another
// one. Else answers 429.
[[nodiscard]] bool take_as_stranger(const Request& request, EntryServices& services, Reply& reply);

}  // namespace conversed::api
