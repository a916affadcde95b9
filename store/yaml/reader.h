#pragma once

#include <cstddef>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/yaml/located.h"

// From YAML text to a Located value. Pure; thread-safe.
namespace conversed::yaml {

// One fault of a text.
struct Fault {
  Place place;
  std::string message;
};

enum class Schema : std::uint8_t {
  // The core schema of YAML 1.2. Aliases are expanded, and their memory counts.
  core,
  // Every scalar but null is a text. Anchors, aliases and tags are faults, so that a file means no
  // more than it shows.
  texts,
};

struct Limits {
  std::size_t max_depth;   // of nested values; the outermost counts as 1
  std::size_t max_memory;  // see ReadBudget
};

struct Document {
  // None if the text holds no document. With faults it is the part that could be read, good for
  // further checks only: a key may stand in it twice.
  std::optional<Located> root;
  std::vector<Fault> faults;  // in the order of the text; at most 1000
};

// Reads one document. No text makes it throw.
[[nodiscard]] Document read(std::string_view text, Schema schema, const Limits& limits);

// The first byte that is no UTF-8, or a control character other than tab and line ends.
[[nodiscard]] std::optional<Fault> bad_character(std::string_view text);

}  // namespace conversed::yaml
