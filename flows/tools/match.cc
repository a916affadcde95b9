#include "flows/tools/match.h"

#include "flows/regex.h"
#include "store/model/json.h"

namespace conversed::flows::tools {
namespace {

using nlohmann::json;

// The part between the slashes.
std::optional<std::string_view> pattern_of(std::string_view expected) {
  if (expected.size() < 3 || expected.front() != '/' || expected.back() != '/') return std::nullopt;
  return expected.substr(1, expected.size() - 2);
}

std::string shown(const json& value) {
  constexpr std::size_t most = 300;
  std::string text = model::json_text(value);
  if (text.size() > most) text = text.substr(0, most) + "...";
  return text;
}

std::optional<std::string> compare(const json& actual, const json& expected,
                                   const std::string& path) {
  if (expected.is_object() && actual.is_object()) {
    for (const auto& [name, value] : expected.items()) {
      const auto found = actual.find(name);
      const json& member = found == actual.end() ? json() : *found;
      if (auto different = compare(member, value, path + '.' + name)) return different;
    }
    return std::nullopt;
  }
  if (expected.is_array() && actual.is_array() && actual.size() != expected.size()) {
    return path + ": expected " + std::to_string(expected.size()) + " items, there are " +
           std::to_string(actual.size()) + ": " + shown(actual);
  }
  if (expected.is_array() && actual.is_array()) {
    for (std::size_t i = 0; i < expected.size(); ++i) {
      const std::string place = path + '[' + std::to_string(i) + ']';
      if (auto different = compare(actual[i], expected[i], place)) return different;
    }
    return std::nullopt;
  }
  const bool both_texts = expected.is_string() && actual.is_string();
  const bool same = both_texts ? text_fits(actual.get_ref<const std::string&>(),
                                           expected.get_ref<const std::string&>())
                               : actual == expected;
  if (same) return std::nullopt;
  return path + ": expected " + shown(expected) + ", there is " + shown(actual);
}

}  // namespace

bool text_fits(std::string_view actual, std::string_view expected) {
  if (actual == expected) return true;
  const auto source = pattern_of(expected);
  if (!source) return false;
  // The longest text of an output. A slow search delays only the test.
  constexpr std::size_t within = std::size_t{64} << 10;
  const auto pattern = Regex::compile(*source, Regex::Case::kept);
  const auto found = pattern ? pattern->find_all(actual, 1, within) : model::fail(pattern.error());
  return found && !found->empty();
}

std::optional<std::string> wrong_pattern(std::string_view expected) {
  const auto source = pattern_of(expected);
  if (!source) return std::nullopt;
  const auto pattern = Regex::compile(*source, Regex::Case::kept);
  return pattern ? std::nullopt : std::optional(pattern.error().message);
}

std::optional<std::string> difference(const json& actual, const json& expected) {
  auto found = compare(actual, expected, "");
  if (found && found->starts_with(": ")) return found->substr(2);
  if (found && found->starts_with('.')) return found->substr(1);
  return found;
}

}  // namespace conversed::flows::tools
