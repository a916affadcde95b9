#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string_view>

#include "flows/expression/machine.h"

// Values to JSON and back. An error is the machine's.
namespace conversed::flows::expression {

// A copy of the value. As JSON.stringify has it, undefined is left out of objects and null in
// arrays, and so is a number that is not finite. Whole numbers become JSON integers where that is
// exact. Costs the budget about what the copy takes.
void copy_to_json(Machine& machine, const Value& value, nlohmann::json& out);

// JSON.stringify; `indent` is put before each level, nothing at all if it is empty. Of undefined,
// undefined.
[[nodiscard]] Value stringify(Machine& machine, const Value& value, std::string_view indent);

// JSON.parse. Keys keep their order.
[[nodiscard]] Value parse_json(Machine& machine, std::string_view text);

}  // namespace conversed::flows::expression
