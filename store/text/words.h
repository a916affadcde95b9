#pragma once

#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

// The words of a text, folded so that texts that people consider the same are equal.
namespace conversed::text {

// One word. Letters, digits and the marks that belong to them make words; white space and
// punctuation separate words. In writing without spaces between words (Han, kana, hangul, Thai,
// ...) each character is a word. Each symbol is a word, too (`C++` is three words).
struct Word {
  std::string text;         // folded; never empty
  std::size_t begin = 0;    // in the source, counted in UTF-16 code units, as expressions count
  std::size_t end = 0;      // behind its last one
  bool new_clause = false;  // `.`, `,`, `!` or the like stands between it and the word before
};

// The first `most` words. Folding follows Unicode: full case folding (`STRASSE` is `straße`), no
// diacritics (`Orleans` is `Orléans`) except marks that make another letter (`が` is not `か`), and
// for compatibility forms the characters that they stand for. Bytes that are not UTF-8 are symbols.
// Takes time linear in the text. Thread-safe.
[[nodiscard]] std::vector<Word> words_of(std::string_view text, std::size_t most);

// The words joined by blanks. Texts that differ only in case, diacritics, punctuation and white
// space have the same phrase. Empty if there are no words. `most` as above.
[[nodiscard]] std::string phrase_of(std::string_view text, std::size_t most = 1000);

}  // namespace conversed::text
