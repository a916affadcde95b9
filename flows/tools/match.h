#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

namespace conversed::flows::tools {

// Whether a text equals the expected one, or contains a match of the regular expression `/.../`.
[[nodiscard]] bool text_fits(std::string_view actual, std::string_view expected);

// The problem of an expected text `/.../` that is not a regular expression. Otherwise nothing.
[[nodiscard]] std::optional<std::string> wrong_pattern(std::string_view expected);

// The path at which a value differs from the expected one, with both values. Nothing if it fits. Of
// objects only the expected members are compared, and null means a missing member. Lists must have
// the same length. Texts are compared by text_fits, numbers by value.
[[nodiscard]] std::optional<std::string> difference(const nlohmann::json& actual,
                                                    const nlohmann::json& expected);

}  // namespace conversed::flows::tools
