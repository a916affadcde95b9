#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/model/effects.h"

namespace conversed::api {

// The body of an answer to `POST /{URLToken}`, as JSON text: what the execution said, in order.
// `text` holds the outputs' texts joined by newlines, `data` that of the last output that has some
// (null otherwise). Texts that are no valid UTF-8 come out with replacement characters.
[[nodiscard]] std::string compose_answer(const std::vector<model::Output>& outputs,
                                         std::string_view user_id, std::string_view session_id);

// One output as `/outputs` shows it; used by the operators' view of a session, too.
[[nodiscard]] nlohmann::json output_item(const model::Output& output);

}  // namespace conversed::api
