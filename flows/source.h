#pragma once

#include <algorithm>
#include <cstddef>
#include <string>
#include <string_view>

#include "flows/loader.h"
#include "flows/located.h"
#include "flows/problem.h"

namespace conversed::flows {

// What reading a text has left of its LoadLimits::max_memory.
class ReadBudget {
 public:
  ReadBudget(std::size_t text_bytes, const LoadLimits& limits)
      : left_(std::min(limits.max_memory, (std::size_t{4} << 20) + 16 * text_bytes)) {}

  // For one value, and the bytes of its text. False once there is nothing left.
  [[nodiscard]] bool take_value(std::size_t text_bytes = 0) {
    return take(2 * sizeof(Located) + text_bytes);  // vectors that grow have room for twice as much
  }
  [[nodiscard]] bool take_name(std::size_t text_bytes) {
    return take(2 * (sizeof(Located::Member) - sizeof(Located)) + text_bytes);
  }
  [[nodiscard]] bool take(std::size_t bytes) {
    if (bytes > left_) return false;
    left_ -= bytes;
    return true;
  }
  [[nodiscard]] std::size_t left() const { return left_; }

  static constexpr const char* refusal =
      "the file has too many values for its size (aliases expanded): reading it would take too "
      "much "
      "memory; split it";

 private:
  std::size_t left_;
};

}  // namespace conversed::flows

// From the text of a file to a Located value. What a text means as a bundle is the loader's affair.
namespace conversed::flows {

// Chooses between the two readers below as load_bundle promises, after the checks that both need:
// size, UTF-8, no control characters but tab and line ends. Thread-safe.
[[nodiscard]] Checked<Located> read_source(std::string_view text, std::string_view file_name,
                                           const LoadLimits& limits);

// One YAML document, core schema. Aliases are expanded, and counted; duplicate names, names that
// are no text, unknown tags and merge keys are refused. Requires valid UTF-8.
[[nodiscard]] Checked<Located> read_yaml(std::string_view text, std::string_view file_name,
                                         const LoadLimits& limits);

// One JSON value (RFC 8259). Duplicate names and numbers out of range are refused.
// Requires valid UTF-8.
[[nodiscard]] Checked<Located> read_json(std::string_view text, std::string_view file_name,
                                         const LoadLimits& limits);

}  // namespace conversed::flows
