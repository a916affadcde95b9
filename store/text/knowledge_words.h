#pragma once

#include <compare>
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "store/text/words.h"

// Questions to knowledge, for both databases. Only for knowledge*.cc.
namespace conversed::store {

// The parameters k1 and b of BM25, the same in each database: the saturation of repeated words, and
// the share of a chunk's length.
inline constexpr double rank_saturation = 1.2;
inline constexpr double rank_length_share = 0.75;

// The weight of a word that is in `with` of all `rows`.
[[nodiscard]] double rank_weight(double rows, double with);

[[nodiscard]] std::vector<text::Word> words_of_chunk(std::string_view content);

// A word as an index has it: letters and digits of ASCII, UTF-8 of all else, and `_` with two hex
// digits for every other byte. At most 64 bytes of the word.
[[nodiscard]] std::string term_of(std::string_view word);

// A part of a question. A chunk with any part is a hit.
struct QuestionPart {
  enum class Kind : std::uint8_t {
    word,
    beginning,  // of a word
    pair,       // two adjacent words without a blank, as in writing without spaces
  };
  Kind kind;
  std::string term;
  std::string second{};  // of a pair

  auto operator<=>(const QuestionPart&) const = default;  // NOLINT(modernize-use-nullptr)
};

// In order, each once; empty if the question has no words.
[[nodiscard]] std::vector<QuestionPart> question_parts(std::string_view question);

}  // namespace conversed::store
