// Methods of all types, constants, and the look-up of everything that can be called.
#include "flows/expression/library.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <numbers>

#include "flows/expression/machine.h"
#include "flows/expression/number.h"

namespace conversed::flows::expression {
namespace {

// Writing all digits of a number costs about this many plain steps.
constexpr std::size_t digits_steps = 32;

// The number of digits, or the radix, of a method's argument. 0 and a failure if out of range.
int small_number(Machine& machine, const Value& value, int least, int most, const char* problem) {
  const double number = machine.to_integer(value);
  if (!machine.step(digits_steps)) return 0;
  if (number >= least && number <= most) return static_cast<int>(number);
  machine.fail(problem);
  return 0;
}

Value to_fixed(Machine& machine, const Value& self, const Args& args) {
  const int digits = small_number(machine, args[0], 0, 100, "toFixed() takes 0 to 100 digits");
  return machine.failed() ? Value() : machine.text(fixed_text(machine.to_number(self), digits));
}

Value to_precision(Machine& machine, const Value& self, const Args& args) {
  const double number = machine.to_number(self);
  if (args[0].is_undefined() || !std::isfinite(number)) return Value::string(machine.to_text(self));
  const int digits = small_number(machine, args[0], 1, 100, "toPrecision() takes 1 to 100 digits");
  return machine.failed() ? Value() : machine.text(precision_text(number, digits));
}

Value number_to_string(Machine& machine, const Value& self, const Args& args) {
  if (args[0].is_undefined()) return Value::string(machine.to_text(self));
  const int radix = small_number(machine, args[0], 2, 36, "toString() takes a radix from 2 to 36");
  if (machine.failed() || radix == 10) return Value::string(machine.to_text(self));
  return machine.text(number_text(machine.to_number(self), radix));
}

Value to_string(Machine& machine, const Value& self, const Args&) {
  return Value::string(machine.to_text(self));
}

Value value_of(Machine&, const Value& self, const Args&) {
  return self;
}

Value has_own_property(Machine& machine, const Value& self, const Args& args) {
  return Value::boolean(machine.has_own(self, machine.to_text(args[0])));
}

constexpr std::array methods_of_numbers{
    Method{"toFixed", to_fixed},
    Method{"toPrecision", to_precision},
    Method{"toString", number_to_string},
};

constexpr std::array methods_of_all{
    Method{"hasOwnProperty", has_own_property},
    Method{"toString", to_string},
    Method{"valueOf", value_of},
};

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

constexpr std::array constants{
    NamedConstant{"", "Infinity", infinity},
    NamedConstant{"", "NaN", not_a_number},
    NamedConstant{"Math", "E", std::numbers::e},
    NamedConstant{"Math", "LN10", std::numbers::ln10},
    NamedConstant{"Math", "LN2", std::numbers::ln2},
    NamedConstant{"Math", "LOG10E", std::numbers::log10e},
    NamedConstant{"Math", "LOG2E", std::numbers::log2e},
    NamedConstant{"Math", "PI", std::numbers::pi},
    NamedConstant{"Math", "SQRT1_2", std::numbers::sqrt2 / 2},
    NamedConstant{"Math", "SQRT2", std::numbers::sqrt2},
    NamedConstant{"Number", "EPSILON", std::numeric_limits<double>::epsilon()},
    NamedConstant{"Number", "MAX_SAFE_INTEGER", max_exact - 1},
    NamedConstant{"Number", "MAX_VALUE", std::numeric_limits<double>::max()},
    NamedConstant{"Number", "MIN_SAFE_INTEGER", 1 - max_exact},
    NamedConstant{"Number", "MIN_VALUE", std::numeric_limits<double>::denorm_min()},
    NamedConstant{"Number", "NEGATIVE_INFINITY", -infinity},
    NamedConstant{"Number", "NaN", not_a_number},
    NamedConstant{"Number", "POSITIVE_INFINITY", infinity},
};

const Method* find_in(std::span<const Method> methods, std::string_view name) {
  const auto found = std::ranges::find(methods, name, &Method::name);
  return found == methods.end() ? nullptr : &*found;
}

}  // namespace

std::span<const Method> number_methods() {
  return methods_of_numbers;
}

std::span<const Method> any_methods() {
  return methods_of_all;
}

std::span<const NamedConstant> named_constants() {
  return constants;
}

const Method* find_method(const Value& self, std::string_view name) {
  const Method* own = nullptr;
  if (self.is_string()) own = find_in(string_methods(), name);
  if (self.is_numeric()) own = find_in(number_methods(), name);
  if (self.is_array()) own = find_in(array_methods(), name);
  return own != nullptr ? own : find_in(any_methods(), name);
}

std::span<const std::string_view> method_names() {
  static const std::vector<std::string_view> names = [] {
    std::vector<std::string_view> all;
    for (const auto methods :
         {string_methods(), array_methods(), number_methods(), any_methods()}) {
      for (const Method& method : methods) all.push_back(method.name);
    }
    return all;
  }();
  return names;
}

bool takes_callback(std::string_view name) {
  const Method* method = find_in(array_methods(), name);
  return method != nullptr && method->takes == Takes::callback;
}

const Function* find_function(std::string_view space, std::string_view name) {
  const auto functions = space == "Math" ? math_functions() : global_functions();
  const auto found = std::ranges::find_if(functions, [&](const Function& function) {
    return function.space == space && function.name == name;
  });
  return found == functions.end() ? nullptr : &*found;
}

bool is_namespace(std::string_view name) {
  constexpr std::array<std::string_view, 7> names{"Array",  "Date",   "JSON",  "Math",
                                                  "Number", "Object", "String"};
  return std::ranges::find(names, name) != names.end();
}

std::optional<double> find_constant(std::string_view space, std::string_view name) {
  for (const NamedConstant& constant : constants) {
    if (constant.space == space && constant.name == name) return constant.value;
  }
  return std::nullopt;
}

}  // namespace conversed::flows::expression
