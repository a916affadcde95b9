#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace conversed::flows::tools {

// Whether a text equals the expected one or, for `/.../`, has a match of that regular expression.
[[nodiscard]] bool text_fits(std::string_view actual, std::string_view expected);

// The problem of an expected text between slashes that is no regular expression; nothing for every
// other text.
[[nodiscard]] std::optional<std::string> wrong_pattern(std::string_view expected);

// The path at which a value differs from the expected one, and both values; nothing if it fits. Of
// objects only the expected members count, and null stands for a missing member. Lists have one
// length, texts fit as above, numbers are compared by value.
[[nodiscard]] std::optional<std::string> difference(const nlohmann::json& actual,
                                                    const nlohmann::json& expected);

}  // namespace conversed::flows::tools
