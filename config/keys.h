#pragma once

// The one table of settings. Parsing, the names of environment variables, error messages, the
// commented default file and SIGHUP use it. A new setting is a member of a struct in settings.h and
// a row here.

#include <cstdint>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "config/settings.h"

namespace conversed::config {

// The form of a value. The member's type decides it (key_forms.h).
enum class Form : std::uint8_t {
  text,      // checked by Key::text; also for a Secret
  count,     // a whole number
  duration,  // milliseconds
  size,      // bytes
  word,      // one of Key::words; also for true and false
  list,      // of texts, or of words
};

// Inclusive, in the form's smallest unit.
struct Range {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

struct TextRule {
  bool (*accepts)(std::string_view text);
  std::string_view expected;  // follows "expected "; for a list whose items follow the rule
  bool lower_case = false;    // whether the text is stored in lower case
};

// One setting. Immutable, with static lifetime.
struct Key {
  std::string_view path;  // `queue.kafka.topic_prefix`
  std::string_view doc;   // for operators: its effect, and when to change it
  Form form = Form::text;
  Range range{};                              // for count, duration and size
  const TextRule* text = nullptr;             // for text and for lists of texts
  std::span<const std::string_view> words{};  // for word and for lists of words
  bool is_secret = false;                     // whether the member is a Secret or contains Secrets
  bool reloads = false;                       // whether SIGHUP applies it, without a restart

  // Sets the value. nullopt: done. Otherwise the value stays, and the text is the problem. It is
  // empty if the expected form explains the problem. `items` has one element unless the form is a
  // list.
  std::optional<std::string> (*assign)(Settings&, const Key&,
                                       const std::vector<std::string>& items) = nullptr;
  // The value in its written form, one element unless the form is a list. The result may be a
  // secret: check is_secret before you print it.
  std::vector<std::string> (*show)(const Settings&, const Key&) = nullptr;

  [[nodiscard]] bool is_list() const { return form == Form::list; }
  // `CONVERSED_QUEUE_KAFKA_TOPIC_PREFIX`.
  [[nodiscard]] std::string variable() const;
  // `a whole number from 0 to 65535`; follows "expected ".
  [[nodiscard]] std::string expected() const;
};

// Ordered as in the default file. The keys of one area are neighbors.
[[nodiscard]] std::span<const Key> keys();

// The text of config/conversed.yaml: every key with its explanation, its form and its default.
// Kept by: DefaultFile.IsWhatTheTableSays.
[[nodiscard]] std::string default_file();

// Environment variables that begin with CONVERSED_ and are not settings. Names that end with '_'
// are prefixes of variables for tests. A daemon ignores all of them.
[[nodiscard]] std::span<const std::string_view> reserved_variables();

// The changed keys of a reload, as paths in the table's order.
struct Reloaded {
  std::vector<std::string_view> applied;
  std::vector<std::string_view> need_restart;
};

// Applies the keys of `wanted` that can change while the daemon runs.
[[nodiscard]] Reloaded reload(Settings& running, const Settings& wanted);

}  // namespace conversed::config
