#pragma once

#include <string_view>

namespace conversed::model {

// Whether a daemon has written the record with this value (`encode_value`), and not another program
// that appends to the topic.
[[nodiscard]] bool is_own(std::string_view value);

}  // namespace conversed::model
