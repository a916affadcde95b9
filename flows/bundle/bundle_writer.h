#pragma once

#include <string>
#include <vector>

#include "store/model/bundle.h"

namespace conversed::flows {

struct WrittenBundle {
  std::string text;                    // YAML
  std::vector<std::string> variables;  // NAME of each `${NAME}` that an import needs, sorted
};

// The text of a file from which load_bundle makes the same Bundle, given a value for each variable.
// No secret is written: if a Connection's field or a webhook's secret has no source (`null` or
// empty), a
// `${NAME}` is made from its names. Parts that load_bundle would refuse are written unchanged. Kept
// by: BundleWriter.GivesBackGeneratedBundles, BundleWriter.WritesNoSecretAndNamesWhatAnImportNeeds.
// Pure; thread-safe.
[[nodiscard]] WrittenBundle write_bundle(const model::Bundle& bundle);

}  // namespace conversed::flows
