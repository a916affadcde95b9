#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <string_view>
#include <utility>

namespace conversed::model {

// The names of an enum's values, as they are stored and shown.
template <typename T, std::size_t N>
struct Names {
  std::array<std::pair<T, std::string_view>, N> all;

  [[nodiscard]] constexpr std::string_view name_of(T value) const {
    for (const auto& [each, name] : all) {
      if (each == value) return name;
    }
    return "unknown";
  }
  [[nodiscard]] constexpr std::optional<T> value_of(std::string_view name) const {
    for (const auto& [value, each] : all) {
      if (each == name) return value;
    }
    return std::nullopt;
  }
};

}  // namespace conversed::model
