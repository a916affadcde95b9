// The templates that most files use. A file whose precompiled header includes this one does not
// compile their members again: cmake/common_templates.cc compiles them once. Only for builds
// without optimization (cmake/modules.cmake).
#pragma once

#include <map>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#define CONVERSED_COMMON_TEMPLATES(EACH)                                     \
  EACH class std::vector<nlohmann::json>;                                    \
  EACH class std::vector<nlohmann::json*>;                                   \
  EACH class std::map<std::string, nlohmann::json, std::less<>>;             \
  EACH class nlohmann::basic_json<>;                                         \
  EACH class nlohmann::detail::json_ref<nlohmann::json>;                     \
  EACH class nlohmann::detail::serializer<nlohmann::json>;                   \
  EACH class nlohmann::detail::json_sax_dom_parser<nlohmann::json>;          \
  EACH class nlohmann::detail::json_sax_dom_callback_parser<nlohmann::json>; \
  EACH class std::optional<std::string>;                                     \
  EACH class std::vector<char>;                                              \
  EACH class std::vector<std::string>;                                       \
  EACH class std::vector<std::pair<std::string, std::string>>;               \
  EACH class std::map<std::string, std::string>;

CONVERSED_COMMON_TEMPLATES(extern template)
