#pragma once

#include <string>
#include <tl/expected.hpp>
#include <vector>

#include "store/yaml/located.h"

// The problems of a file, with their places.
namespace conversed::flows {

using yaml::Located;
using yaml::Place;

struct Problem {
  std::string file;
  Place place;       // line 0: unknown, such as in a stored Flow
  std::string path;  // such as `flows[0].nodes[3].then[0].say`; empty: the whole file
  std::string message;

  bool operator==(const Problem&) const = default;
};
using Problems = std::vector<Problem>;

// One line for people: `shop.yaml:12:7: flows[0].nodes[3].say: ...`, without unknown parts. It
// never contains a secret.
[[nodiscard]] std::string to_string(const Problem& problem);

// All problems, separated by newlines.
[[nodiscard]] std::string to_string(const Problems& problems);

// A value, or all problems of its source (at least one), in the file's order.
template <typename T>
using Checked = tl::expected<T, Problems>;

}  // namespace conversed::flows
