#pragma once

#include <ranges>
#include <string>

namespace conversed::daemon {

// "a, b, c": names for people.
template <std::ranges::input_range Names>
[[nodiscard]] std::string joined(const Names& names) {
  std::string text;
  for (const auto& name : names) {
    if (!text.empty()) text += ", ";
    text += name;
  }
  return text;
}

}  // namespace conversed::daemon
