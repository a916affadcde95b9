#pragma once

#include <algorithm>
#include <cstddef>
#include <string_view>

// Words that are nearly right, such as a misspelled key.
namespace conversed::text {

// The number of single-character edits (insert, delete, replace, swap of neighbors) between two
// texts, without regard to case. Takes time and memory of the product of their lengths.
[[nodiscard]] std::size_t edits_between(std::string_view a, std::string_view b);

// The known word that is fewest edits away from `word`; empty if none is near. A third of the
// letters may be wrong: `txt` is near `text`, `foo` is near nothing.
template <typename Words>
[[nodiscard]] std::string_view nearest(std::string_view word, const Words& known) {
  constexpr std::size_t longest = 64;  // a longer text is no slip, and would cost time
  std::string_view best;
  std::size_t fewest = std::min<std::size_t>((word.size() + 1) / 3, 3) + 1;
  for (const std::string_view candidate : known) {
    if (word.size() > longest || candidate.size() > longest) continue;
    // Texts are at least as many edits apart as their lengths differ.
    if (word.size() + fewest <= candidate.size() || candidate.size() + fewest <= word.size()) {
      continue;
    }
    const std::size_t edits = edits_between(word, candidate);
    if (edits >= fewest) continue;
    best = candidate;
    fewest = edits;
  }
  return best;
}

}  // namespace conversed::text
