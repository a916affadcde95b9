#pragma once

// A YAML file as a tree of places and texts, before anything is known of its meaning. Only what a
// settings file needs is read: one document of maps, lists and plain values. Anchors, aliases,
// tags, duplicate keys and further documents are refused, so that no file can mean more than it
// shows.

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "config/problem.h"

namespace conversed::config {

struct YamlNode {
  enum class Kind : std::uint8_t { nothing, text, list, map };

  Kind kind = Kind::nothing;
  std::uint32_t line = 0;          // from 1, of the value, or of its key if it is in a map
  std::uint32_t column = 0;        // from 1
  std::string key;                 // that it has in its map; empty in a list and at the root
  std::string text;                // of Kind::text, quotes and escapes resolved
  std::vector<YamlNode> children;  // of Kind::list and Kind::map, in the order of the file
};

// What a hostile or mistaken file can cost.
inline constexpr std::size_t max_yaml_bytes = 1024 * 1024;
inline constexpr std::size_t max_yaml_depth = 8;
inline constexpr std::size_t max_yaml_nodes = 10'000;

struct YamlDocument {
  YamlNode root;  // what could be read; only of use where `problems` is empty or for further checks
  std::vector<Problem> problems;
};

// Reads a YAML text; never throws for what the text holds. `name` is the file's, for the problems.
// Thread-safe. The caller bounds the text's size (max_yaml_bytes).
[[nodiscard]] YamlDocument parse_yaml(const std::string& text, const std::string& name);

}  // namespace conversed::config
