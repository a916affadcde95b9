#pragma once

#include <iterator>
#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "flows/expression/template.h"

// Texts that users read in their locale. docs/flows/concepts.md describes the choice.
namespace conversed::flows {

// Whether the names differ at most in the case of ASCII letters, and in `_` for `-`.
[[nodiscard]] bool is_same_locale(std::string_view one, std::string_view other);

// The name without its last part: `zh-Hant` of `zh-Hant-TW`. Empty if it has one part only.
[[nodiscard]] std::string_view broader_locale(std::string_view name);

// The name among `known` of the locale `wanted`, or otherwise of its language: `de` for `de-AT`.
// Empty if there is none.
[[nodiscard]] std::string_view matching_locale(std::string_view wanted,
                                               const std::vector<std::string>& known);

// Chooses among texts by locale. Borrows the names. Immutable, thread-safe.
struct Wording {
  std::string_view locale;   // the session's
  std::string_view primary;  // the project's

  // The text of the session's locale, otherwise of its language, otherwise of the primary locale,
  // otherwise the first one. `texts` is not empty. `name_of` gives the locale of an element.
  template <typename Texts, typename Name>
  [[nodiscard]] auto choose(const Texts& texts, Name name_of) const {
    for (auto wanted = locale; !wanted.empty(); wanted = broader_locale(wanted)) {
      const auto found = find(texts, name_of, wanted);
      if (found != std::end(texts)) return found;
    }
    const auto found = find(texts, name_of, primary);
    return found != std::end(texts) ? found : std::begin(texts);
  }

  // The text of a value that is a text, or a mapping of locales to texts. Null for other values.
  [[nodiscard]] const std::string* text_of(const nlohmann::json& value) const;

 private:
  template <typename Texts, typename Name>
  [[nodiscard]] static auto find(const Texts& texts, Name name_of, std::string_view wanted) {
    auto at = std::begin(texts);
    while (at != std::end(texts) && !is_same_locale(name_of(at), wanted)) ++at;
    return at;
  }
};

// A template, or one for each of several locales. Immutable, like Template.
class LocalText {
 public:
  LocalText() : texts_(1) {}  // an empty text
  explicit LocalText(expression::Template text) { texts_.emplace_back("", std::move(text)); }
  // At least one, each with its locale.
  explicit LocalText(std::vector<std::pair<std::string, expression::Template>> texts)
      : texts_(std::move(texts)) {}

  [[nodiscard]] const expression::Template& in(const Wording& wording) const {
    if (texts_.size() == 1) return texts_.front().second;
    return wording.choose(texts_, [](auto at) -> std::string_view { return at->first; })->second;
  }

 private:
  std::vector<std::pair<std::string, expression::Template>> texts_;
};

}  // namespace conversed::flows
