#pragma once

#include <string>

namespace conversed::flows {

// The reference of all Node types in Markdown, one section a type, from what each says of itself.
// The README holds it; a test sees to it that the two agree. Thread-safe.
[[nodiscard]] std::string document_node_types();

}  // namespace conversed::flows
