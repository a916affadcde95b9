#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "store/yaml/located.h"

// What is wrong with a text that somebody wrote, told with its place.
namespace conversed::flows {

using yaml::Located;
using yaml::Place;

struct Problem {
  std::string file;
  Place place;       // line 0: the value has none, as in a Flow that comes from the store
  std::string path;  // such as `flows[0].nodes[3].then[0].say`; empty: the whole file
  std::string message;

  bool operator==(const Problem&) const = default;
};
using Problems = std::vector<Problem>;

// One line for people: `shop.yaml:12:7: flows[0].nodes[3].say: ...`; parts that are not known are
// left out. The line never holds a secret.
[[nodiscard]] std::string to_string(const Problem& problem);

// All lines, each ended by a newline but the last.
[[nodiscard]] std::string to_string(const Problems& problems);

// A value, or everything that is wrong with its source: at least one Problem, in the file's order.
template <typename T>
using Checked = tl::expected<T, Problems>;

}  // namespace conversed::flows
