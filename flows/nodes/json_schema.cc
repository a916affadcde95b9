#include "flows/nodes/json_schema.h"

#include <algorithm>
#include <array>
#include <cmath>
#include <string_view>
#include <utility>

#include "flows/fields.h"
#include "flows/json_members.h"
#include "store/text/utf8.h"

namespace conversed::flows {
namespace {

using nlohmann::json;

constexpr std::array<std::string_view, 7> types{"array",  "boolean", "integer", "null",
                                                "number", "object",  "string"};

bool is_list(const json& value) {
  return value.is_array() && !value.empty();
}
bool is_object(const json& value) {
  return value.is_object();
}
bool is_number(const json& value) {
  return value.is_number();
}
bool is_count(const json& value) {
  return value.is_number_integer() && value >= 0;
}
bool is_flag(const json& value) {
  return value.is_boolean();
}
bool are_texts(const json& value) {
  return value.is_array() &&
         std::ranges::all_of(value, [](const json& item) { return item.is_string(); });
}

constexpr std::array<std::pair<const char*, bool (*)(const json&)>, 11> shapes{
    {{"enum", is_list},
     {"properties", is_object},
     {"items", is_object},
     {"minimum", is_number},
     {"maximum", is_number},
     {"minLength", is_count},
     {"maxLength", is_count},
     {"minItems", is_count},
     {"maxItems", is_count},
     {"additionalProperties", is_flag},
     {"required", are_texts}}};

bool is_type(const json& name) {
  return name.is_string() &&
         std::ranges::find(types, name.get_ref<const std::string&>()) != types.end();
}

bool has_type(const json& value, std::string_view type) {
  if (type == "array") return value.is_array();
  if (type == "boolean") return value.is_boolean();
  if (type == "null") return value.is_null();
  if (type == "number") return value.is_number();
  if (type == "object") return value.is_object();
  if (type == "string") return value.is_string();
  if (value.is_number_float()) return std::trunc(value.get<double>()) == value.get<double>();
  return value.is_number_integer();  // "integer"
}

std::string at(const std::string& path, std::string message) {
  return path.empty() ? std::move(message) : path + ": " + message;
}

// Checks one value against one schema. `path` is the place of the value.
std::optional<std::string> check(const json& value, const json& schema, const std::string& path);

std::optional<std::string> check_type(const json& value, const json& schema,
                                      const std::string& path) {
  const json* type = find_member(schema, "type");
  if (type == nullptr) return std::nullopt;
  if (type->is_string()) {
    const auto& name = type->get_ref<const std::string&>();
    return has_type(value, name) ? std::nullopt : std::optional(at(path, "expected " + name));
  }
  const bool fits = std::ranges::any_of(
      *type, [&](const json& name) { return has_type(value, name.get_ref<const std::string&>()); });
  return fits ? std::nullopt : std::optional(at(path, "expected one of " + type->dump()));
}

std::optional<std::string> check_bounds(const json& schema, const std::string& path, double amount,
                                        const char* least, const char* most,
                                        const std::string& what) {
  const json* low = find_member(schema, least);
  if (low != nullptr && amount < low->get<double>()) {
    return at(path, "expected " + what + low->dump() + " or more");
  }
  const json* high = find_member(schema, most);
  if (high != nullptr && amount > high->get<double>()) {
    return at(path, "expected " + what + high->dump() + " or less");
  }
  return std::nullopt;
}

std::optional<std::string> check_object(const json& value, const json& schema,
                                        const std::string& path) {
  const std::string below = path.empty() ? "" : path + '.';
  if (const json* required = find_member(schema, "required")) {
    for (const auto& name : *required) {
      const auto& member = name.get_ref<const std::string&>();
      if (!value.contains(member)) return at(path, "'" + member + "' is missing");
    }
  }
  const json* properties = find_member(schema, "properties");
  const json* others = find_member(schema, "additionalProperties");
  for (const auto& [name, member] : value.items()) {
    const bool known = properties != nullptr && properties->contains(name);
    if (!known && others != nullptr && *others == false) {
      return at(path, "there is no '" + std::string(text::cut(name, 64)) + "'");
    }
    if (!known) continue;
    if (auto wrong = check(member, (*properties)[name], below + name)) return wrong;
  }
  return std::nullopt;
}

std::optional<std::string> check_list(const json& value, const json& schema,
                                      const std::string& path) {
  const auto size = static_cast<double>(value.size());
  if (auto wrong = check_bounds(schema, path, size, "minItems", "maxItems", "a length of ")) {
    return wrong;
  }
  const json* items = find_member(schema, "items");
  if (items == nullptr) return std::nullopt;
  for (std::size_t i = 0; i < value.size(); ++i) {
    const std::string place = path + '[' + std::to_string(i) + ']';
    if (auto wrong = check(value[i], *items, place)) return wrong;
  }
  return std::nullopt;
}

std::optional<std::string> check(const json& value, const json& schema, const std::string& path) {
  if (auto wrong = check_type(value, schema, path)) return wrong;
  if (const json* choices = find_member(schema, "enum")) {
    if (std::ranges::find(*choices, value) == choices->end()) {
      return at(path, "expected one of " + choices->dump());
    }
  }
  if (const json* only = find_member(schema, "const"); only != nullptr && value != *only) {
    return at(path, "expected " + only->dump());
  }
  if (value.is_number()) {
    return check_bounds(schema, path, value.get<double>(), "minimum", "maximum", "");
  }
  if (value.is_string()) {
    const auto length =
        static_cast<double>(text::count_characters(value.get_ref<const std::string&>()));
    return check_bounds(schema, path, length, "minLength", "maxLength", "a length of ");
  }
  if (value.is_object()) return check_object(value, schema, path);
  return value.is_array() ? check_list(value, schema, path) : std::nullopt;
}

std::optional<std::string> problem(const json& schema, const std::string& path) {
  if (!schema.is_object()) return at(path, "a schema is a mapping");
  if (const json* type = find_member(schema, "type")) {
    const bool list = type->is_array() && !type->empty() && std::ranges::all_of(*type, is_type);
    if (!list && !is_type(*type)) {
      return at(path, "'type' is one of array, boolean, integer, null, number, object and string");
    }
  }
  for (const auto& [name, has_shape] : shapes) {
    const json* found = find_member(schema, name);
    if (found != nullptr && !has_shape(*found)) {
      return at(path,
                "'" + std::string(name) + "' does not have the shape that JSON Schema requires");
    }
  }
  const std::string below = path.empty() ? "" : path + '.';
  if (const json* properties = find_member(schema, "properties")) {
    for (const auto& [name, member] : properties->items()) {
      if (auto wrong = problem(member, below + name)) return wrong;
    }
  }
  const json* items = find_member(schema, "items");
  return items == nullptr ? std::nullopt : problem(*items, path + "[]");
}

}  // namespace

std::optional<std::string> schema_problem(const json& schema) {
  return problem(schema, "");
}

std::size_t schema_width(const json& schema) {
  std::size_t width = schema.size();
  if (!schema.is_structured()) return width;
  for (const auto& part : schema) width = std::max(width, schema_width(part));
  return width;
}

std::optional<std::string> misfit(const json& value, const json& schema) {
  return check(value, schema, "");
}

}  // namespace conversed::flows
