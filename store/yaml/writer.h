#pragma once

#include <nlohmann/json.hpp>
#include <string>

namespace conversed::yaml {

// The value as a YAML document that `read` reads back as it is. Texts stand without quotes only
// where no YAML reader of any version takes them for something else. Members keep their
// order. Requires valid UTF-8, and nesting that the readers of files permit. Pure; thread-safe.
[[nodiscard]] std::string write(const nlohmann::ordered_json& value);

}  // namespace conversed::yaml
