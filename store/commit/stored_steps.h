#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "store/model/clock.h"

// How the tables `receipts` and `later_steps` keep the steps of an event: the texts of
// store/model/receipt_text.h.
// Any thread.
namespace conversed::store {

// Compresses a text of more than `most_plain` bytes by Zstandard (RFC 8878), in base64 behind `~`,
// since the SQL for both databases has texts and integers only. A text above 1 MiB, or one that
// would become no shorter, stays as it is. No text given to `packed` begins with `~`.
inline constexpr std::size_t most_plain_step = 800;
inline constexpr char packed_mark = '~';  // a stored text that begins with it is packed
[[nodiscard]] constexpr bool is_packed(std::string_view stored) {
  return stored.starts_with(packed_mark);
}
[[nodiscard]] std::string packed(std::string text, std::size_t most_plain = most_plain_step);
// None: it is damaged.
[[nodiscard]] std::optional<std::string> unpacked(std::string stored);

// Reads a step, whose member `what` is a text. None: it is damaged.
[[nodiscard]] std::optional<nlohmann::json> read_step(std::string_view text);

// A later step, to be appended to the others. Its member `w` is the time in ms. A step without the
// member `at` has taken the `us` before that time; `read_later_steps` adds `at`.
[[nodiscard]] std::string later_step(std::string_view step, model::Timestamp written_at);
// Reads all later steps, in their order, as an array. None: one of them is damaged.
[[nodiscard]] std::optional<nlohmann::json> read_later_steps(std::string_view stored);
// The same with `plain`, an array of further steps, in the order of their times.
[[nodiscard]] std::optional<nlohmann::json> read_later_steps(std::string_view stored,
                                                             nlohmann::json plain);
// The place where the last step begins; 0 if there is no step.
[[nodiscard]] std::size_t begin_of_last_step(std::string_view stored);

// Unpacks the answer of a call in `/recorded/result/answer` of a step, if there is one. A damaged
// answer is removed.
void unpack_answer(nlohmann::json& step);

}  // namespace conversed::store
