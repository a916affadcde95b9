#pragma once

// The one table of settings. Parsing, the names of environment variables, error messages, the
// commented default file and what a reload can change are all read off it; a new setting is a
// member of a struct in settings.h and a row here.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace conversed::config {

// How a value is written. The member's type decides it (key_forms.h).
enum class Form : std::uint8_t {
  text,      // as Key::text has it; a Secret, too
  count,     // a whole number
  duration,  // milliseconds
  size,      // bytes
  word,      // one of Key::words; true or false, too
  list,      // of texts, or of words
};

// Inclusive, in the form's smallest unit.
struct Range {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

// What a text may be.
struct TextRule {
  bool (*accepts)(std::string_view text);
  std::string_view expected;  // reads on after "expected "; of a list, where the rule is for items
  bool lower_case = false;    // whether it is kept so
};

// One setting. Immutable, with static lifetime.
struct Key {
  std::string_view path;  // `queue.kafka.topic_prefix`
  std::string_view doc;   // one or two sentences for operators
  Form form = Form::text;
  Range range{};                              // of count, duration and size
  const TextRule* text = nullptr;             // of text and of lists of texts
  std::span<const std::string_view> words{};  // of word and of lists of words
  bool is_secret = false;                     // whether the member is a Secret, or holds some
  bool reloads = false;                       // whether SIGHUP does, or it takes a restart

  // Sets the value. nullopt: done; else what is wrong, where the expected form does not say it all
  // (it may be empty). `items` has one element unless the form is a list. On failure nothing is
  // changed.
  std::optional<std::string> (*assign)(Settings&, const Key&,
                                       const std::vector<std::string>& items) = nullptr;
  // The value as it is written, one element unless the form is a list. Shows a secret, too: compare
  // the result, and look at is_secret before printing it.
  std::vector<std::string> (*show)(const Settings&, const Key&) = nullptr;

  [[nodiscard]] bool is_list() const { return form == Form::list; }
  // `CONVERSED_QUEUE_KAFKA_TOPIC_PREFIX`.
  [[nodiscard]] std::string variable() const;
  // `a whole number from 0 to 65535`; reads on after "expected ".
  [[nodiscard]] std::string expected() const;
};

// In the order of the default file; the keys of one area are neighbours.
[[nodiscard]] std::span<const Key> keys();

// The commented default file: every key with its explanation, its form and its default. It is the
// text of config/conversed.yaml.
[[nodiscard]] std::string default_file();

// Environment variables that begin with CONVERSED_ and are no setting. Those that end with '_' are
// prefixes: they belong to the tests, and a daemon that is not under test ignores them.
[[nodiscard]] std::span<const std::string_view> reserved_variables();

// The paths of what differs between two settings, in the table's order; never the values.
[[nodiscard]] std::vector<std::string_view> changed_keys(const Settings& before,
                                                         const Settings& after);

// What a reload came to, as paths in the table's order.
struct Reloaded {
  std::vector<std::string_view> applied;
  std::vector<std::string_view> need_restart;
};

// Takes over from `wanted` what can be changed while the daemon runs, and nothing else.
[[nodiscard]] Reloaded reload(Settings& running, const Settings& wanted);

}  // namespace conversed::config
