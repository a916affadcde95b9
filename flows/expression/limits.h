#pragma once

#include <cstddef>

namespace conversed::flows::expression {

// The limits of one evaluation. Exceeding one is an error of code too_large, never a crash.
struct Limits {
  std::size_t max_source_bytes = 16 * 1024;  // of one expression's text
  std::size_t max_depth = 64;           // nesting while parsing; also of texts given to JSON.parse
  std::size_t max_steps = 100'000;      // operations of one evaluation; about 20 ns each
  std::size_t max_bytes = 1024 * 1024;  // of all values made by one evaluation
};

}  // namespace conversed::flows::expression
