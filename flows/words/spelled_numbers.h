#pragma once

#include <cstdint>
#include <memory>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

// Numbers in words, as ICU spells them.
namespace conversed::flows {

// The folded words of an answer (text::words_of). Empty if it is too long to be a number or a time.
[[nodiscard]] std::vector<std::string> answer_words(std::string_view text);

// The spellings of one language. Case, accents, hyphens and blanks do not matter. Immutable.
// Threads share it.
class SpelledNumbers {
 public:
  // Null if ICU does not spell numbers in the locale's language. Some are kept, by ICU's name of
  // their rules, because making them takes some 20 ms. Thread-safe.
  [[nodiscard]] static std::shared_ptr<const SpelledNumbers> find(std::string_view locale);

  // A whole number from 0 to 999,999,999,999. Nothing if the words are another text.
  [[nodiscard]] std::optional<std::int64_t> whole(std::span<const std::string> words) const;
  // The same with a sign and digits behind a point, as decimal text: `minus two point five` is
  // `-2.5`.
  [[nodiscard]] std::optional<std::string> decimal(std::span<const std::string> words) const;

  SpelledNumbers(const SpelledNumbers&) = delete;
  SpelledNumbers& operator=(const SpelledNumbers&) = delete;
  ~SpelledNumbers();

 private:
  struct Rules;
  explicit SpelledNumbers(std::unique_ptr<const Rules> rules);

  std::unique_ptr<const Rules> rules_;
};

}  // namespace conversed::flows
