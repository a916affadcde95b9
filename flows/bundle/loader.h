#pragma once

#include <cstddef>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flows/problem.h"
#include "store/model/bundle.h"

namespace conversed::flows {

class View;

// Looks up NAME of a `${NAME}`. Nothing if it is not set. Called on the caller's thread only.
using Environment = std::function<std::optional<std::string>(std::string_view name)>;

// Whether every variable must have a value. If values may be missing, the importing installation
// has them, and a text with a variable is not checked.
enum class Variables : std::uint8_t { needed, may_be_missing };

struct LoadLimits {
  std::size_t max_bytes = std::size_t{16} << 20;  // of the text
  std::size_t max_depth = 64;                     // of nested values; the outermost counts as 1
  // The approximate limit for the memory of the values, with aliases expanded. A short text has a
  // lower limit: 4 MiB and 16 bytes for each of its bytes.
  std::size_t max_memory = std::size_t{128} << 20;
  std::size_t max_problems = 200;  // further ones are counted but not listed
  Variables variables = Variables::needed;
};

// Makes a Bundle from the text of a YAML or JSON file, or lists all its problems. The text is JSON
// if `file_name` ends in `.json`, or if it begins with `{` and is valid JSON. Otherwise it is YAML
// (core schema: `yes` and quoted numbers are texts). `file_name` only names the file in problems.
// Kept by: YamlSource.ResolvesTheCoreSchemaAndNothingElse.
//
// The Bundle is complete and consistent: names are unique, references are valid, every Flow
// compiles, and every `${NAME}` in a Connection's fields or a webhook is replaced. Pure except for
// `environment`. Thread-safe.
[[nodiscard]] Checked<model::Bundle> load_bundle(std::string_view text, std::string_view file_name,
                                                 const Environment& environment,
                                                 const LoadLimits& limits = {});

// The same for a value that `read_source` has read.
[[nodiscard]] Checked<model::Bundle> load_bundle(const Located& source, std::string_view file_name,
                                                 const Environment& environment,
                                                 const LoadLimits& limits = {});

// Chooses between YAML and JSON as load_bundle does. Checks size and characters first. Thread-safe.
[[nodiscard]] Checked<Located> read_source(std::string_view text, std::string_view file_name,
                                           const LoadLimits& limits);

struct WrittenBundle {
  std::string text;                    // YAML
  std::vector<std::string> variables;  // each NAME that an import needs, sorted
};

// The text of a file from which load_bundle makes the same Bundle, given a value for each variable.
// It contains no secret: if a Connection's field or a webhook's secret has no source (`null` or
// empty), a `${NAME}` is made from its names. Parts that load_bundle would refuse are written
// unchanged. Pure. Thread-safe.
// Kept by: BundleWriter.GivesBackGeneratedBundles,
// BundleWriter.WritesNoSecretAndNamesWhatAnImportNeeds.
[[nodiscard]] WrittenBundle write_bundle(const model::Bundle& bundle);

// One JSON value (RFC 8259). Duplicate names and numbers out of range are refused.
[[nodiscard]] Checked<Located> read_json(std::string_view text, std::string_view file_name,
                                         const LoadLimits& limits);

// Reads the bundle of a Located value, for load_bundle. The result is valid only if the view's
// report has no problems. Problems never contain the value of a `${NAME}`.
// Kept by: LoaderProblems.NeverHoldASecret.
[[nodiscard]] model::Bundle read_bundle(const View& root, const Environment& environment,
                                        Variables variables);

}  // namespace conversed::flows
