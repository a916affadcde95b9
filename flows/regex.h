#pragma once

#include <cstddef>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/result.h"

namespace conversed::flows::expression {
class TurnBudget;
}

namespace conversed::flows {

// A regular expression (ICU's syntax, which is that of Perl and Java) over Unicode text. Two limits
// bound its work, the same in every rerun. First, a search saves at most a hundred thousand states
// for backtracking; a pattern that needs more is an error, `too_large`. Second, texts have a
// maximum length, which bounds repetitions that save no state, such as `(?>.*)`: they read each
// character once for each place where a match may begin. The Turn's budget pays for the worst case
// of both. Once it is spent, the search is `too_large`. A null budget means no payment. Immutable.
// Threads share it.
// Kept by: RegexSlotFillerNode.PatternThatWouldTakeForEverFailsTheTurn,
// RegexSlotFillerNode.BoundsPatternsWithoutBacktracking.
class Regex {
 public:
  enum class Case : std::uint8_t { kept, ignored };
  static constexpr std::size_t max_pattern_bytes = 1000;
  static constexpr std::size_t max_text_bytes = 4096;

  // `invalid_argument` if the text is not a pattern; the message names the character. `too_large`.
  [[nodiscard]] static model::Result<Regex> compile(std::string_view pattern, Case which);

  struct Match {
    std::string text;
    std::vector<std::string> groups{};  // of the parentheses; empty if a group took no part
    std::size_t begin = 0;              // in the source, in UTF-16 code units
    std::size_t end = 0;
  };
  // Up to `most` non-empty matches from the left, in the first `within` bytes of the text. Only
  // tools search more than `max_text_bytes`.
  [[nodiscard]] model::Result<std::vector<Match>> find_all(
      std::string_view text, std::size_t most, std::size_t within = max_text_bytes,
      expression::TurnBudget* budget = nullptr) const;
  // Whether the whole text, without blanks at its ends and up to `max_text_bytes`, matches.
  [[nodiscard]] model::Result<bool> fits(std::string_view text,
                                         expression::TurnBudget* budget = nullptr) const;

 private:
  struct Pattern;
  explicit Regex(std::shared_ptr<const Pattern> pattern) : pattern_(std::move(pattern)) {}

  std::shared_ptr<const Pattern> pattern_;
};

}  // namespace conversed::flows
