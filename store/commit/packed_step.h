#pragma once

#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

// How the table `receipts` keeps the first step of an event.
namespace conversed::store {

// The step's JSON, compressed by Zstandard (RFC 8878) with the dictionary of receipt_dictionary.py,
// in base64, since the SQL for both databases has texts and integers only. A step that would not
// become shorter stays JSON. A step of 640 bytes becomes 260. Any thread.
[[nodiscard]] std::string packed_step(std::string json);
// The step's JSON. None: it is damaged.
[[nodiscard]] std::optional<std::string> unpacked_step(std::string stored);

// Unpacks the answer of a call in `/recorded/result/answer` of a step, which is packed likewise, if
// there is one. A damaged answer is removed.
void unpack_answer(nlohmann::json& step);

}  // namespace conversed::store
