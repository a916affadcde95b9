#pragma once

#include <string>
#include <string_view>

namespace conversed::flows::tools {

// docs/flows/nodes.md, so that editors show its sentences.
extern const std::string_view nodes_page;

// The page's first line about a Node type, or its sentences about a key of the type. Plain text.
[[nodiscard]] std::string description_of(std::string_view type, std::string_view key = {});

}  // namespace conversed::flows::tools
