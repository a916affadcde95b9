#pragma once

#include <nlohmann/json.hpp>

namespace conversed::flows::tools {

// JSON Schemas (2020-12), from which editors complete and check files while people write. They know
// keys, types, bounds and choices, made from the tables of the readers. The readers know more, such
// as references and expressions, so a file can fit its schema and be refused. An accepted file fits
// its schema, unless it writes null for a missing value. Pure. Thread-safe.
// Kept by: tests/flows/schema_test.py.
[[nodiscard]] nlohmann::ordered_json bundle_schema();
[[nodiscard]] nlohmann::ordered_json test_file_schema();

}  // namespace conversed::flows::tools
