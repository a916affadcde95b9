#pragma once

// The rows of the table in keys.cc. The member's type decides the form of its value: a number, a
// duration, true or false, a word of an enumeration, a text, a Secret, or a list of these. Only
// keys.cc includes this file.

#include <algorithm>
#include <type_traits>

#include "config/keys.h"

namespace conversed::config {

// The words of an enumeration, in the order of its values.
inline constexpr std::string_view flag_words[] = {"false", "true"};
inline constexpr std::string_view queue_driver_words[] = {"embedded", "kafka"};
inline constexpr std::string_view store_driver_words[] = {"sqlite", "postgres"};
inline constexpr std::string_view log_level_words[] = {"debug", "info", "warn", "error"};
inline constexpr std::string_view log_format_words[] = {"json", "text"};

// Bounds of a number of bytes. A plain Range bounds a count, or a duration in milliseconds.
struct Bytes {
  std::uint64_t min;
  std::uint64_t max;
};

using Items = std::vector<std::string>;
using Complaint = std::optional<std::string>;  // none: the text has the key's form

// The parts of parsing and writing an item that need no template (key_forms.cc).
[[nodiscard]] Complaint parse_number(const Key& key, const std::string& text, std::uint64_t& value);
[[nodiscard]] std::string number_text(const Key& key, std::uint64_t value);
[[nodiscard]] Complaint parse_word(const Key& key, std::string_view text, std::size_t& index);
[[nodiscard]] std::optional<double> parse_share(std::string_view text);
[[nodiscard]] std::string share_text(double share);
[[nodiscard]] Complaint parse_text(const Key& key, const std::string& text, std::string& value);

template <typename T>
inline constexpr bool is_word = std::is_enum_v<T> || std::is_same_v<T, bool>;
template <typename T>
inline constexpr bool is_vector = false;
template <typename T>
inline constexpr bool is_vector<std::vector<T>> = true;

using Pair = std::pair<std::string, Secret>;  // written as `name=value`

template <typename T>
Complaint parse_item(const Key& key, const std::string& text, T& value) {
  if constexpr (is_word<T>) {
    std::size_t index = 0;
    if (Complaint complaint = parse_word(key, text, index)) return complaint;
    value = static_cast<T>(index);
  } else if constexpr (std::is_integral_v<T> || std::is_same_v<T, Duration>) {
    std::uint64_t number = 0;
    if (Complaint complaint = parse_number(key, text, number)) return complaint;
    value = static_cast<T>(number);
  } else {
    std::string read;
    if (Complaint complaint = parse_text(key, text, read)) return complaint;
    if constexpr (std::is_same_v<T, Pair>) {
      const std::size_t equals = read.find('=');
      value = {read.substr(0, equals), Secret(read.substr(equals + 1))};
    } else if constexpr (std::is_same_v<T, double>) {
      value = parse_share(read).value_or(0);
    } else {
      value = T(read);
    }
  }
  return std::nullopt;
}

template <typename T>
std::string item_text(const Key& key, const T& value) {
  if constexpr (is_word<T>) {
    return std::string(key.words[static_cast<std::size_t>(value)]);
  } else if constexpr (std::is_same_v<T, Duration>) {
    return number_text(key, static_cast<std::uint64_t>(value.count()));
  } else if constexpr (std::is_integral_v<T>) {
    return number_text(key, value);
  } else if constexpr (std::is_same_v<T, double>) {
    return share_text(value);
  } else if constexpr (std::is_same_v<T, Secret>) {
    return value.reveal();
  } else if constexpr (std::is_same_v<T, Pair>) {
    return value.first + "=" + value.second.reveal();
  } else {
    return std::string(value);
  }
}

// A list of words has at least one word, each once. It is stored in the enumeration's order.
template <typename T>
Complaint parse_items(const Key& key, const Items& items, std::vector<T>& values) {
  constexpr std::size_t max_items = 1000;
  if (items.size() > max_items) return "more than " + std::to_string(max_items) + " items";
  std::vector<T> read(items.size());
  for (std::size_t i = 0; i < items.size(); ++i) {
    const std::string item = "item " + std::to_string(i + 1);
    if (parse_item(key, items[i], read[i])) return item + " is wrong";
    if constexpr (is_word<T>) {
      const auto here = read.begin() + static_cast<std::ptrdiff_t>(i);
      if (std::find(read.begin(), here, *here) != here) return item + " is given twice";
    }
  }
  if constexpr (is_word<T>) {
    if (read.empty()) return "at least one is needed";
    std::sort(read.begin(), read.end());
  }
  values = std::move(read);
  return std::nullopt;
}

// `Field` is a lambda that returns the member of Settings; see CONVERSED_FIELD.
template <typename Field>
constexpr Key row(std::string_view path, std::string_view doc) {
  using Value = std::remove_reference_t<std::invoke_result_t<Field, Settings&>>;
  Key key{.path = path, .doc = doc};
  key.is_secret = std::is_same_v<Value, Secret> || std::is_same_v<Value, std::vector<Secret>> ||
                  std::is_same_v<Value, std::vector<Pair>>;
  key.assign = [](Settings& settings, const Key& self, const Items& items) -> Complaint {
    if constexpr (is_vector<Value>) {
      return parse_items(self, items, Field{}(settings));
    } else {
      return parse_item(self, items.front(), Field{}(settings));
    }
  };
  key.show = [](const Settings& settings, const Key& self) -> Items {
    if constexpr (is_vector<Value>) {
      Items items;
      for (const auto& value : Field{}(settings)) items.push_back(item_text(self, value));
      return items;
    } else {
      return {item_text(self, Field{}(settings))};
    }
  };
  if constexpr (is_vector<Value>) {
    key.form = Form::list;
  } else if constexpr (is_word<Value>) {
    key.form = Form::word;
  } else if constexpr (std::is_same_v<Value, Duration>) {
    key.form = Form::duration;
  } else if constexpr (std::is_integral_v<Value>) {
    key.form = Form::count;
  }
  return key;
}

// `rule` is a Range, Bytes, a TextRule, or the words of an enumeration.
template <typename Field, typename Rule>
constexpr Key setting(std::string_view path, Field, const Rule& rule, std::string_view doc) {
  Key key = row<Field>(path, doc);
  if constexpr (std::is_same_v<Rule, Range>) {
    key.range = rule;
  } else if constexpr (std::is_same_v<Rule, Bytes>) {
    // The member's name ends in its unit. The setting's name does not.
    key.path.remove_suffix(std::string_view("_bytes").size());
    key.form = Form::size;
    key.range = {rule.min, rule.max};
  } else if constexpr (std::is_same_v<Rule, TextRule>) {
    key.text = &rule;
  } else {
    key.words = rule;
  }
  return key;
}

// Marks a row that SIGHUP applies. All users of such a value read it anew each time.
constexpr Key reloads(Key key) {
  key.reloads = true;
  return key;
}

}  // namespace conversed::config
