#pragma once

#include <cstddef>
#include <cstdint>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <span>
#include <string_view>

namespace conversed::flows::expression {

class Value;
struct Array;
struct Object;

// A value of an expression: 24 bytes, trivially copied, owns nothing. Texts, arrays and objects are
// in the scope's JSON, in the program or in the machine, which must outlive the Value.
class Value {
 public:
  enum class Kind : std::uint8_t {
    undefined,
    null,
    boolean,
    number,
    integer,  // a JSON integer outside ±2^53; passing it on keeps it exact
    natural,  // one above the largest int64
    string,
    json,  // an array or object of the scope, in place
    array,
    object,
  };

  Value() = default;
  static Value null() { return Value(Kind::null); }
  static Value boolean(bool value) {
    Value made(Kind::boolean);
    made.boolean_ = value;
    return made;
  }
  static Value number(double value) {
    Value made(Kind::number);
    made.number_ = value;
    return made;
  }
  static Value number(std::size_t value) { return number(static_cast<double>(value)); }
  static Value integer(std::int64_t value);   // a number if that is exact
  static Value natural(std::uint64_t value);  // a number if that is exact
  static Value string(std::string_view value) {
    Value made(Kind::string);
    made.data_ = value.data();
    made.size_ = value.size();
    return made;
  }
  static Value array(const Array* value) {
    Value made(Kind::array);
    made.array_ = value;
    return made;
  }
  static Value object(const Object* value) {
    Value made(Kind::object);
    made.object_ = value;
    return made;
  }
  // Copies scalars and points to all other values: `value` must outlive the result.
  static Value from(const nlohmann::json& value);

  [[nodiscard]] Kind kind() const { return kind_; }
  [[nodiscard]] bool is_nullish() const { return kind_ <= Kind::null; }
  [[nodiscard]] bool is_undefined() const { return kind_ == Kind::undefined; }
  [[nodiscard]] bool is_number() const { return kind_ == Kind::number; }
  [[nodiscard]] bool is_numeric() const { return kind_ >= Kind::number && kind_ <= Kind::natural; }
  [[nodiscard]] bool is_string() const { return kind_ == Kind::string; }
  [[nodiscard]] bool is_composite() const { return kind_ >= Kind::json; }
  [[nodiscard]] bool is_array() const;   // of either origin
  [[nodiscard]] bool is_object() const;  // of either origin; not an array

  // Each requires a value of its kind.
  [[nodiscard]] bool as_boolean() const { return boolean_; }
  [[nodiscard]] double as_number() const { return number_; }
  [[nodiscard]] std::int64_t as_integer() const { return integer_; }
  [[nodiscard]] std::uint64_t as_natural() const { return natural_; }
  [[nodiscard]] std::string_view as_string() const { return {data_, size_}; }
  [[nodiscard]] const nlohmann::json& as_json() const { return *json_; }
  [[nodiscard]] const Array& as_array() const { return *array_; }
  [[nodiscard]] const Object& as_object() const { return *object_; }

  [[nodiscard]] bool truthy() const;
  [[nodiscard]] std::string_view type_name() const;  // the result of typeof

  // For arrays of either origin. An index past the end is undefined.
  [[nodiscard]] std::size_t array_size() const;
  [[nodiscard]] Value item(std::size_t index) const;

  // For objects of either origin: the value of an own property.
  [[nodiscard]] std::optional<Value> find(std::string_view key) const;
  [[nodiscard]] std::size_t object_size() const;

  // Whether both are the same array or object.
  [[nodiscard]] bool same_composite(const Value& other) const { return json_ == other.json_; }

 private:
  explicit Value(Kind kind) : kind_(kind) {}

  Kind kind_ = Kind::undefined;
  bool boolean_ = false;
  union {
    double number_ = 0;
    std::int64_t integer_;
    std::uint64_t natural_;
    const char* data_;
    const nlohmann::json* json_;
    const Array* array_;
    const Object* object_;
  };
  std::size_t size_ = 0;
};

struct Property {
  std::string_view key;
  Value value;
};

// An array in the machine. Never changed once made.
struct Array {
  std::span<const Value> items;
};

// Keys are unique, in JavaScript's order: array indexes first and ascending, then as inserted.
struct Object {
  std::span<const Property> properties;
};

// The array index if the text has JavaScript's form of one: "0", "17", not "01".
[[nodiscard]] std::optional<std::size_t> array_index(std::string_view text);

}  // namespace conversed::flows::expression
