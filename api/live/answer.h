#pragma once

#include <string>
#include <string_view>
#include <vector>

#include "store/model/effects.h"

namespace conversed::api {

// The body of an answer to `POST /{URLToken}` as JSON text: the outputs of the execution, in order.
// `text` joins the outputs' texts by newlines. `data` is the last output's data, of the outputs
// that have data, otherwise null. Bytes that are not valid UTF-8 become replacement characters.
[[nodiscard]] std::string compose_answer(const std::vector<model::Output>& outputs,
                                         std::string_view user_id, std::string_view session_id);

// One output as `/outputs` and the operators' view of a session show it.
[[nodiscard]] nlohmann::json output_item(const model::Output& output);

}  // namespace conversed::api
