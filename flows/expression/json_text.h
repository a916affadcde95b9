#pragma once

#include <nlohmann/json.hpp>
#include <string_view>

#include "flows/expression/machine.h"

// Converts values to JSON and back. Errors are stored in the machine.
namespace conversed::flows::expression {

// Calls visit(key, value) for the properties of an object of either origin, until it returns false.
// Objects of the scope are ordered by their keys' bytes, as the store keeps them.
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

// A copy of the value. Like JSON.stringify, it leaves undefined out of objects and makes it null in
// arrays, and a number that is not finite becomes null. Whole numbers become JSON integers if that
// is exact. Costs the budget about the bytes of the copy.
void copy_to_json(Machine& machine, const Value& value, nlohmann::json& out);

// JSON.stringify. `indent` is put before each level. Empty: one line. undefined stays undefined.
[[nodiscard]] Value stringify(Machine& machine, const Value& value, std::string_view indent);

// JSON.parse. Keys keep their order.
[[nodiscard]] Value parse_json(Machine& machine, std::string_view text);

}  // namespace conversed::flows::expression
