#pragma once

#include <ranges>
#include <string>
#include <string_view>

namespace conversed::text {

// "a, b, c"
template <std::ranges::input_range Texts>
[[nodiscard]] std::string joined(const Texts& texts, std::string_view between = ", ") {
  std::string all;
  for (const auto& each : texts) {
    if (!all.empty()) all += between;
    all += each;
  }
  return all;
}

}  // namespace conversed::text
