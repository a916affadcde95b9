#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

namespace conversed::config {

// One problem of the settings, for people. Never holds the value of a secret. Kept by:
// Load.SecretsAreNeverShown.
struct Problem {
  std::string file;          // as the operator named it, or `environment_source`
  std::uint32_t line = 0;    // from 1; 0: no line applies
  std::uint32_t column = 0;  // from 1; 0: no column applies
  std::string path;          // the key (`listen.port`) or the variable; may be empty
  std::string message;

  bool operator==(const Problem&) const = default;
};

// The `file` of a Problem whose value came from an environment variable.
inline constexpr std::string_view environment_source = "environment";

// One line a problem, each ended by '\n', in the order given:
//   conversed.yaml:12: listen.port: expected a whole number from 0 to 65535, got "eighty"
//   conversed.yaml:3:7: illegal map value              (the syntax: no key to name, so the column)
//   environment: CONVERSED_WORKERS: expected ...
[[nodiscard]] std::string format_problems(const std::vector<Problem>& problems);

}  // namespace conversed::config
