#include "flows/words/spelled_numbers.h"

#include <unicode/rbnf.h>
#include <unicode/ures.h>

#include <algorithm>
#include <array>
#include <map>
#include <mutex>
#include <unordered_map>
#include <utility>

#include "store/text/ascii.h"
#include "store/text/words.h"

namespace conversed::flows {
namespace {

constexpr std::size_t most_bytes = 200;
constexpr std::size_t most_words = 30;
constexpr std::int64_t small_numbers = 1000;  // of which each spelling is kept
// Names of larger numbers, in the languages that count by thousands.
constexpr std::array<std::int64_t, 3> scales{1'000'000'000, 1'000'000, 1'000};
constexpr std::size_t most_digits = 15;  // behind a point

std::string joined(std::span<const std::string> words) {
  std::string all;
  for (const auto& word : words) all += word;
  return all;
}

std::vector<std::string> folded_words(std::string_view text, std::size_t most) {
  std::vector<std::string> words;
  for (auto& word : text::words_of(text, most)) words.push_back(std::move(word.text));
  return words;
}

void replace_all(std::string& text, std::string_view from, std::string_view to) {
  for (auto at = text.find(from); at != std::string::npos; at = text.find(from, at + to.size())) {
    text.replace(at, from.size(), to);
  }
}

// Counting numbers, and not years, ordinals or digits of banks.
bool is_cardinal(std::string_view name) {
  constexpr std::array<std::string_view, 4> others{"year", "ordinal", "financial", "days"};
  const auto has = [name](std::string_view word) {
    return name.find(word) != std::string_view::npos;
  };
  return name.starts_with("%spellout-") && (has("numbering") || has("cardinal")) &&
         std::ranges::none_of(others, has);
}

// The same language has another code in ICU's data.
bool is_same_language(std::string_view asked, std::string_view found) {
  return asked == found || (found == "no" && (asked == "nb" || asked == "nn"));
}

// The locale whose rules ICU uses for this locale: `de` for `de-DE`. Rules are kept by this name,
// so clients that send many names of locales do not push each other's rules out. Empty: ICU has no
// rules of the language.
std::string name_of_rules(const std::string& locale) {
  const icu::Locale wanted = icu::Locale::createCanonical(locale.c_str());
  UErrorCode status = U_ZERO_ERROR;
  const icu::LocalUResourceBundlePointer rules(
      ures_open(U_ICUDATA_NAME "-rbnf", wanted.getName(), &status));
  if (U_FAILURE(status)) return {};
  const icu::Locale found(ures_getLocaleByType(rules.getAlias(), ULOC_ACTUAL_LOCALE, &status));
  // Without rules of the language ICU takes those of the system's.
  if (U_FAILURE(status) || *found.getLanguage() == '\0' ||
      !is_same_language(wanted.getLanguage(), found.getLanguage())) {
    return {};
  }
  return found.getName();
}

}  // namespace

std::vector<std::string> answer_words(std::string_view text) {
  if (text.size() > most_bytes) return {};
  auto words = folded_words(text, most_words + 1);
  if (words.size() > most_words) words.clear();
  return words;
}

struct SpelledNumbers::Rules {
  std::string language;
  std::unique_ptr<const icu::RuleBasedNumberFormat> format;  // only const functions are called
  std::vector<icu::UnicodeString> sets;                      // grammatical forms: `ein`, `eine`
  std::unordered_map<std::string, std::int64_t> small;
  std::vector<std::string> connectors;  // `and` of `one thousand and five`
  std::string minus;
  std::string point;

  // Empty if the rules write digits.
  template <typename Number>
  [[nodiscard]] std::vector<std::string> spell(Number number, const icu::UnicodeString& set) const {
    UErrorCode status = U_ZERO_ERROR;
    icu::FieldPosition position;
    icu::UnicodeString spelled;
    format->format(number, set, spelled, position, status);
    std::string text;
    spelled.toUTF8String(text);
    if (U_FAILURE(status) || std::ranges::any_of(text, text::is_digit)) return {};
    return folded_words(text, most_words);
  }
  [[nodiscard]] std::string spelling(std::int64_t number, const icu::UnicodeString& set) const {
    return joined(spell(number, set));
  }

  // Null: ICU can't load them.
  [[nodiscard]] static std::unique_ptr<const Rules> make(const std::string& locale) {
    const icu::Locale named(locale.c_str());
    UErrorCode status = U_ZERO_ERROR;
    auto format =
        std::make_unique<const icu::RuleBasedNumberFormat>(icu::URBNF_SPELLOUT, named, status);
    if (U_FAILURE(status)) return nullptr;
    auto rules = std::make_unique<Rules>();
    rules->language = named.getLanguage();
    for (std::int32_t i = 0; i < format->getNumberOfRuleSetNames(); ++i) {
      std::string set;
      format->getRuleSetName(i).toUTF8String(set);
      if (is_cardinal(set)) rules->sets.push_back(format->getRuleSetName(i));
    }
    rules->format = std::move(format);
    rules->learn();
    return rules;
  }

  void learn() {
    for (const auto& set : sets) {
      for (std::int64_t n = 0; n < small_numbers; ++n) {
        if (auto text = spelling(n, set); !text.empty()) small.emplace(std::move(text), n);
      }
      learn_connector(set);
    }
    learn_signs();
  }

  void learn_connector(const icu::UnicodeString& set) {
    constexpr std::int64_t thousand = 1000;
    const std::string one = spelling(1, set);
    const std::string head = spelling(thousand, set);
    std::string both = spelling(thousand + 1, set);
    if (one.empty() || head.empty() || !both.starts_with(head) || !both.ends_with(one)) return;
    if (both.size() <= head.size() + one.size()) return;
    both = both.substr(head.size(), both.size() - head.size() - one.size());
    if (std::ranges::count(connectors, both) == 0) connectors.push_back(std::move(both));
  }

  void learn_signs() {
    if (sets.empty()) return;
    const auto& set = sets.front();
    const auto zero = spelling(0, set);
    const auto one = spelling(1, set);
    const auto below = spell(std::int64_t{-1}, set);
    if (below.size() == 2 && below[1] == one) minus = below[0];
    constexpr double tenth = 0.1;
    const auto part = spell(tenth, set);
    if (part.size() == 3 && part[0] == zero && part[2] == one) point = part[1];
  }

  [[nodiscard]] bool spells(std::int64_t number, std::string_view text) const {
    return std::ranges::any_of(sets,
                               [&](const auto& set) { return spelling(number, set) == text; });
  }

  // The number below `bound` with this spelling.
  [[nodiscard]] std::optional<std::int64_t> read(const std::string& text,
                                                 std::int64_t bound) const {
    if (const auto found = small.find(text); found != small.end()) return found->second;
    for (const auto scale : scales) {
      if (scale >= bound) continue;
      for (const auto count : counts(text)) {
        if (auto number = read_scaled(text, count * scale, scale)) return number;
      }
    }
    return std::nullopt;
  }

  // The numbers with which the text may begin. 1 is always possible: some names of large numbers
  // stand without `one` before them.
  [[nodiscard]] std::vector<std::int64_t> counts(const std::string& text) const {
    std::vector<std::int64_t> found{1};
    for (std::size_t size = 1; size < text.size(); ++size) {
      const auto at = small.find(text.substr(0, size));
      if (at != small.end() && at->second > 1) found.push_back(at->second);
    }
    return found;
  }

  // The number that begins with the spelling of `head`, a multiple of `scale`.
  [[nodiscard]] std::optional<std::int64_t> read_scaled(const std::string& text, std::int64_t head,
                                                        std::int64_t scale) const {
    std::vector<std::string> tried;  // many sets spell a number alike
    for (const auto& set : sets) {
      auto begin = spelling(head, set);
      if (begin.empty() || !text.starts_with(begin)) continue;
      if (std::ranges::find(tried, begin) != tried.end()) continue;
      tried.push_back(begin);
      const std::string rest = text.substr(begin.size());
      if (rest.empty()) return head;
      auto lower = read(rest, scale);
      for (const auto& word : connectors) {
        if (!lower && rest.starts_with(word)) lower = read(rest.substr(word.size()), scale);
      }
      if (lower && *lower < scale && spells(head + *lower, text)) return head + *lower;
    }
    return std::nullopt;
  }
};

SpelledNumbers::SpelledNumbers(std::unique_ptr<const Rules> rules) : rules_(std::move(rules)) {}
SpelledNumbers::~SpelledNumbers() = default;

std::shared_ptr<const SpelledNumbers> SpelledNumbers::find(std::string_view locale) {
  constexpr std::size_t longest_name = 35;
  constexpr std::size_t most_kept = 16;  // about a megabyte each
  static std::mutex mutex;
  static std::map<std::string, std::shared_ptr<const SpelledNumbers>, std::less<>> kept;
  if (locale.empty() || locale.size() > longest_name) return nullptr;
  const std::string name = name_of_rules(std::string(locale));
  if (name.empty()) return nullptr;
  {
    const std::lock_guard lock(mutex);
    if (const auto found = kept.find(name); found != kept.end()) return found->second;
  }
  auto rules = Rules::make(name);
  if (rules == nullptr) return nullptr;
  std::shared_ptr<const SpelledNumbers> made(new SpelledNumbers(std::move(rules)));
  const std::lock_guard lock(mutex);
  if (kept.size() >= most_kept) kept.erase(kept.begin());
  return kept.emplace(name, std::move(made)).first->second;
}

std::optional<std::int64_t> SpelledNumbers::whole(std::span<const std::string> words) const {
  std::string text = joined(words);
  if (text.empty() || text.size() > most_bytes) return std::nullopt;
  if (rules_->language == "en" && words.size() > 1 && words.front() == "a") {
    text.replace(0, 1, "one");  // `a hundred`
  } else if (rules_->language == "de") {
    replace_all(text, "ae", "a");  // for the letters with dots, which are folded
    replace_all(text, "oe", "o");
    replace_all(text, "ue", "u");
    if (text.starts_with("hundert") || text.starts_with("tausend")) text.insert(0, "ein");
  }
  return rules_->read(text, scales.front() * small_numbers);
}

std::optional<std::string> SpelledNumbers::decimal(std::span<const std::string> words) const {
  std::string sign;
  if (!words.empty() && words.front() == rules_->minus) {
    sign = "-";
    words = words.subspan(1);
  }
  const auto point = rules_->point.empty() ? words.end() : std::ranges::find(words, rules_->point);
  const auto before = static_cast<std::size_t>(point - words.begin());
  const auto number = whole(words.first(before));
  if (!number) return std::nullopt;
  std::string text = sign + std::to_string(*number);
  if (point == words.end()) return text;
  const auto digits = words.subspan(before + 1);
  if (digits.empty() || digits.size() > most_digits) return std::nullopt;
  text += '.';
  for (std::size_t i = 0; i < digits.size(); ++i) {
    const auto digit = whole(digits.subspan(i, 1));
    constexpr std::int64_t nine = 9;
    if (!digit || *digit > nine) return std::nullopt;
    text += std::to_string(*digit);
  }
  return text;
}

}  // namespace conversed::flows
