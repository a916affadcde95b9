#include "flows/expression/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <clocale>
#include <cmath>
#include <cstdlib>
#include <limits>
#include <vector>

#include "flows/expression/text.h"
#include "store/text/ascii.h"

namespace conversed::flows::expression {
namespace {

using text::is_digit;

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double positive_infinity = std::numeric_limits<double>::infinity();

// The text of std::to_chars. 1074 decimals represent every double exactly, so halves are exact.
constexpr int all_decimals = 1074;
template <typename... Format>
std::string written(double number, Format... format) {
  std::array<char, 1400> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number, format...);
  return {buffer.data(), end.ptr};
}

// Removes the power of ten from the end of a number in scientific form.
int take_exponent(std::string& scientific) {
  const std::size_t mark = scientific.find('e');
  const int exponent = std::stoi(scientific.substr(mark + 1));
  scientific.resize(mark);
  return exponent;
}

std::string with_exponent(const std::string& digits, int exponent) {
  return digits + (exponent < 0 ? "e-" : "e+") + std::to_string(std::abs(exponent));
}

// Adds one in the last place of a text of decimal digits, which may contain a point.
void increment(std::string& decimal) {
  std::size_t at = decimal.size();
  while (at > 0) {
    --at;
    if (decimal[at] == '.') continue;
    if (decimal[at] != '9') {
      ++decimal[at];
      return;
    }
    decimal[at] = '0';
  }
  decimal.insert(0, 1, '1');
}

int digit_value(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  if (c >= 'a' && c <= 'z') return c - 'a' + 10;
  if (c >= 'A' && c <= 'Z') return c - 'A' + 10;
  return 99;
}

// The value of digits that are too large or too small for std::from_chars.
double out_of_range(std::string_view decimal) {
  static const locale_t plain = newlocale(LC_ALL_MASK, "C", nullptr);
  return strtod_l(std::string(decimal).c_str(), nullptr, plain);
}

}  // namespace

std::string number_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  if (std::abs(number) < max_exact && number == std::trunc(number)) {
    return std::to_string(static_cast<std::int64_t>(number));
  }
  const double size = std::abs(number);
  if (size >= 1e-6 && size < max_exact) return written(number, std::chars_format::fixed);
  std::string digits = written(number, std::chars_format::scientific);
  const int exponent = take_exponent(digits);
  if (size < max_exact || size >= 1e21) return with_exponent(digits, exponent);
  std::erase(digits, '.');
  digits.resize(static_cast<std::size_t>(exponent) + (number < 0 ? 2 : 1), '0');
  return digits;
}

std::string number_text(double number, int radix) {
  if (radix == 10 || !std::isfinite(number)) return number_text(number);
  constexpr std::string_view names = "0123456789abcdefghijklmnopqrstuvwxyz";
  const double value = std::abs(number);
  double whole = std::floor(value);
  double fraction = value - whole;
  // Writes digits until the rest is less than half of the distance to the next double.
  double delta = std::max(0.5 * (std::nextafter(value, positive_infinity) - value),
                          std::numeric_limits<double>::denorm_min());
  std::vector<int> after;
  if (fraction >= delta) {
    do {
      fraction *= radix;
      delta *= radix;
      const int digit = static_cast<int>(fraction);
      after.push_back(digit);
      fraction -= digit;
      const bool up = fraction > 0.5 || (fraction == 0.5 && digit % 2 != 0);
      if (!up || fraction + delta <= 1) continue;
      while (!after.empty() && ++after.back() == radix) after.pop_back();  // round up and carry
      if (after.empty()) ++whole;
      break;
    } while (fraction >= delta);
  }
  std::string text;
  // Above 2^53 the low digits are not significant and are written as zeros.
  while (whole >= max_exact) {
    whole /= radix;
    text.push_back('0');
  }
  do {
    const double rest = std::fmod(whole, radix);
    text.push_back(names[static_cast<std::size_t>(rest)]);
    whole = (whole - rest) / radix;
  } while (whole > 0);
  if (number < 0) text.push_back('-');
  std::reverse(text.begin(), text.end());
  if (!after.empty()) text.push_back('.');
  for (const int digit : after) text.push_back(names[static_cast<std::size_t>(digit)]);
  return text;
}

std::string fixed_text(double number, int digits) {
  if (!std::isfinite(number) || std::abs(number) >= 1e21) return number_text(number);
  const std::string exact = written(std::abs(number), std::chars_format::fixed, all_decimals);
  const std::size_t point = exact.find('.');
  const auto kept = static_cast<std::size_t>(digits);
  std::string text = exact.substr(0, digits == 0 ? point : point + 1 + kept);
  if (exact[point + 1 + kept] >= '5') increment(text);
  if (number < 0) text.insert(0, 1, '-');
  return text;
}

std::string precision_text(double number, int digits) {
  const auto wanted = static_cast<std::size_t>(digits);
  std::string text = number < 0 ? "-" : "";
  std::string significant(wanted, '0');
  int exponent = 0;
  if (number != 0) {
    std::string exact = written(std::abs(number), std::chars_format::scientific, all_decimals);
    exponent = take_exponent(exact);
    exact.erase(1, 1);  // the point
    significant = exact.substr(0, wanted);
    if (exact[wanted] >= '5') increment(significant);
    if (significant.size() > wanted) {
      significant.pop_back();
      ++exponent;
    }
  }
  if (exponent < -6 || exponent >= digits) {
    if (digits > 1) significant.insert(1, 1, '.');
    return text + with_exponent(significant, exponent);
  }
  if (exponent < 0) {
    return text + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + significant;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  if (whole < wanted) significant.insert(whole, 1, '.');
  return text + significant;
}

double parse_decimal(std::string_view text, std::size_t& used) {
  used = 0;
  // std::from_chars also takes signs, "inf" and "nan".
  const std::string_view digits = text.substr(text.starts_with('.') ? 1 : 0);
  if (digits.empty() || !is_digit(digits.front())) return nan;
  double value = 0;
  const auto parsed = std::from_chars(text.data(), text.data() + text.size(), value);
  used = static_cast<std::size_t>(parsed.ptr - text.data());
  return parsed.ec == std::errc::result_out_of_range ? out_of_range(text.substr(0, used)) : value;
}

double parse_digits(std::string_view text, int radix, std::size_t& used) {
  used = 0;
  double value = 0;
  while (used < text.size() && digit_value(text[used]) < radix) {
    value = value * radix + digit_value(text[used++]);
  }
  if (radix == 10 && value >= max_exact) return parse_decimal(text.substr(0, used), used);
  return used == 0 ? nan : value;
}

double parse_number(std::string_view text) {
  text = trim(text);
  if (text.empty()) return 0;
  std::size_t used = 0;
  if (text.size() > 2 && text[0] == '0') {
    const char mark = static_cast<char>(text[1] | 0x20);
    const int radix = mark == 'x' ? 16 : mark == 'o' ? 8 : mark == 'b' ? 2 : 0;
    if (radix != 0) {
      const double value = parse_digits(text.substr(2), radix, used);
      return used == text.size() - 2 ? value : nan;
    }
  }
  const bool negative = text.front() == '-';
  if (negative || text.front() == '+') text.remove_prefix(1);
  double value = positive_infinity;
  if (text != "Infinity") {
    value = parse_decimal(text, used);
    if (used == 0 || used != text.size()) return nan;
  }
  return negative ? -value : value;
}

double parse_float(std::string_view text) {
  text = trim_start(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  std::size_t used = 0;
  const double value = text.starts_with("Infinity") ? positive_infinity : parse_decimal(text, used);
  return negative ? -value : value;
}

double parse_int(std::string_view text, std::int32_t radix) {
  text = trim_start(text);
  const bool negative = text.starts_with('-');
  if (negative || text.starts_with('+')) text.remove_prefix(1);
  if (radix != 0 && (radix < 2 || radix > 36)) return nan;
  if ((radix == 0 || radix == 16) && (text.starts_with("0x") || text.starts_with("0X"))) {
    text.remove_prefix(2);
    radix = 16;
  }
  std::size_t used = 0;
  const double value = parse_digits(text, radix == 0 ? 10 : radix, used);
  return negative ? -value : value;
}

std::uint32_t to_uint32(double number) {
  if (!std::isfinite(number)) return 0;
  if (std::abs(number) < 0x1p62) {
    return static_cast<std::uint32_t>(static_cast<std::int64_t>(number));
  }
  double rest = std::fmod(std::trunc(number), 4294967296.0);
  if (rest < 0) rest += 4294967296.0;
  return static_cast<std::uint32_t>(rest);
}

std::int32_t to_int32(double number) {
  return static_cast<std::int32_t>(to_uint32(number));
}

double to_integer(double number) {
  return std::isnan(number) ? 0 : std::trunc(number) + 0.0;
}

double power(double base, double exponent) {
  if (std::isnan(exponent)) return nan;
  if (std::isinf(exponent) && std::abs(base) == 1) return nan;
  return std::pow(base, exponent);
}

}  // namespace conversed::flows::expression
