#pragma once

#include <string>
#include <vector>

#include "store/model/bundle.h"

namespace conversed::flows {

struct WrittenBundle {
  std::string text;                    // YAML
  std::vector<std::string> variables;  // NAME of each `${NAME}` that an import needs, sorted
};

// The text of a file that load_bundle makes the same Bundle of, given a value for each variable.
// Secrets are not read, and none is written: where a Connection's field or a webhook's secret has
// no source (`null`, or an empty one), a `${NAME}` is made of the names that it belongs to. What
// load_bundle would refuse is written as it is. Pure; thread-safe.
[[nodiscard]] WrittenBundle write_bundle(const model::Bundle& bundle);

}  // namespace conversed::flows
