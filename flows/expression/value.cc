#include "flows/expression/value.h"

#include <algorithm>
#include <charconv>
#include <cmath>
#include <nlohmann/json.hpp>

#include "flows/expression/number.h"

namespace conversed::flows::expression {

using nlohmann::json;

Value Value::integer(std::int64_t value) {
  constexpr auto exact = static_cast<std::int64_t>(max_exact);
  if (value >= -exact && value <= exact) return number(static_cast<double>(value));
  Value made(Kind::integer);
  made.integer_ = value;
  return made;
}

Value Value::natural(std::uint64_t value) {
  if (value <= static_cast<std::uint64_t>(INT64_MAX)) {
    return integer(static_cast<std::int64_t>(value));
  }
  Value made(Kind::natural);
  made.natural_ = value;
  return made;
}

Value Value::from(const json& value) {
  switch (value.type()) {
    case json::value_t::null:
      return null();
    case json::value_t::boolean:
      return boolean(*value.get_ptr<const json::boolean_t*>());
    case json::value_t::number_integer:
      return integer(*value.get_ptr<const json::number_integer_t*>());
    case json::value_t::number_unsigned:
      return natural(*value.get_ptr<const json::number_unsigned_t*>());
    case json::value_t::number_float:
      return number(*value.get_ptr<const json::number_float_t*>());
    case json::value_t::string:
      return string(*value.get_ptr<const json::string_t*>());
    case json::value_t::array:
    case json::value_t::object: {
      Value made(Kind::json);
      made.json_ = &value;
      return made;
    }
    case json::value_t::binary:
    case json::value_t::discarded:
      break;  // no JSON text contains these
  }
  return {};
}

bool Value::is_array() const {
  return kind_ == Kind::array || (kind_ == Kind::json && json_->is_array());
}

bool Value::is_object() const {
  return kind_ == Kind::object || (kind_ == Kind::json && json_->is_object());
}

bool Value::truthy() const {
  if (is_nullish()) return false;
  if (kind_ == Kind::boolean) return boolean_;
  if (kind_ == Kind::number) return number_ != 0 && !std::isnan(number_);
  return kind_ != Kind::string || size_ != 0;
}

std::string_view Value::type_name() const {
  if (is_undefined()) return "undefined";
  if (kind_ == Kind::boolean) return "boolean";
  if (is_numeric()) return "number";
  return is_string() ? "string" : "object";
}

std::size_t Value::array_size() const {
  return kind_ == Kind::array ? array_->items.size() : json_->size();
}

Value Value::item(std::size_t index) const {
  if (kind_ == Kind::array) return index < array_->items.size() ? array_->items[index] : Value();
  const auto& items = *json_->get_ptr<const json::array_t*>();
  return index < items.size() ? from(items[index]) : Value();
}

std::optional<Value> Value::find(std::string_view key) const {
  if (kind_ == Kind::json) {
    const auto found = json_->find(key);
    return found == json_->end() ? std::nullopt : std::optional(from(*found));
  }
  const auto found = std::ranges::find(object_->properties, key, &Property::key);
  return found == object_->properties.end() ? std::nullopt : std::optional(found->value);
}

std::size_t Value::object_size() const {
  return kind_ == Kind::object ? object_->properties.size() : json_->size();
}

std::optional<std::size_t> array_index(std::string_view text) {
  constexpr std::uint32_t end = UINT32_MAX;
  if (text.size() > 10) return std::nullopt;  // reading a long text is not paid for
  if (text.size() > 1 && text[0] == '0') return std::nullopt;
  std::uint32_t index = end;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), index);
  const bool whole = parsed.ec == std::errc{} && parsed.ptr == text.data() + text.size();
  return whole && index < end ? std::optional<std::size_t>(index) : std::nullopt;
}

}  // namespace conversed::flows::expression
