#pragma once

#include <string>
#include <string_view>
#include <vector>

namespace conversed::flows::tools {

// docs/flows/nodes.md, so that editors show its sentences.
extern const std::string_view nodes_page;

// The page's first line about a Node type, or its sentences about a key of the type with the facts
// in parentheses. Plain text.
[[nodiscard]] std::string description_of(std::string_view type, std::string_view key = {});

// The cells of a row of a table, without the blanks around them. `row` begins in its first cell.
[[nodiscard]] std::vector<std::string_view> cells_of(std::string_view row);

}  // namespace conversed::flows::tools
