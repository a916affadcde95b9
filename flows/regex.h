#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/result.h"

namespace conversed::flows::expression {
class TurnBudget;
}

namespace conversed::flows {

// A regular expression (ICU's syntax, which is Perl's and Java's) over Unicode text. Its work is
// bounded by two limits, the same in every rerun. The ways that it remembers to try later are a
// hundred thousand in one search; a pattern that wants more is an error, `too_large`: what it would
// find is not known. The text bounds what that does not see: repetitions that remember nothing,
// such as `(?>.*)`, look at each character once for each place that a match may begin at. A Turn's
// budget pays for what both may come to, so long texts cost more than they need. Once it is spent,
// the search is `too_large`. Null: nothing is counted.
// Immutable; threads share it.
class Regex {
 public:
  enum class Case : std::uint8_t { kept, ignored };
  static constexpr std::size_t max_pattern_bytes = 1000;
  static constexpr std::size_t max_text_bytes = 4096;

  // `invalid_argument` for what is no pattern; the message says at which character. `too_large`.
  [[nodiscard]] static model::Result<Regex> compile(std::string_view pattern, Case which);

  struct Match {
    std::string text;
    std::vector<std::string> groups;  // those in parentheses; empty where one took no part
    std::size_t begin = 0;            // in the source, in UTF-16 code units
    std::size_t end = 0;
  };
  // Up to `most` matches from the left, none of them empty, in the first `within` bytes of the
  // text; more than `max_text_bytes` only where nobody waits.
  [[nodiscard]] model::Result<std::vector<Match>> find_all(
      std::string_view text, std::size_t most, std::size_t within = max_text_bytes,
      expression::TurnBudget* budget = nullptr) const;
  // Whether the whole text fits, blanks at its ends aside; none above `max_text_bytes` does.
  [[nodiscard]] model::Result<bool> fits(std::string_view text,
                                         expression::TurnBudget* budget = nullptr) const;

 private:
  struct Pattern;
  explicit Regex(std::shared_ptr<const Pattern> pattern) : pattern_(std::move(pattern)) {}

  std::shared_ptr<const Pattern> pattern_;
};

}  // namespace conversed::flows
