#pragma once

#include "api/operation.h"
#include "api/services.h"

namespace conversed::api {

// Calls the handler of the call's operation with the services of its family, on this thread or on
// the pool. An audited request of a known user goes to the pool once its entry in the audit trail
// is durable. `call.principal` is set unless the operation is `open`. Answers 503 if too many
// requests wait, and to clients while the store fails.
void dispatch(Call&& call, Services& services, Reply&& reply);

}  // namespace conversed::api
