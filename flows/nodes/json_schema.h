#pragma once

#include <nlohmann/json.hpp>
#include <optional>
#include <string>

// A subset of JSON Schema: `type`, `enum`, `const`, `properties`, `required`,
// `additionalProperties` (true or false), `items`, `minimum`, `maximum`, `minLength`, `maxLength`,
// `minItems` and `maxItems`. Other keywords are ignored. Pure, thread-safe.
namespace conversed::flows {

// The problem of the schema itself. Nothing if it is correct.
[[nodiscard]] std::optional<std::string> schema_problem(const nlohmann::json& schema);

// The first mismatch, such as `order.id: expected a string`. Nothing if the value fits. Requires a
// schema without a problem.
[[nodiscard]] std::optional<std::string> misfit(const nlohmann::json& value,
                                                const nlohmann::json& schema);

// The length of the schema's longest list of choices or names: the cost of comparing one value.
[[nodiscard]] std::size_t schema_width(const nlohmann::json& schema);

}  // namespace conversed::flows
