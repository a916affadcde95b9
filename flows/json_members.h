#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

// Reads members of JSON that may have any shape: stored state, and answers of upstreams.
namespace conversed::flows {

// Null if the member is missing or the value is not an object.
[[nodiscard]] inline const nlohmann::json* find_member(const nlohmann::json& value,
                                                       const char* name) {
  if (!value.is_object()) return nullptr;
  const auto found = value.find(name);
  return found == value.end() ? nullptr : &*found;
}

// Null if the member is missing or not a text.
[[nodiscard]] inline const std::string* find_text(const nlohmann::json& value, const char* name) {
  const nlohmann::json* found = find_member(value, name);
  return found != nullptr && found->is_string() ? found->get_ptr<const std::string*>() : nullptr;
}

// A whole number from 0 to 2^53. Nothing for other values.
[[nodiscard]] inline std::optional<std::int64_t> count_in(const nlohmann::json& value) {
  if (!value.is_number_integer()) return std::nullopt;
  const auto count = value.get<std::int64_t>();
  if (count < 0 || count > std::int64_t{1} << 53) return std::nullopt;
  return count;
}
[[nodiscard]] inline std::optional<std::int64_t> find_count(const nlohmann::json& value,
                                                            const char* name) {
  const nlohmann::json* found = find_member(value, name);
  return found != nullptr ? count_in(*found) : std::nullopt;
}

}  // namespace conversed::flows
