#pragma once

#include <array>
#include <cstddef>
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "flows/expression/ast.h"

// Operators, methods of strings, arrays and numbers, and functions such as Math.max. The tables are
// constant. A native runs within one evaluation, on one thread.
namespace conversed::flows::expression {

class Machine;

// The arguments of one call. A missing argument is undefined.
class Args {
 public:
  void push(const Value& value) {
    if (size_ < inline_.size()) {
      inline_[size_] = value;
    } else {
      more_.push_back(value);
    }
    ++size_;
  }
  [[nodiscard]] std::size_t size() const { return size_; }
  [[nodiscard]] Value operator[](std::size_t index) const {
    if (index >= size_) return {};
    return index < inline_.size() ? inline_[index] : more_[index - inline_.size()];
  }
  // The arrow function or library function of the first argument. 0 if there is none.
  NodeId callback = 0;

 private:
  std::array<Value, 4> inline_;
  std::vector<Value> more_;
  std::size_t size_ = 0;
};

using Native = Value (*)(Machine& machine, const Value& self, const Args& args);

enum class Takes : std::uint8_t { values, callback };

// One method of one type.
struct Method {
  std::string_view name;
  Native run = nullptr;
  Takes takes = Takes::values;
};

struct Operator {
  std::string_view mark;
  int precedence = 0;  // from 1; for a binary operator
  // The value of `left mark right`, or of `mark left`.
  Value (*run)(Machine& machine, const Value& left, const Value& right) = nullptr;
  // For ??, || and && instead of `run`: whether the left side is the value, without the right one.
  bool (*settled)(const Value& left) = nullptr;
};

struct Function {
  std::string_view space;  // "Math", or empty for a global function
  std::string_view name;
  Native run = nullptr;
};

[[nodiscard]] const Operator* find_unary(std::string_view mark);
[[nodiscard]] const Operator* find_binary(std::string_view mark);
// The method of the value's type, otherwise a method of all types, otherwise null.
[[nodiscard]] const Method* find_method(const Value& self, std::string_view name);
// Of all types.
[[nodiscard]] std::span<const std::string_view> method_names();
// Whether arrays have a method of that name that takes a function.
[[nodiscard]] bool takes_callback(std::string_view name);
[[nodiscard]] const Function* find_function(std::string_view space, std::string_view name);

// Names such as "Math" and "JSON", which are not values.
[[nodiscard]] bool is_namespace(std::string_view name);

struct NamedConstant {
  std::string_view space;  // "Math", or empty for a global constant
  std::string_view name;
  double value = 0;
};

[[nodiscard]] std::optional<double> find_constant(std::string_view space, std::string_view name);

// The rows of each file.
[[nodiscard]] std::span<const Method> string_methods();
[[nodiscard]] std::span<const Method> array_methods();
[[nodiscard]] std::span<const Method> number_methods();
[[nodiscard]] std::span<const Method> any_methods();  // of all types
[[nodiscard]] std::span<const Function> math_functions();
[[nodiscard]] std::span<const Function> global_functions();
[[nodiscard]] std::span<const NamedConstant> named_constants();

}  // namespace conversed::flows::expression
