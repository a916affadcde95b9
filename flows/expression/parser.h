#pragma once

#include <cstddef>
#include <memory>
#include <string_view>

#include "flows/expression/ast.h"
#include "store/model/result.h"

namespace conversed::flows::expression {

struct Parsed {
  std::shared_ptr<const Program> program;
  std::size_t end = 0;  // the byte behind the expression and the white space after it
};

// Parses the expression that begins at byte `at`. An error is invalid_argument or, past a limit,
// too_large; its message begins with the byte column in the whole source, from 1:
// "column 7: expected ')'". Takes time linear in the source. Thread-safe.
// `parse_all` wants it to reach to the end; `parse_until_braces` wants "}}" behind it.
[[nodiscard]] model::Result<Parsed> parse_all(std::string_view source, const Limits& limits);
[[nodiscard]] model::Result<Parsed> parse_until_braces(std::string_view source, std::size_t at,
                                                       const Limits& limits);

// "column 7: text" for byte 6.
[[nodiscard]] std::string at_column(std::size_t byte, std::string_view text);

}  // namespace conversed::flows::expression
