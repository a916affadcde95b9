#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace conversed::flows::tools {

// Whether a text is what is expected: the same, or, of `/.../`, one in which that regular
// expression finds something.
[[nodiscard]] bool text_fits(std::string_view actual, std::string_view expected);

// What is wrong with an expected text that stands between slashes and is no regular expression:
// then it fits nothing but itself. Nothing for every other text.
[[nodiscard]] std::optional<std::string> wrong_pattern(std::string_view expected);

// Where a value is not what is expected, as a path and both values; nothing if it fits. Of objects
// only the expected members count, a member that is expected to be null may be missing; lists are
// of one length; texts fit as above; numbers are compared by value.
[[nodiscard]] std::optional<std::string> difference(const nlohmann::json& actual,
                                                    const nlohmann::json& expected);

}  // namespace conversed::flows::tools
