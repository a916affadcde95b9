#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/text/words.h"

// What is looked for in knowledge, whichever database looks. For knowledge*.cc alone.
namespace conversed::store {

// How BM25 weighs, the same in each database: how soon a word that is repeated stops to count, and
// how much the length of a chunk does.
inline constexpr double rank_saturation = 1.2;
inline constexpr double rank_length_share = 0.75;

// What a word counts that is in `with` of all `rows`.
[[nodiscard]] double rank_weight(double rows, double with);

// The words of a chunk, in its order.
[[nodiscard]] std::vector<text::Word> words_of_chunk(std::string_view content);

// A word as an index has it: letters and digits of ASCII, UTF-8 of all else, and `_` with two hex
// digits for every other byte. At most 64 bytes of the word.
[[nodiscard]] std::string term_of(std::string_view word);

// One of the things that a question looks for; any of them makes a hit.
struct QuestionPart {
  enum class Kind : std::uint8_t {
    word,
    beginning,  // of a word
    pair,       // two that stand together without a blank, as words do of writing without spaces
  };
  Kind kind;
  std::string term;
  std::string second{};  // of a pair

  auto operator<=>(const QuestionPart&) const = default;
};

// In order, each once; empty if the question has no words.
[[nodiscard]] std::vector<QuestionPart> question_parts(std::string_view question);

}  // namespace conversed::store
