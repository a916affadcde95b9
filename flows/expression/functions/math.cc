// Functions and constants of Math.
#include <array>
#include <cmath>
#include <limits>

#include "flows/expression/library.h"
#include "flows/expression/machine.h"
#include "flows/expression/number.h"

namespace conversed::flows::expression {
namespace {

template <double (*F)(double)>
Value one(Machine& machine, const Value&, const Args& args) {
  return Value::number(F(machine.to_number(args[0])));
}

double round(double x) {
  // Halves go up, not away from zero. Whole numbers stay, including -0.
  if (!std::isfinite(x) || x == std::trunc(x)) return x;
  const double down = std::floor(x);
  return std::copysign(x - down >= 0.5 ? down + 1 : down, x);
}
double sign(double x) {
  return x > 0 ? 1 : x < 0 ? -1 : x;
}
double fround(double x) {
  return static_cast<double>(static_cast<float>(x));
}

template <double (*F)(double, double)>
Value two(Machine& machine, const Value&, const Args& args) {
  const double first = machine.to_number(args[0]);
  return Value::number(F(first, machine.to_number(args[1])));
}

Value hypot(Machine& machine, const Value&, const Args& args) {
  double total = 0;
  for (std::size_t i = 0; i < args.size(); ++i)
    total = std::hypot(total, machine.to_number(args[i]));
  return Value::number(total);
}

// Math.max for 1, Math.min for -1.
template <int sign_of_best>
Value extreme(Machine& machine, const Value&, const Args& args) {
  double best = -sign_of_best * std::numeric_limits<double>::infinity();
  for (std::size_t i = 0; i < args.size() && machine.step(); ++i) {
    const double candidate = machine.to_number(args[i]);
    if (std::isnan(candidate) || std::isnan(best)) {
      best = std::nan("");
      continue;
    }
    const bool better = candidate * sign_of_best > best * sign_of_best;
    const bool zeros = candidate == 0 && best == 0;  // -0 is less than 0
    if (better || (zeros && std::signbit(candidate) == (sign_of_best < 0))) best = candidate;
  }
  return Value::number(best);
}

Value random(Machine& machine, const Value&, const Args&) {
  return Value::number(machine.scope().random.next());
}

constexpr std::array functions_of_math{
    Function{"Math", "abs", one<::fabs>},    Function{"Math", "acos", one<::acos>},
    Function{"Math", "asin", one<::asin>},   Function{"Math", "atan", one<::atan>},
    Function{"Math", "atan2", two<::atan2>}, Function{"Math", "cbrt", one<::cbrt>},
    Function{"Math", "ceil", one<::ceil>},   Function{"Math", "cos", one<::cos>},
    Function{"Math", "exp", one<::exp>},     Function{"Math", "floor", one<::floor>},
    Function{"Math", "fround", one<fround>}, Function{"Math", "hypot", hypot},
    Function{"Math", "log", one<::log>},     Function{"Math", "log10", one<::log10>},
    Function{"Math", "log2", one<::log2>},   Function{"Math", "max", extreme<1>},
    Function{"Math", "min", extreme<-1>},    Function{"Math", "pow", two<power>},
    Function{"Math", "random", random},      Function{"Math", "round", one<round>},
    Function{"Math", "sign", one<sign>},     Function{"Math", "sin", one<::sin>},
    Function{"Math", "sqrt", one<::sqrt>},   Function{"Math", "tan", one<::tan>},
    Function{"Math", "trunc", one<::trunc>},
};

}  // namespace

std::span<const Function> math_functions() {
  return functions_of_math;
}

}  // namespace conversed::flows::expression
