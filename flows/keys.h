#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <optional>
#include <span>
#include <string_view>

// The keys of the mappings of a file. One table serves its reader (fields.h), the JSON Schema
// (tools/schema.h) and the reference (tests/unit/flows/reference_test.cc).
namespace conversed::flows {

inline constexpr std::size_t max_name_characters = 200;

// The kind of a value of a file.
enum class Form : std::uint8_t {
  anything,
  text,
  name,      // View::name
  flag,      // true or false
  number,    // a whole one
  duration,  // a text such as `10s`
  number_or_duration,
  template_text,  // a text with `{{ }}`
  json_template,  // any value whose texts may have `{{ }}`
  path,           // a text such as `context.city`
  regex,          // a text
  expression,     // a text, a number, true or false
  texts,          // a text, or a list of at least one
  local_text,     // a text, or a mapping of locales to texts
  local_texts,    // such a value, or a list of at least one
  names,          // a list of names
  any_mapping,    // with any keys
  text_map,       // a mapping to texts
  expressions,    // a mapping to expressions
  nodes,          // a list of Nodes
  nodes_map,      // a mapping to lists of Nodes
  mapping,        // with `keys`
  mappings,       // a list of them
  mapping_or_mappings,
  text_or_mapping,
  text_or_mappings,
  texts_and_mappings,          // a list of texts and of mappings
  text_or_texts_and_mappings,  // a text, or such a list
};

struct Key;

struct KeyFacts {
  std::string_view name;
  Form form = Form::anything;
  bool is_required = false;
  std::int64_t least = 0;  // for a number, or for a duration in milliseconds
  std::int64_t most = 0;
  std::span<const std::string_view> choices{};  // for a text, or for the texts of a list
  std::span<const Key> keys{};                  // of the mapping, or of each mapping of the list
  // The default of a number, of a duration in milliseconds, or of a flag.
  std::optional<std::int64_t> default_number{};
  std::string_view default_word{};  // the default of a text
};

// Functions that return the key with another fact.
template <typename Self>
struct KeyWords : KeyFacts {
  [[nodiscard]] constexpr Self as(Form which) const {
    Self key = self();
    key.form = which;
    return key;
  }
  [[nodiscard]] constexpr Self of(std::span<const Key> inner) const {
    Self key = self();
    key.keys = inner;
    return key;
  }
  [[nodiscard]] constexpr Self within(std::int64_t low, std::int64_t high) const {
    Self key = self();
    key.least = low;
    key.most = high;
    return key;
  }
  [[nodiscard]] constexpr Self within(std::chrono::milliseconds low,
                                      std::chrono::milliseconds high) const {
    return within(low.count(), high.count());
  }
  [[nodiscard]] constexpr Self one_of(std::span<const std::string_view> words) const {
    Self key = self();
    key.choices = words;
    return key;
  }
  [[nodiscard]] constexpr Self by_default(std::int64_t number) const {
    Self key = self();
    key.default_number = number;
    return key;
  }
  [[nodiscard]] constexpr Self by_default(std::chrono::milliseconds time) const {
    return by_default(time.count());
  }
  [[nodiscard]] constexpr Self by_default(std::string_view word) const {
    Self key = self();
    key.default_word = word;
    return key;
  }

 private:
  [[nodiscard]] constexpr const Self& self() const { return static_cast<const Self&>(*this); }
};

// A key of a mapping that is no Node. Other keys are problems.
struct Key : KeyWords<Key> {};

[[nodiscard]] constexpr Key may_have(std::string_view name, Form form) {
  Key key;
  key.name = name;
  key.form = form;
  return key;
}
[[nodiscard]] constexpr Key must_have(std::string_view name, Form form) {
  Key key = may_have(name, form);
  key.is_required = true;
  return key;
}

}  // namespace conversed::flows
