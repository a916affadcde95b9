#pragma once

#include <nlohmann/json.hpp>

#include "flows/expression/value.h"

namespace conversed::flows::expression {

// Calls visit(key, value) for the properties of an object of either origin, until it says false.
// What comes from the scope comes in the order of its keys' bytes, since that is how the store
// keeps it.
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

}  // namespace conversed::flows::expression
