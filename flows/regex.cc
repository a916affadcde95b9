#include "flows/regex.h"

#include <unicode/regex.h>

#include <algorithm>
#include <utility>

#include "flows/expression/text.h"
#include "flows/expression/turn_budget.h"

namespace conversed::flows {
namespace {

// ICU counts saved states in batches of ten thousand, over all matches of a matcher. A hundred
// thousand take some milliseconds. ICU does not count the characters that it reads, so texts are
// limited, too.
constexpr std::int32_t max_step_batches = 10;
constexpr std::int32_t max_stack_bytes = 1 << 20;

icu::UnicodeString units_of(std::string_view text) {
  const std::u16string units = expression::to_utf16(text);
  return {units.data(), static_cast<std::int32_t>(units.size())};
}

// The first bytes, up to `most`, without cutting a character. Every character begins with a byte
// that is not a continuation byte.
std::string_view beginning(std::string_view text, std::size_t most) {
  if (text.size() <= most) return text;
  while (most > 0 && (static_cast<unsigned char>(text[most]) & 0xC0) == 0x80) --most;
  return text.substr(0, most);
}

std::string text_of(const icu::UnicodeString& units) {
  return expression::from_utf16({units.getBuffer(), static_cast<std::size_t>(units.length())});
}

tl::unexpected<model::Error> gave_up() {
  return model::fail(model::Errc::too_large,
                     "its regular expression takes more than a hundred thousand steps for this "
                     "text; avoid repetitions within repetitions, such as (a+)+");
}

// Makes the Turn pay. Each place where a match may begin, and each saved state, can cause a read of
// the whole text, at about a nanosecond a character.
class Payer {
 public:
  Payer(std::int32_t units, expression::TurnBudget* budget)
      : units_(static_cast<std::size_t>(units)), budget_(budget) {}

  [[nodiscard]] bool is_spent() const { return budget_ != nullptr && budget_->is_spent(); }

  bool pay_for_search(std::int32_t pattern_units) {
    constexpr std::size_t to_begin = 1'000;  // with some saved states: ICU reports only batches
    const auto pattern = static_cast<std::size_t>(pattern_units);
    return pay(to_begin + units_ * units_ / looks_a_step + units_ * pattern / literals_a_step);
  }

  // ICU's callback after another ten thousand saved states. False ends the search.
  static UBool U_CALLCONV pay_for_batch(const void* self, std::int32_t) {
    constexpr std::size_t ways = 10'000;
    const auto& payer = *static_cast<const Payer*>(self);
    return payer.pay(ways * payer.units_ / looks_a_step) ? 1 : 0;
  }

 private:
  static constexpr std::size_t looks_a_step = 100;
  static constexpr std::size_t literals_a_step = 16;  // characters of the pattern, at each place

  [[nodiscard]] bool pay(std::size_t steps) const {
    return budget_ == nullptr || budget_->step(steps);
  }

  const std::size_t units_;
  expression::TurnBudget* const budget_;
};

}  // namespace

struct Regex::Pattern {
  std::unique_ptr<icu::RegexPattern> compiled;

  // Null if ICU is out of memory, or the budget is spent.
  [[nodiscard]] std::unique_ptr<icu::RegexMatcher> matcher(const icu::UnicodeString& text,
                                                           Payer& payer) const {
    if (!payer.pay_for_search(compiled->pattern().length())) return nullptr;
    UErrorCode status = U_ZERO_ERROR;
    std::unique_ptr<icu::RegexMatcher> made(compiled->matcher(text, status));
    if (U_FAILURE(status) || made == nullptr) return nullptr;
    made->setTimeLimit(max_step_batches, status);
    made->setStackLimit(max_stack_bytes, status);
    made->setMatchCallback(&Payer::pay_for_batch, &payer, status);
    return U_FAILURE(status) ? nullptr : std::move(made);
  }
};

model::Result<Regex> Regex::compile(std::string_view pattern, Case which) {
  if (pattern.size() > max_pattern_bytes) {
    return model::fail(model::Errc::too_large,
                       "a pattern has at most " + std::to_string(max_pattern_bytes) + " bytes");
  }
  UErrorCode status = U_ZERO_ERROR;
  UParseError where{};
  const std::uint32_t flags = which == Case::ignored ? UREGEX_CASE_INSENSITIVE : 0;
  auto made = std::make_shared<Pattern>();
  made->compiled.reset(icu::RegexPattern::compile(units_of(pattern), flags, where, status));
  if (U_FAILURE(status) || made->compiled == nullptr) {
    return model::fail(model::Errc::invalid_argument,
                       "not a regular expression: wrong at character " +
                           std::to_string(std::max(where.offset, 0) + 1));
  }
  return Regex(std::move(made));
}

model::Result<std::vector<Regex::Match>> Regex::find_all(std::string_view text, std::size_t most,
                                                         std::size_t within,
                                                         expression::TurnBudget* budget) const {
  std::vector<Match> matches;
  const icu::UnicodeString units = units_of(beginning(text, within));
  Payer payer(units.length(), budget);
  const auto matcher = pattern_->matcher(units, payer);
  UErrorCode status = U_ZERO_ERROR;
  while (matcher != nullptr && matches.size() < most && matcher->find(status) != 0 &&
         U_SUCCESS(status)) {
    const auto begin = matcher->start(status);
    const auto end = matcher->end(status);
    if (begin == end) continue;
    Match match{.text = text_of(matcher->group(status)),
                .begin = static_cast<std::size_t>(begin),
                .end = static_cast<std::size_t>(end)};
    for (std::int32_t group = 1; group <= matcher->groupCount(); ++group) {
      match.groups.push_back(text_of(matcher->group(group, status)));
    }
    matches.push_back(std::move(match));
  }
  if (U_FAILURE(status) || payer.is_spent()) return gave_up();
  return matches;
}

model::Result<bool> Regex::fits(std::string_view text, expression::TurnBudget* budget) const {
  const std::string_view trimmed = expression::trim(text);
  if (trimmed.size() > max_text_bytes) return false;  // its first bytes do not decide
  const icu::UnicodeString units = units_of(trimmed);
  Payer payer(units.length(), budget);
  const auto matcher = pattern_->matcher(units, payer);
  UErrorCode status = U_ZERO_ERROR;
  const bool fit = matcher != nullptr && matcher->matches(status) != 0;
  if (U_FAILURE(status) || payer.is_spent()) return gave_up();
  return fit;
}

}  // namespace conversed::flows
