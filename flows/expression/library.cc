// Methods of every type, constants, and the look-up of all that can be called.
#include "flows/expression/library.h"

#include <algorithm>
#include <cmath>
#include <limits>
#include <map>
#include <numbers>

#include "flows/expression/json_text.h"
#include "flows/expression/machine.h"
#include "flows/expression/number.h"

namespace conversed::flows::expression {
namespace {

// Writing all digits of a number takes about as long as this many plain steps.
constexpr std::size_t digits_steps = 32;

Value to_fixed(Machine& machine, const Value& self, const Args& args) {
  const double digits = to_integer(machine.to_number(args[0]));
  if (!machine.step(digits_steps)) return {};
  if (digits < 0 || digits > 100) return machine.fail("toFixed() takes 0 to 100 digits");
  return machine.text(fixed_text(machine.to_number(self), static_cast<int>(digits)));
}

Value to_precision(Machine& machine, const Value& self, const Args& args) {
  const double number = machine.to_number(self);
  if (args[0].is_undefined() || !std::isfinite(number)) return Value::string(machine.to_text(self));
  const double digits = to_integer(machine.to_number(args[0]));
  if (!machine.step(digits_steps)) return {};
  if (digits < 1 || digits > 100) return machine.fail("toPrecision() takes 1 to 100 digits");
  return machine.text(precision_text(number, static_cast<int>(digits)));
}

Value number_to_string(Machine& machine, const Value& self, const Args& args) {
  if (args[0].is_undefined()) return Value::string(machine.to_text(self));
  const double radix = to_integer(machine.to_number(args[0]));
  if (!machine.step(digits_steps)) return {};
  if (radix < 2 || radix > 36) return machine.fail("toString() takes a radix from 2 to 36");
  if (radix == 10) return Value::string(machine.to_text(self));
  return machine.text(number_text(machine.to_number(self), static_cast<int>(radix)));
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

constexpr std::array number_methods{
    MethodRow{"toFixed", to_fixed},
    MethodRow{"toPrecision", to_precision},
    MethodRow{"toString", number_to_string},
};

constexpr std::array any_methods{
    MethodRow{"hasOwnProperty", has_own_property},
    MethodRow{"toString", to_string},
    MethodRow{"valueOf", value_of},
};

constexpr double not_a_number = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

struct NamedConstant {
  std::string_view space;
  std::string_view name;
  double value;
};

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

using MethodTable = std::map<std::string_view, Method>;

MethodTable merge_methods() {
  MethodTable table;
  const auto add = [&](std::span<const MethodRow> rows, Native Method::*column) {
    for (const MethodRow& row : rows) {
      Method& method = table[row.name];
      method.*column = row.run;
      method.takes = row.takes;
    }
  };
  add(any_methods, &Method::on_any);
  add(number_methods, &Method::on_number);
  add(string_methods(), &Method::on_string);
  add(array_methods(), &Method::on_array);
  return table;
}

}  // namespace

Native Method::of(const Value& self) const {
  Native own = nullptr;
  if (self.is_string()) own = on_string;
  if (self.is_numeric()) own = on_number;
  if (self.is_array()) own = on_array;
  return own != nullptr ? own : on_any;
}

const Method* find_method(std::string_view name) {
  static const MethodTable table = merge_methods();
  const auto found = table.find(name);
  return found == table.end() ? nullptr : &found->second;
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
