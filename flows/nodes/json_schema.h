#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

// JSON Schema, as far as it says what shape a value has: `type`, `enum`, `const`, `properties`,
// `required`, `additionalProperties` (true or false), `items`, `minimum`, `maximum`, `minLength`,
// `maxLength`, `minItems` and `maxItems`. All other keywords are for whoever reads the schema.
// Pure, thread-safe.
namespace conversed::flows {

// What is wrong with the schema itself; nothing if it is one.
[[nodiscard]] std::optional<std::string> schema_problem(const nlohmann::json& schema);

// What is wrong with the value, with its path, such as `order.id: expected a string`; nothing if it
// fits. The schema is one that has no problem.
[[nodiscard]] std::optional<std::string> misfit(const nlohmann::json& value,
                                                const nlohmann::json& schema);

// The length of its longest list of choices or names: with how much a single value is compared.
[[nodiscard]] std::size_t schema_width(const nlohmann::json& schema);

}  // namespace conversed::flows
