#pragma once

#include <cstdint>
#include <string>
#include <string_view>

// Numbers and their texts by ECMA-262. Pure, thread-safe, independent of the locale.
namespace conversed::flows::expression {

// Doubles represent all integers up to this one exactly: 2^53.
inline constexpr double max_exact = 9007199254740992.0;

// Number::toString(x, 10): the shortest digits that read back as the same number.
[[nodiscard]] std::string number_text(double number);

// Number::toString(x, radix) for 2 <= radix <= 36.
[[nodiscard]] std::string number_text(double number, int radix);

// Number.prototype.toFixed, for 0 <= digits <= 100. Halves round away from zero.
[[nodiscard]] std::string fixed_text(double number, int digits);

// Number.prototype.toPrecision, for 1 <= digits <= 100 and a finite number.
[[nodiscard]] std::string precision_text(double number, int digits);

// StringToNumber of the whole text. White space is 0. Any other text that is not a number is NaN.
[[nodiscard]] double parse_number(std::string_view text);

// The longest number at the start of a text of decimal digits (no sign, no names). `used` is its
// length in bytes, 0 if there is none.
[[nodiscard]] double parse_decimal(std::string_view text, std::size_t& used);

// The digits of a radix at the start of a text. `used` as above.
[[nodiscard]] double parse_digits(std::string_view text, int radix, std::size_t& used);

// The global parseFloat and parseInt. Radix 0: decided by the text.
[[nodiscard]] double parse_float(std::string_view text);
[[nodiscard]] double parse_int(std::string_view text, std::int32_t radix);

[[nodiscard]] std::int32_t to_int32(double number);
[[nodiscard]] std::uint32_t to_uint32(double number);

// ToIntegerOrInfinity. NaN becomes 0.
[[nodiscard]] double to_integer(double number);

// Number::exponentiate: like pow(), but NaN where C returns 1.
[[nodiscard]] double power(double base, double exponent);

}  // namespace conversed::flows::expression
