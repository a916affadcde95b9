#pragma once

#include <string>

#include "api/operation.h"
#include "api/representation/message_body.h"
#include "api/services.h"

namespace conversed::api {

// Takes an inject or a notify (`type`) whatever its route: checks, appends, and has `accepted`
// answer with the id once the log holds it durably.
void accept_message(model::EventType type, const Operation& operation, const Call& call,
                    UrlTokenIn place, MessageServices& services, Reply reply,
                    void (*accepted)(Reply& reply, const std::string& id));

// 200 with the id in `X-Inject-Id`.
void answer_text(Reply& reply, const std::string& id, std::string text);

}  // namespace conversed::api
