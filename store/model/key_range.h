#pragma once

#include <string>
#include <string_view>

namespace conversed::model {

// The keys of sessions, as `SessionKey::encode` writes them, from `from` up to, but without, `to`.
struct KeyRange {
  std::string from;
  std::string to;

  [[nodiscard]] bool contains(std::string_view key) const { return key >= from && key < to; }
};

[[nodiscard]] KeyRange keys_of_project(std::string_view project_id);
[[nodiscard]] KeyRange keys_of_user(std::string_view project_id, std::string_view user_id);
// The user's sessions at one Endpoint.
[[nodiscard]] KeyRange keys_of_user(std::string_view project_id, std::string_view user_id,
                                    std::string_view endpoint_id);

}  // namespace conversed::model
