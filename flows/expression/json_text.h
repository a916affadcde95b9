#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "flows/expression/machine.h"

// Values to JSON and back. An error is the machine's.
namespace conversed::flows::expression {

// Calls visit(key, value) for the properties of an object of either origin, until it says false.
// Objects of the scope have the order of their keys' bytes, since the store keeps them so.
template <typename Visit>
void each_property(const Value& object, Visit visit) {
  if (object.kind() == Value::Kind::object) {
    for (const Property& property : object.as_object().properties) {
      if (!visit(property.key, property.value)) return;
    }
    return;
  }
  for (const auto& [key, value] : *object.as_json().get_ptr<const nlohmann::json::object_t*>()) {
    if (!visit(std::string_view(key), Value::from(value))) return;
  }
}

// A copy of the value. As JSON.stringify has it, undefined is left out of objects and null in
// arrays, and so is a number that is not finite. Whole numbers become JSON integers where that is
// exact. Costs the budget about the bytes of the copy.
void copy_to_json(Machine& machine, const Value& value, nlohmann::json& out);

// JSON.stringify; `indent` is put before each level, nothing at all if it is empty. Of undefined,
// undefined.
[[nodiscard]] Value stringify(Machine& machine, const Value& value, std::string_view indent);

// JSON.parse. Keys keep their order.
[[nodiscard]] Value parse_json(Machine& machine, std::string_view text);

}  // namespace conversed::flows::expression
