// What the document says of conversations: messages, what is said, sessions.
#pragma once

#include <string>
#include <string_view>

#include "api/openapi/description.h"
#include "api/representation/message_body.h"

namespace conversed::api::openapi {

// A body that parse_message takes.
[[nodiscard]] Schema message_schema(UrlTokenIn place);
// One thing that a session has said: output_item.
[[nodiscard]] Schema output_schema();
// {"_id"} of what was accepted.
[[nodiscard]] Schema accepted_schema();
// The members of session_names.
[[nodiscard]] Schema session_names_schema();

[[nodiscard]] Parameter idempotency_parameter();
// `projectId` of the lists below /management.
[[nodiscard]] Parameter project_parameter();
// `wait`, which holds the answer back until there is what is waited for.
[[nodiscard]] Parameter wait_until(std::string_view what);

[[nodiscard]] Header inject_id_header();
// The plain text of inject and notify.
[[nodiscard]] Answer accepted_answer(std::string_view text);

}  // namespace conversed::api::openapi
