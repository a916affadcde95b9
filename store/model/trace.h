#pragma once

#include <string>
#include <string_view>

namespace conversed::model {

// Whether it is a W3C trace id: 32 lower-case hex digits, not all zero.
[[nodiscard]] bool is_trace_id(std::string_view text);

// The text if it is a trace id, else a new one: a foreign producer's mistake costs only its trace.
[[nodiscard]] std::string trace_id_of(std::string_view text);

}  // namespace conversed::model
