#include "flows/local_text.h"

#include <algorithm>
#include <cstddef>
#include <nlohmann/json.hpp>

#include "store/text/ascii.h"

namespace conversed::flows {
namespace {

char folded(char c) {
  return c == '_' ? '-' : text::to_lower(c);
}

}  // namespace

bool is_same_locale(std::string_view one, std::string_view other) {
  return one.size() == other.size() && std::ranges::equal(one, other, {}, folded, folded);
}

std::string_view broader_locale(std::string_view name) {
  const auto last = name.find_last_of("-_");
  return last == std::string_view::npos ? std::string_view() : name.substr(0, last);
}

std::string_view matching_locale(std::string_view wanted, const std::vector<std::string>& known) {
  constexpr std::size_t longest = 35;  // of a language tag, by RFC 5646, 4.4.1
  if (wanted.size() > longest) return {};
  for (; !wanted.empty(); wanted = broader_locale(wanted)) {
    const auto found = std::ranges::find_if(
        known, [&](const std::string& name) { return is_same_locale(name, wanted); });
    if (found != known.end()) return *found;
  }
  return {};
}

const std::string* Wording::text_of(const nlohmann::json& value) const {
  if (value.is_string()) return value.get_ptr<const std::string*>();
  if (!value.is_object() || value.empty()) return nullptr;
  const auto chosen = choose(value, [](auto at) -> std::string_view { return at.key(); });
  return chosen->is_string() ? chosen->get_ptr<const std::string*>() : nullptr;
}

}  // namespace conversed::flows
