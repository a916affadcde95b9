#pragma once

#include <algorithm>
#include <cstddef>

#include "flows/expression/machine.h"
#include "flows/expression/number.h"

// Positions in texts and arrays, as methods take them.
namespace conversed::flows::expression {

inline double integer(Machine& machine, const Value& value) {
  return to_integer(machine.to_number(value));
}

// A position counted from the end if negative, within [0, length].
inline std::size_t relative(double position, std::size_t length) {
  const auto size = static_cast<double>(length);
  if (position < 0) position = std::max(0.0, size + position);
  return static_cast<std::size_t>(std::min(position, size));
}

}  // namespace conversed::flows::expression
