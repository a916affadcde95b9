#pragma once

#include <string>

#include "api/operation.h"
#include "api/operations/message_body.h"
#include "api/services.h"

namespace conversed::api {

// Takes an inject whatever its route: checks, appends, and has `accepted` answer with the id once
// the log holds it durably.
void accept_inject(const Operation& operation, Call call, UrlTokenIn place, Services& services,
                   Reply reply, void (*accepted)(Reply& reply, const std::string& inject_id));

}  // namespace conversed::api
