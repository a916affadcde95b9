#include "store/text/knowledge_words.h"

#include <algorithm>
#include <cmath>
#include <set>

#include "store/model/hex.h"
#include "store/text/ascii.h"
#include "store/text/utf8.h"

namespace conversed::store {
namespace {

constexpr std::size_t max_chunk_words = 100'000;
constexpr std::size_t max_query_words = 64;
constexpr std::size_t max_term_bytes = 64;

// The beginning of a word, which its inflected forms share in most languages. Short words, as in
// Chinese, have none.
std::string_view stem_of(std::string_view word) {
  constexpr std::size_t shortest = 4;
  constexpr std::size_t ending = 2;
  std::vector<std::size_t> begins;  // of the characters
  for (std::size_t at = 0; at < word.size(); at += text::decode(word, at).bytes) {
    begins.push_back(at);
  }
  if (begins.size() <= shortest) return {};
  return word.substr(0, begins[std::max(shortest, begins.size() - ending)]);
}

}  // namespace

double rank_weight(double rows, double with) {
  const double without = rows > with ? rows - with : 0;
  return std::log(1 + (without + 0.5) / (with + 0.5));
}

std::vector<text::Word> words_of_chunk(std::string_view content) {
  return text::words_of(content, max_chunk_words);
}

// FTS5's `ascii` tokenizer does not split such a term. The term holds no quotation mark, so it can
// stand in quotes in both databases. PostgreSQL takes no surrogates, which JSON can hold.
std::string term_of(std::string_view word) {
  const auto shortened = text::cut(word, max_term_bytes);
  std::string term;
  for (std::size_t at = 0; at < shortened.size();) {
    const auto [code, bytes] = text::decode(shortened, at);
    const auto character = shortened.substr(at, bytes);
    const bool surrogate = code >= 0xD800 && code <= 0xDFFF;
    const bool is_plain = text::consists_of(character.substr(0, 1), "");
    if (is_plain || (code >= 0x80 && !surrogate)) {
      term += character;
    } else {
      for (const char c : character) {
        term += '_';
        model::append_hex(term, static_cast<std::uint8_t>(c));
      }
    }
    at += bytes;
  }
  return term;
}

std::vector<QuestionPart> question_parts(std::string_view question) {
  using Kind = QuestionPart::Kind;
  const auto words = text::words_of(question, max_query_words);
  std::set<QuestionPart> parts;
  for (std::size_t i = 0; i < words.size(); ++i) {
    const std::string term = term_of(words[i].text);
    parts.insert({Kind::word, term});
    if (const auto stem = stem_of(text::cut(words[i].text, max_term_bytes)); !stem.empty()) {
      parts.insert({Kind::beginning, term_of(stem)});
    }
    if (i > 0 && words[i - 1].end == words[i].begin) {
      parts.insert({Kind::pair, term_of(words[i - 1].text), term});
    }
  }
  return {parts.begin(), parts.end()};
}

}  // namespace conversed::store
