#include "flows/words/number_marks.h"

#include <unicode/dcfmtsym.h>
#include <unicode/locid.h>

#include <algorithm>
#include <array>
#include <vector>

#include "store/text/ascii.h"

namespace conversed::flows {
namespace {

using text::is_digit;
using Marks = std::vector<std::string>;

constexpr std::size_t longest = 100;  // bytes of a number, and of a locale's name

// A mark, and the marks that keyboards have in place of it.
Marks marks_of(const icu::DecimalFormatSymbols& symbols,
               icu::DecimalFormatSymbols::ENumberFormatSymbol which) {
  static const std::array<Marks, 2> alike{{{" ", "\u00a0", "\u202f"}, {"'", "\u2019"}}};
  std::string mark;
  symbols.getConstSymbol(which).toUTF8String(mark);
  for (const auto& marks : alike) {
    if (std::ranges::find(marks, mark) != marks.end()) return marks;
  }
  return {mark};
}

// Takes one of the marks from the text's beginning.
bool take(std::string_view& text, const Marks& marks) {
  const auto found = std::ranges::find_if(
      marks, [&](const auto& mark) { return !mark.empty() && text.starts_with(mark); });
  if (found == marks.end()) return false;
  text.remove_prefix(found->size());
  return true;
}

// Takes the digits at the text's beginning.
std::string_view take_digits(std::string_view& text) {
  const auto end = std::ranges::find_if_not(text, is_digit);
  const auto digits = text.substr(0, static_cast<std::size_t>(end - text.begin()));
  text.remove_prefix(digits.size());
  return digits;
}

}  // namespace

std::optional<std::string> unmarked_number(std::string_view text, std::string_view locale) {
  if (text.size() > longest || locale.size() > longest || locale.empty()) return std::nullopt;
  std::string plain;
  if (text.starts_with('-')) plain = '-';
  if (text.starts_with('-') || text.starts_with('+')) text.remove_prefix(1);
  const auto first = take_digits(text);
  if (first.empty() || text.empty()) return std::nullopt;
  plain += first;
  UErrorCode status = U_ZERO_ERROR;
  const icu::DecimalFormatSymbols symbols(icu::Locale::createCanonical(std::string(locale).c_str()),
                                          status);
  if (U_FAILURE(status) != 0) return std::nullopt;
  const auto decimal = marks_of(symbols, icu::DecimalFormatSymbols::kDecimalSeparatorSymbol);
  auto thousands = marks_of(symbols, icu::DecimalFormatSymbols::kGroupingSeparatorSymbol);
  // People write 1.000 also where typographers set a blank, as in Austria.
  if (decimal.front() == ",") thousands.emplace_back(".");
  bool is_marked = false;
  constexpr std::size_t group = 3;
  while (take(text, thousands)) {
    const auto digits = take_digits(text);
    if (first.size() > group || first.front() == '0' || digits.size() != group) {
      return std::nullopt;
    }
    plain += digits;
    is_marked = true;
  }
  if (take(text, decimal)) {
    const auto digits = take_digits(text);
    if (digits.empty()) return std::nullopt;
    plain.append(".").append(digits);
    is_marked = true;
  }
  return is_marked && text.empty() ? std::optional(plain) : std::nullopt;
}

}  // namespace conversed::flows
