#include "flows/expression/number.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <cmath>
#include <limits>
#include <vector>

#include "flows/expression/text.h"

namespace conversed::flows::expression {
namespace {

constexpr double nan = std::numeric_limits<double>::quiet_NaN();
constexpr double infinity = std::numeric_limits<double>::infinity();

// Significant decimal digits d1d2d3... and n, where the value is 0.d1d2d3... x 10^n.
struct Digits {
  std::array<char, 32> text;
  std::size_t count = 0;
  int point = 0;
  [[nodiscard]] std::string_view view() const { return {text.data(), count}; }
};

// The power of ten that std::to_chars wrote at the end of a scientific form.
int exponent_of(std::string_view scientific) {
  std::string_view exponent = scientific.substr(scientific.find('e') + 1);
  if (exponent.front() == '+') exponent.remove_prefix(1);
  int value = 0;
  std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
  return value;
}

// Of a positive, finite number.
Digits shortest_digits(double number) {
  std::array<char, 64> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), number,
                                 std::chars_format::scientific);
  const std::string_view scientific(buffer.data(),
                                    static_cast<std::size_t>(end.ptr - buffer.data()));
  Digits digits;
  for (const char c : scientific.substr(0, scientific.find('e'))) {
    if (c != '.') digits.text[digits.count++] = c;
  }
  digits.point = exponent_of(scientific) + 1;
  return digits;
}

// Adds one in the last place of a text of decimal digits, which may hold a point.
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

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// The value of digits that std::from_chars found too large or too small for a double.
double out_of_range(std::string_view decimal) {
  long magnitude = 0;  // of the first significant digit
  bool significant = false;
  bool fraction = false;
  std::size_t at = 0;
  for (; at < decimal.size() && decimal[at] != 'e' && decimal[at] != 'E'; ++at) {
    if (decimal[at] == '.') {
      fraction = true;
    } else if (!significant && decimal[at] == '0') {
      if (fraction) --magnitude;
    } else {
      significant = true;
      if (!fraction) ++magnitude;
    }
  }
  if (at < decimal.size()) {
    std::string_view exponent = decimal.substr(at + 1);
    const bool negative = exponent.front() == '-';
    if (negative || exponent.front() == '+') exponent.remove_prefix(1);
    long value = 0;
    const auto parsed = std::from_chars(exponent.data(), exponent.data() + exponent.size(), value);
    if (parsed.ec != std::errc{}) value = std::numeric_limits<long>::max() / 2;
    magnitude += negative ? -value : value;
  }
  return magnitude > 0 ? infinity : 0.0;
}

}  // namespace

std::string number_text(double number) {
  if (std::isnan(number)) return "NaN";
  if (std::isinf(number)) return number > 0 ? "Infinity" : "-Infinity";
  if (std::abs(number) < max_exact && number == std::trunc(number)) {
    return std::to_string(static_cast<std::int64_t>(number));
  }
  std::string out = number < 0 ? "-" : "";
  const Digits digits = shortest_digits(std::abs(number));
  const std::string_view text = digits.view();
  const int count = static_cast<int>(digits.count);
  const int n = digits.point;
  constexpr std::string_view zeros = "000000000000000000000";
  if (count <= n && n <= 21) {
    out.append(text);
    out.append(zeros.substr(0, static_cast<std::size_t>(n - count)));
  } else if (0 < n && n <= 21) {
    out.append(text.substr(0, static_cast<std::size_t>(n)));
    out.append(".");
    out.append(text.substr(static_cast<std::size_t>(n)));
  } else if (-6 < n && n <= 0) {
    out.append("0.");
    out.append(zeros.substr(0, static_cast<std::size_t>(-n)));
    out.append(text);
  } else {
    out.append(text.substr(0, 1));
    if (count > 1) {
      out.append(".");
      out.append(text.substr(1));
    }
    out.append(n - 1 < 0 ? "e-" : "e+");
    out.append(std::to_string(std::abs(n - 1)));
  }
  return out;
}

std::string number_text(double number, int radix) {
  if (radix == 10 || !std::isfinite(number)) return number_text(number);
  constexpr std::string_view names = "0123456789abcdefghijklmnopqrstuvwxyz";
  const double value = std::abs(number);
  double whole = std::floor(value);
  double fraction = value - whole;
  // Digits are needed until what is left is less than half of the distance to the next double.
  double delta = std::max(0.5 * (std::nextafter(value, infinity) - value),
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
  // Above 2^53 the low digits say nothing: they are written as zeros.
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
  // A double has at most 1074 decimals; all of them are written, so that a half is known for one.
  std::array<char, 1200> buffer;
  const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(number),
                                 std::chars_format::fixed, 1074);
  const std::string_view exact(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
  const std::size_t point = exact.find('.');
  const auto kept = static_cast<std::size_t>(digits);
  std::string text(exact.substr(0, digits == 0 ? point : point + 1 + kept));
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
    // All digits that a double can have, so that a half is known for one: halves round up.
    std::array<char, 1200> buffer;
    const auto end = std::to_chars(buffer.data(), buffer.data() + buffer.size(), std::abs(number),
                                   std::chars_format::scientific, 1074);
    const std::string_view exact(buffer.data(), static_cast<std::size_t>(end.ptr - buffer.data()));
    exponent = exponent_of(exact);
    significant = exact.substr(0, 1);
    significant += exact.substr(2, wanted - 1);
    if (exact[wanted + 1] >= '5') increment(significant);
    if (significant.size() > wanted) {
      significant.pop_back();
      ++exponent;
    }
  }
  if (exponent < -6 || exponent >= digits) {
    text += significant.substr(0, 1);
    if (digits > 1) text += "." + significant.substr(1);
    return text + (exponent < 0 ? "e-" : "e+") + std::to_string(std::abs(exponent));
  }
  if (exponent < 0) {
    return text + "0." + std::string(static_cast<std::size_t>(-exponent - 1), '0') + significant;
  }
  const auto whole = static_cast<std::size_t>(exponent) + 1;
  text += significant.substr(0, whole);
  if (whole < wanted) text += "." + significant.substr(whole);
  return text;
}

double parse_decimal(std::string_view text, std::size_t& used) {
  used = 0;
  std::size_t at = 0;
  std::size_t digits = 0;
  for (; at < text.size() && is_digit(text[at]); ++at) ++digits;
  if (at < text.size() && text[at] == '.') {
    std::size_t decimals = 0;
    while (at + 1 + decimals < text.size() && is_digit(text[at + 1 + decimals])) ++decimals;
    if (digits + decimals > 0) at += 1 + decimals;
    digits += decimals;
  }
  if (digits == 0) return nan;
  if (at < text.size() && (text[at] == 'e' || text[at] == 'E')) {
    std::size_t from = at + 1;
    if (from < text.size() && (text[from] == '+' || text[from] == '-')) ++from;
    std::size_t to = from;
    while (to < text.size() && is_digit(text[to])) ++to;
    if (to > from) at = to;
  }
  used = at;
  const std::string_view number = text.substr(0, used);
  double value = 0;
  const auto parsed = std::from_chars(number.data(), number.data() + number.size(), value);
  return parsed.ec == std::errc::result_out_of_range ? out_of_range(number) : value;
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
  double value = infinity;
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
  const double value = text.starts_with("Infinity") ? infinity : parse_decimal(text, used);
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
