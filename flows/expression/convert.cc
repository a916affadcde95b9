// Conversions and comparisons of ECMA-262 (section 7), and access to properties.
#include <algorithm>
#include <bit>
#include <cmath>
#include <nlohmann/json.hpp>

#include "flows/expression/machine.h"
#include "flows/expression/number.h"
#include "flows/expression/text.h"

namespace conversed::flows::expression {

std::string_view Machine::to_text(const Value& value, std::size_t depth) {
  switch (value.kind()) {
    case Value::Kind::undefined:
      return "undefined";
    case Value::Kind::null:
      return "null";
    case Value::Kind::boolean:
      return value.as_boolean() ? "true" : "false";
    case Value::Kind::number:
      return text(number_text(value.as_number())).as_string();
    case Value::Kind::integer:
      return text(std::to_string(value.as_integer())).as_string();
    case Value::Kind::natural:
      return text(std::to_string(value.as_natural())).as_string();
    case Value::Kind::string:
      return value.as_string();
    case Value::Kind::json:
    case Value::Kind::array:
    case Value::Kind::object:
      break;
  }
  if (!value.is_array()) return "[object Object]";
  if (depth >= max_depth()) {
    fail_limit("nested too deeply");
    return {};
  }
  TextBuilder out(*this);
  for (std::size_t at = 0; at < value.array_size(); ++at) {
    const Value item = value.item(at);
    if (!step() || (at > 0 && !out.append(","))) return {};
    if (!item.is_nullish() && !out.append(to_text(item, depth + 1))) return {};
  }
  return out.finish().as_string();
}

double Machine::to_number(const Value& value) {
  if (value.is_number()) return value.as_number();
  if (value.kind() == Value::Kind::integer) return static_cast<double>(value.as_integer());
  if (value.kind() == Value::Kind::natural) return static_cast<double>(value.as_natural());
  if (value.kind() == Value::Kind::boolean) return value.as_boolean() ? 1 : 0;
  if (value.is_nullish()) return value.is_undefined() ? std::nan("") : 0;
  const std::string_view text = to_text(value);
  return read(text.size()) ? parse_number(text) : 0;
}

Value Machine::to_primitive(const Value& value) {
  return value.is_composite() ? Value::string(to_text(value)) : value;
}

double Machine::to_integer(const Value& value, double otherwise) {
  return value.is_undefined() ? otherwise : expression::to_integer(to_number(value));
}

std::size_t Machine::position(const Value& value, std::size_t length, std::size_t otherwise) {
  const double place = to_integer(value, static_cast<double>(otherwise));
  return static_cast<std::size_t>(std::clamp(place, 0.0, static_cast<double>(length)));
}

std::size_t Machine::position_from_end(const Value& value, std::size_t length,
                                       std::size_t otherwise) {
  const double place = to_integer(value, static_cast<double>(otherwise));
  const auto size = static_cast<double>(length);
  return static_cast<std::size_t>(std::clamp(place < 0 ? size + place : place, 0.0, size));
}

bool Machine::strictly_equal(const Value& left, const Value& right) {
  if (left.is_numeric() && right.is_numeric()) return to_number(left) == to_number(right);
  if (left.kind() != right.kind()) return false;
  if (left.is_string()) {
    const std::string_view text = left.as_string();
    return text.size() == right.as_string().size() && step(text.size() / 32) &&
           text == right.as_string();
  }
  if (left.kind() == Value::Kind::boolean) return left.as_boolean() == right.as_boolean();
  return left.is_nullish() || left.same_composite(right);
}

bool Machine::loosely_equal(Value left, Value right) {
  if (left.is_nullish() || right.is_nullish()) return left.is_nullish() && right.is_nullish();
  const bool same_type = (left.is_numeric() && right.is_numeric()) || left.kind() == right.kind() ||
                         (left.is_composite() && right.is_composite());
  if (same_type) return strictly_equal(left, right);
  left = to_primitive(left);
  right = to_primitive(right);
  if (left.is_string() && right.is_string()) return strictly_equal(left, right);
  return to_number(left) == to_number(right);
}

Value Machine::get(const Value& value, const Value& key) {
  if (key.is_number() && (value.is_string() || value.is_array())) {
    const double position = key.as_number();
    if (!(position >= 0) || position != std::trunc(position) || position >= 4294967295.0) return {};
    const auto at = static_cast<std::size_t>(position);
    if (!value.is_string()) return value.item(at);
    if (!read(value.as_string().size()) || at >= unit_length(value.as_string())) return {};
    return slice(value.as_string(), at, at + 1);
  }
  return get(value, to_text(key));
}

Value Machine::get(const Value& value, std::string_view key) {
  if (value.is_object()) {
    return look_up(value, key) ? value.find(key).value_or(Value()) : Value();
  }
  if (!value.is_string() && !value.is_array()) return {};
  if (key == "length") {
    if (value.is_array()) return Value::number(value.array_size());
    if (!read(value.as_string().size())) return {};
    return Value::number(unit_length(value.as_string()));
  }
  const auto at = array_index(key);
  return at ? get(value, Value::number(*at)) : Value();
}

bool Machine::has_own(const Value& value, std::string_view key) {
  if (value.is_object()) return look_up(value, key) && value.find(key);
  if (!value.is_array() && !value.is_string()) return false;
  if (key == "length") return true;
  const auto at = array_index(key);
  if (value.is_array()) return at && *at < value.array_size();
  return at && !get(value, Value::number(*at)).is_undefined();
}

bool Machine::look_up(const Value& object, std::string_view key) {
  const std::size_t size = object.object_size();
  // Only keys of the scope are sorted. Long keys may differ only at their ends.
  const std::size_t compared = object.kind() == Value::Kind::object ? size : std::bit_width(size);
  return step(compared / 16 + compared * key.size() / 1024);
}

void Machine::spread(const Value& value, std::vector<Value>& out) {
  if (failed()) return;
  if (value.is_array()) {
    const std::size_t size = value.array_size();
    if (!step(size) || !charge(size * sizeof(Value))) return;
    for (std::size_t at = 0; at < size; ++at) out.push_back(value.item(at));
    return;
  }
  if (!value.is_string()) {
    fail(std::string(value.is_nullish() || !value.is_object() ? value.type_name() : "an object") +
         " is not a list");
    return;
  }
  const std::string_view text = value.as_string();
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t bytes = decode(text, at).bytes;
    if (!step() || !charge(sizeof(Value))) return;
    out.push_back(Value::string(text.substr(at, bytes)));
    at += bytes;
  }
}

}  // namespace conversed::flows::expression
