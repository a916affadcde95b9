#pragma once

#include <cstddef>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/result.h"

namespace conversed::flows {

// A regular expression (ICU's syntax, which is Perl's and Java's) over Unicode text. A search
// always ends: past a fixed number of steps it gives up, as if nothing fitted, the same in every
// rerun. Immutable; threads share it.
class Regex {
 public:
  enum class Case : std::uint8_t { kept, ignored };
  static constexpr std::size_t max_pattern_bytes = 1000;

  // `invalid_argument` for what is no pattern; the message says at which character. `too_large`.
  [[nodiscard]] static model::Result<Regex> compile(std::string_view pattern, Case which);

  struct Match {
    std::string text;
    std::vector<std::string> groups;  // those in parentheses; empty where one took no part
    std::size_t begin = 0;            // in the source, in UTF-16 code units
    std::size_t end = 0;
  };
  // Up to `most` matches from the left, none of them empty. Of the text the first 64 KiB count.
  [[nodiscard]] std::vector<Match> find_all(std::string_view text, std::size_t most) const;
  // Whether the whole text fits, blanks at its ends aside.
  [[nodiscard]] bool fits(std::string_view text) const;

 private:
  struct Pattern;
  explicit Regex(std::shared_ptr<const Pattern> pattern) : pattern_(std::move(pattern)) {}

  std::shared_ptr<const Pattern> pattern_;
};

}  // namespace conversed::flows
