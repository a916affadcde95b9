// Operators of ECMA-262 (section 13).
#include <algorithm>
#include <array>
#include <cmath>
#include <functional>

#include "flows/expression/library.h"
#include "flows/expression/machine.h"
#include "flows/expression/number.h"
#include "flows/expression/text.h"

namespace conversed::flows::expression {
namespace {

Value integer(std::int32_t value) {
  return Value::number(static_cast<double>(value));
}

template <typename F>
Value arithmetic(Machine& machine, const Value& left, const Value& right) {
  const double x = machine.to_number(left);
  return Value::number(F{}(x, machine.to_number(right)));
}

template <typename F>
Value bits(Machine& machine, const Value& left, const Value& right) {
  const std::int32_t x = to_int32(machine.to_number(left));
  return integer(F{}(x, to_int32(machine.to_number(right))));
}

Value add(Machine& machine, const Value& left, const Value& right) {
  const Value x = machine.to_primitive(left);
  const Value y = machine.to_primitive(right);
  if (!x.is_string() && !y.is_string()) return arithmetic<std::plus<double>>(machine, x, y);
  const std::string_view head = machine.to_text(x);
  return machine.concat(head, machine.to_text(y));
}

Value remainder(Machine& machine, const Value& left, const Value& right) {
  const double x = machine.to_number(left);
  const double y = machine.to_number(right);
  // fmod divides bit by bit: 2000 bits between the largest number and the smallest.
  if (std::abs(x) > max_exact * std::abs(y) && !machine.step(16)) return {};
  return Value::number(std::fmod(x, y));
}

struct Power {
  double operator()(double base, double exponent) const { return power(base, exponent); }
};

// Shifts by the lowest five bits of the right side.
struct ShiftLeft {
  std::int32_t operator()(std::int32_t number, std::int32_t by) const {
    return static_cast<std::int32_t>(static_cast<std::uint32_t>(number) << (by & 31));
  }
};
struct ShiftRight {
  std::int32_t operator()(std::int32_t number, std::int32_t by) const {
    return number >> (by & 31);
  }
};
Value shift_right_unsigned(Machine& machine, const Value& left, const Value& right) {
  const std::uint32_t number = to_uint32(machine.to_number(left));
  const std::uint32_t by = to_uint32(machine.to_number(right)) & 31u;
  return Value::number(static_cast<double>(number >> by));
}

template <bool wanted>
Value loosely_equal(Machine& machine, const Value& left, const Value& right) {
  return Value::boolean(machine.loosely_equal(left, right) == wanted);
}
template <bool wanted>
Value strictly_equal(Machine& machine, const Value& left, const Value& right) {
  return Value::boolean(machine.strictly_equal(left, right) == wanted);
}

template <typename F>
Value compared(Machine& machine, const Value& left, const Value& right) {
  const Value x = machine.to_primitive(left);
  const Value y = machine.to_primitive(right);
  if (!x.is_string() || !y.is_string()) {
    const double number = machine.to_number(x);
    return Value::boolean(F{}(number, machine.to_number(y)));
  }
  machine.read(y.as_string().size());
  return Value::boolean(F{}(compare_units(x.as_string(), y.as_string()), 0));
}

Value in(Machine& machine, const Value& key, const Value& whole) {
  if (!whole.is_composite()) {
    return machine.fail("the right side of 'in' must be an object or an array");
  }
  const std::string_view name = machine.to_text(key);
  return Value::boolean(machine.has_own(whole, name));
}

template <bool (Value::*test)() const, bool wanted>
bool is(const Value& left) {
  return (left.*test)() == wanted;
}

constexpr std::array binary_operators{
    Operator{"??", 1, nullptr, is<&Value::is_nullish, false>},
    Operator{"||", 2, nullptr, is<&Value::truthy, true>},
    Operator{"&&", 3, nullptr, is<&Value::truthy, false>},
    Operator{"|", 4, bits<std::bit_or<>>},
    Operator{"^", 5, bits<std::bit_xor<>>},
    Operator{"&", 6, bits<std::bit_and<>>},
    Operator{"==", 7, loosely_equal<true>},
    Operator{"!=", 7, loosely_equal<false>},
    Operator{"===", 7, strictly_equal<true>},
    Operator{"!==", 7, strictly_equal<false>},
    Operator{"<", 8, compared<std::less<>>},
    Operator{"<=", 8, compared<std::less_equal<>>},
    Operator{">", 8, compared<std::greater<>>},
    Operator{">=", 8, compared<std::greater_equal<>>},
    Operator{"in", 8, in},
    Operator{"<<", 9, bits<ShiftLeft>},
    Operator{">>", 9, bits<ShiftRight>},
    Operator{">>>", 9, shift_right_unsigned},
    Operator{"+", 10, add},
    Operator{"-", 10, arithmetic<std::minus<>>},
    Operator{"*", 11, arithmetic<std::multiplies<>>},
    Operator{"/", 11, arithmetic<std::divides<>>},
    Operator{"%", 11, remainder},
    Operator{"**", 12, arithmetic<Power>},
};

Value negate(Machine& machine, const Value& operand, const Value&) {
  return Value::number(-machine.to_number(operand));
}
Value plus(Machine& machine, const Value& operand, const Value&) {
  return Value::number(machine.to_number(operand));
}
Value logical_not(Machine&, const Value& operand, const Value&) {
  return Value::boolean(!operand.truthy());
}
Value bit_not(Machine& machine, const Value& operand, const Value&) {
  return integer(~to_int32(machine.to_number(operand)));
}
Value type_of(Machine&, const Value& operand, const Value&) {
  return Value::string(operand.type_name());
}

constexpr std::array unary_operators{
    Operator{"!", 0, logical_not}, Operator{"-", 0, negate},       Operator{"+", 0, plus},
    Operator{"~", 0, bit_not},     Operator{"typeof", 0, type_of},
};

const Operator* find_in(std::span<const Operator> operators, std::string_view mark) {
  const auto found = std::ranges::find(operators, mark, &Operator::mark);
  return found == operators.end() ? nullptr : &*found;
}

}  // namespace

const Operator* find_unary(std::string_view mark) {
  return find_in(unary_operators, mark);
}

const Operator* find_binary(std::string_view mark) {
  return find_in(binary_operators, mark);
}

}  // namespace conversed::flows::expression
