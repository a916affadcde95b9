#include "store/text/words.h"

#include <unicode/normalizer2.h>
#include <unicode/uchar.h>
#include <unicode/unistr.h>
#include <unicode/uscript.h>

#include <array>
#include <cstdint>
#include <utility>

#include "store/text/utf8.h"

namespace conversed::text {
namespace {

enum class Role : std::uint8_t {
  letter,   // joins the letters beside it to a word
  mark,     // belongs to the character before it
  alone,    // a word of its own
  dropped,  // as if it were not there
  gap,      // parts words
  stop,     // parts words and clauses
};

// The folded form of one code point.
struct Folded {
  Role role = Role::gap;
  std::string text;  // UTF-8; empty for `dropped`, `gap` and `stop`
};

const icu::Normalizer2* decomposer() {
  static const icu::Normalizer2* const instance = [] {
    UErrorCode status = U_ZERO_ERROR;
    return icu::Normalizer2::getNFKDInstance(status);  // null without ICU's data: folds case only
  }();
  return instance;
}

// Accents above and below, points of Hebrew and Arabic. Not the vowels and tones of Indic and Thai
// writing, and not the marks that tell kana apart: without those it is another word.
bool is_diacritic(UChar32 code) {
  const auto kind = u_charType(code);
  if (kind != U_NON_SPACING_MARK && kind != U_ENCLOSING_MARK) return false;
  const int order = u_getCombiningClass(code);
  return order >= 200 || (order >= 10 && order <= 36);
}

bool is_written_without_spaces(UChar32 code) {
  if (u_hasBinaryProperty(code, UCHAR_IDEOGRAPHIC) != 0) return true;
  UErrorCode status = U_ZERO_ERROR;
  switch (uscript_getScript(code, &status)) {
    case USCRIPT_HIRAGANA:
    case USCRIPT_KATAKANA:
    case USCRIPT_KATAKANA_OR_HIRAGANA:
    case USCRIPT_HANGUL:
    case USCRIPT_THAI:
    case USCRIPT_LAO:
    case USCRIPT_KHMER:
    case USCRIPT_MYANMAR:
      return true;
    default:
      return code >= 0x30A0 && code <= 0x30FF;  // the long-vowel mark has no script of its own
  }
}

Role role_of(UChar32 code) {
  if (u_hasBinaryProperty(code, UCHAR_DEFAULT_IGNORABLE_CODE_POINT) != 0 || is_diacritic(code)) {
    return Role::dropped;
  }
  const auto kinds = U_GET_GC_MASK(code);
  if ((kinds & U_GC_M_MASK) != 0) return Role::mark;
  if ((kinds & (U_GC_L_MASK | U_GC_N_MASK)) != 0) {
    return is_written_without_spaces(code) ? Role::alone : Role::letter;
  }
  if ((kinds & U_GC_S_MASK) != 0) return Role::alone;
  // Punctuation that names things: C#, @home, R&D, 5%.
  constexpr std::u32string_view meaningful = U"#%&*@";
  if (meaningful.find(static_cast<char32_t>(code)) != std::u32string_view::npos) {
    return Role::alone;
  }
  return u_hasBinaryProperty(code, UCHAR_TERMINAL_PUNCTUATION) != 0 || code == '(' || code == ')'
             ? Role::stop
             : Role::gap;
}

Folded fold(UChar32 code) {
  Folded folded{role_of(code), {}};
  if (folded.role == Role::dropped || folded.role == Role::gap || folded.role == Role::stop) {
    return folded;
  }
  icu::UnicodeString units(code);
  // Twice: folding may bring back what can be decomposed, and decomposing capitals.
  for (int pass = 0; pass < 2; ++pass) {
    units.foldCase();
    icu::UnicodeString decomposed;
    if (decomposer() != nullptr && uscript_hasScript(code, USCRIPT_HANGUL) == 0 &&
        decomposer()->getDecomposition(units.char32At(0), decomposed) != 0) {
      decomposed.append(units, units.moveIndex32(0, 1), units.length());
      units = decomposed;
    }
  }
  for (int at = 0; at < units.length(); at = units.moveIndex32(at, 1)) {
    const UChar32 part = units.char32At(at);
    if (is_diacritic(part) || u_isUWhiteSpace(part) != 0) continue;
    append_code(folded.text, static_cast<char32_t>(part));
  }
  if (folded.text.empty()) folded.role = Role::dropped;
  return folded;
}

// The alphabets of most of the world's messages are looked up; the rest is asked of ICU each time.
constexpr UChar32 table_size = 0x2000;

const std::array<Folded, table_size>& table() {
  static const auto* const made = [] {
    auto* all = new std::array<Folded, table_size>;
    for (UChar32 code = 0; code < table_size; ++code) {
      (*all)[static_cast<std::size_t>(code)] = fold(code);
    }
    return all;
  }();
  return *made;
}

// Puts words together, character by character.
class Collector {
 public:
  explicit Collector(std::size_t most) : most_(most) {}

  [[nodiscard]] bool full() const { return words_.size() >= most_ && !open_; }
  void add(const Folded& folded, std::size_t begin, std::size_t end) {
    switch (folded.role) {
      case Role::dropped:
        if (open_) words_.back().end = end;
        return;
      case Role::stop:
        new_clause_ = true;
        [[fallthrough]];
      case Role::gap:
        open_ = false;
        return;
      case Role::letter:
        if (alone_) open_ = false;
        alone_ = false;
        break;
      case Role::alone:
        open_ = false;
        alone_ = true;
        break;
      case Role::mark:
        break;
    }
    if (!open_) {
      if (words_.size() >= most_) return;
      words_.push_back({{}, begin, end, std::exchange(new_clause_, false)});
      open_ = true;
    }
    words_.back().text += folded.text;
    words_.back().end = end;
  }
  [[nodiscard]] std::vector<Word> take() { return std::move(words_); }

 private:
  const std::size_t most_;
  std::vector<Word> words_;
  bool open_ = false;   // the last word may go on
  bool alone_ = false;  // but only with marks
  bool new_clause_ = false;
};

}  // namespace

std::vector<Word> words_of(std::string_view text, std::size_t most) {
  const auto& known = table();
  Collector collector(most);
  std::size_t units = 0;
  for (std::size_t at = 0; at < text.size() && !collector.full();) {
    const auto point = decode(text, at);
    const std::size_t begin = units;
    units += point.code > 0xFFFF ? 2 : 1;
    at += point.bytes;
    const auto code = static_cast<UChar32>(point.code);
    if (code < table_size) {
      collector.add(known[static_cast<std::size_t>(code)], begin, units);
    } else {
      collector.add(fold(code), begin, units);
    }
  }
  return collector.take();
}

std::string phrase_of(std::string_view text, std::size_t most) {
  std::string phrase;
  for (const auto& word : words_of(text, most)) {
    if (!phrase.empty()) phrase += ' ';
    phrase += word.text;
  }
  return phrase;
}

}  // namespace conversed::text
