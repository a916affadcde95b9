#pragma once

#include <optional>
#include <string>
#include <string_view>

// Numbers in digits, with the marks of a locale.
namespace conversed::flows {

// The number as decimal text, if the text has the locale's mark of thousands or of decimals:
// `1.000,5` of German is `1000.5`, and so is `1,000.5` of English. Each group of thousands has
// three digits, and the first one does not begin with 0. Where a comma marks decimals, a dot may
// mark thousands. Nothing: the text is no such number, or has no mark.
[[nodiscard]] std::optional<std::string> unmarked_number(std::string_view text,
                                                         std::string_view locale);

}  // namespace conversed::flows
