#pragma once

#include <algorithm>
#include <cstddef>

#include "store/yaml/located.h"

namespace conversed::yaml {

// The memory that reading a text may still take.
class ReadBudget {
 public:
  // A short text gets less than `max_memory`: 4 MiB, and 16 bytes for each of its own.
  ReadBudget(std::size_t text_bytes, std::size_t max_memory)
      : left_(std::min(max_memory, (std::size_t{4} << 20) + 16 * text_bytes)) {}

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
      "too many values (aliases expanded): reading the file would take too much memory";

 private:
  std::size_t left_;
};

}  // namespace conversed::yaml
