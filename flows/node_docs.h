#pragma once

#include <string>

namespace conversed::flows {

// The reference of all Node types in Markdown, one section a type: the text of docs/flows/nodes.md.
// Thread-safe. Kept by: NodeTypes.AreDocumented.
[[nodiscard]] std::string document_node_types();

}  // namespace conversed::flows
