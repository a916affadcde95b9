#pragma once

// The forms that rows of the table in keys.cc are made with, one function a form. Each binds a
// member of Settings to the text it is written as. For keys.cc only.

#include <limits>
#include <type_traits>

#include "config/keys.h"

namespace conversed::config {

// The words of an enumeration, in the order of its values.
inline constexpr std::string_view queue_driver_words[] = {"sqlite", "kafka"};
inline constexpr std::string_view store_driver_words[] = {"sqlite", "postgres"};
inline constexpr std::string_view log_level_words[] = {"debug", "info", "warn", "error"};
inline constexpr std::string_view log_format_words[] = {"json", "text"};

// Inclusive, in the form's smallest unit.
struct Range {
  std::uint64_t min = 0;
  std::uint64_t max = 0;
};

using Items = std::vector<std::string>;
using Problems = std::optional<std::string>;

// What the forms have in common with each other, without the templates (key_forms.cc). Each reads
// one text, or a list of them, and answers nullopt or a complaint if it is not of the key's form.
struct NumberText {
  std::optional<std::uint64_t> value;
  std::string complaint;
};
[[nodiscard]] NumberText read_number(const Key& key, const std::string& text);
[[nodiscard]] std::string number_text(const Key& key, std::uint64_t value);
[[nodiscard]] std::optional<std::size_t> word_index(const Key& key, std::string_view text);
// Whether the texts are of the key's form, for the forms that are kept as text.
[[nodiscard]] Problems check_text(const Key& key, const Items& items);
// Texts that passed, as they are kept: names of hosts in lower case.
[[nodiscard]] Items normalised(const Key& key, Items items);

// Marks a row whose value a running daemon takes over: every place that uses it asks for it anew.
constexpr Key reloads(Key key) {
  key.reloads = true;
  return key;
}

template <typename Field>
constexpr Key number_key(std::string_view name, Form form, Range range, std::string_view doc) {
  using Value = std::remove_reference_t<std::invoke_result_t<Field, Settings&>>;
  return {.path = name,
          .form = form,
          .min = range.min,
          .max = range.max,
          .words = {},
          .doc = doc,
          .reloads = false,
          .assign = [](Settings& settings, const Key& key, const Items& items) -> Problems {
            const NumberText read = read_number(key, items.front());
            if (!read.value) return read.complaint;
            Field{}(settings) = static_cast<Value>(*read.value);
            return std::nullopt;
          },
          .show = [](const Settings& settings, const Key& key) -> Items {
            return {number_text(key, static_cast<std::uint64_t>(Field{}(settings)))};
          }};
}

template <typename Field>
constexpr Key whole(std::string_view name, Field, Range range, std::string_view doc) {
  return number_key<Field>(name, Form::whole, range, doc);
}

template <typename Field>
constexpr Key size(std::string_view name, Field, Range range, std::string_view doc) {
  return number_key<Field>(name, Form::size, range, doc);
}

// The range is in milliseconds.
template <typename Field>
constexpr Key duration(std::string_view name, Field, Range range, std::string_view doc) {
  return {.path = name,
          .form = Form::duration,
          .min = range.min,
          .max = range.max,
          .words = {},
          .doc = doc,
          .reloads = false,
          .assign = [](Settings& settings, const Key& key, const Items& items) -> Problems {
            const NumberText read = read_number(key, items.front());
            if (!read.value) return read.complaint;
            Field{}(settings) = Duration(static_cast<Duration::rep>(*read.value));
            return std::nullopt;
          },
          .show = [](const Settings& settings, const Key& key) -> Items {
            return {number_text(key, static_cast<std::uint64_t>(Field{}(settings).count()))};
          }};
}

template <typename Field>
constexpr Key flag(std::string_view name, Field, std::string_view doc) {
  return {.path = name,
          .form = Form::flag,
          .min = 0,
          .max = 0,
          .words = {},
          .doc = doc,
          .reloads = false,
          .assign = [](Settings& settings, const Key&, const Items& items) -> Problems {
            if (items.front() != "true" && items.front() != "false") return "";
            Field{}(settings) = items.front() == "true";
            return std::nullopt;
          },
          .show = [](const Settings& settings, const Key&) -> Items {
            return {Field{}(settings) ? "true" : "false"};
          }};
}

template <typename Field>
constexpr Key word(std::string_view name, Field, std::span<const std::string_view> choices,
                   std::string_view doc) {
  using Value = std::remove_reference_t<std::invoke_result_t<Field, Settings&>>;
  return {.path = name,
          .form = Form::word,
          .min = 0,
          .max = 0,
          .words = choices,
          .doc = doc,
          .reloads = false,
          .assign = [](Settings& settings, const Key& key, const Items& items) -> Problems {
            const auto index = word_index(key, items.front());
            if (!index) return "";
            Field{}(settings) = static_cast<Value>(*index);
            return std::nullopt;
          },
          .show = [](const Settings& settings, const Key& key) -> Items {
            return {std::string(key.words[static_cast<std::size_t>(Field{}(settings))])};
          }};
}

// Kept in the order of the enumeration, however they are written.
template <typename Field>
constexpr Key words(std::string_view name, Field, std::span<const std::string_view> choices,
                    std::string_view doc) {
  using Value =
      typename std::remove_reference_t<std::invoke_result_t<Field, Settings&>>::value_type;
  return {.path = name,
          .form = Form::words,
          .min = 0,
          .max = 0,
          .words = choices,
          .doc = doc,
          .reloads = false,
          .assign = [](Settings& settings, const Key& key, const Items& items) -> Problems {
            if (Problems complaint = check_text(key, items)) return complaint;
            auto& chosen = Field{}(settings);
            chosen.clear();
            for (std::size_t i = 0; i < key.words.size(); ++i) {
              for (const std::string& item : items) {
                if (item == key.words[i]) chosen.push_back(static_cast<Value>(i));
              }
            }
            return std::nullopt;
          },
          .show = [](const Settings& settings, const Key& key) -> Items {
            Items shown;
            for (const Value value : Field{}(settings)) {
              shown.emplace_back(key.words[static_cast<std::size_t>(value)]);
            }
            return shown;
          }};
}

// A member that is made from one text: a string, a path, a Secret.
template <typename Field>
constexpr Key text_key(std::string_view name, Form form, std::string_view doc) {
  using Value = std::remove_reference_t<std::invoke_result_t<Field, Settings&>>;
  return {.path = name,
          .form = form,
          .min = 0,
          .max = 0,
          .words = {},
          .doc = doc,
          .reloads = false,
          .assign = [](Settings& settings, const Key& key, const Items& items) -> Problems {
            if (Problems complaint = check_text(key, items)) return complaint;
            Field{}(settings) = Value(items.front());
            return std::nullopt;
          },
          .show = [](const Settings& settings, const Key&) -> Items {
            if constexpr (std::is_same_v<Value, Secret>) {
              return {Field{}(settings).reveal()};
            } else {
              return {std::string(Field{}(settings))};
            }
          }};
}

template <typename Field>
constexpr Key path(std::string_view name, Field, std::string_view doc) {
  return text_key<Field>(name, Form::path, doc);
}
template <typename Field>
constexpr Key host(std::string_view name, Field, std::string_view doc) {
  return text_key<Field>(name, Form::host, doc);
}
template <typename Field>
constexpr Key topic(std::string_view name, Field, std::string_view doc) {
  return text_key<Field>(name, Form::topic, doc);
}
template <typename Field>
constexpr Key name(std::string_view path, Field, std::string_view doc) {
  return text_key<Field>(path, Form::name, doc);
}
template <typename Field>
constexpr Key base_path(std::string_view name, Field, std::string_view doc) {
  return text_key<Field>(name, Form::base_path, doc);
}
template <typename Field>
constexpr Key url(std::string_view name, Field, std::string_view doc) {
  return text_key<Field>(name, Form::url, doc);
}
template <typename Field>
constexpr Key file(std::string_view name, Field, std::string_view doc) {
  return text_key<Field>(name, Form::file, doc);
}
template <typename Field>
constexpr Key text(std::string_view name, Field, std::string_view doc) {
  return text_key<Field>(name, Form::text, doc);
}
template <typename Field>
constexpr Key secret(std::string_view name, Field, std::string_view doc) {
  return text_key<Field>(name, Form::secret, doc);
}

template <typename Field>
constexpr Key list_key(std::string_view name, Form form, std::string_view doc) {
  return {.path = name,
          .form = form,
          .min = 0,
          .max = 0,
          .words = {},
          .doc = doc,
          .reloads = false,
          .assign = [](Settings& settings, const Key& key, const Items& items) -> Problems {
            if (Problems complaint = check_text(key, items)) return complaint;
            Field{}(settings) = normalised(key, items);
            return std::nullopt;
          },
          .show = [](const Settings& settings, const Key&) -> Items { return Field{}(settings); }};
}

template <typename Field>
constexpr Key servers(std::string_view name, Field, std::string_view doc) {
  return list_key<Field>(name, Form::servers, doc);
}
// Kept in order, as pairs of a name and a Secret.
template <typename Field>
constexpr Key pairs(std::string_view name, Field, std::string_view doc) {
  return {.path = name,
          .form = Form::pairs,
          .min = 0,
          .max = 0,
          .words = {},
          .doc = doc,
          .reloads = false,
          .assign = [](Settings& settings, const Key& key, const Items& items) -> Problems {
            if (Problems complaint = check_text(key, items)) return complaint;
            auto& all = Field{}(settings);
            all.clear();
            for (const std::string& item : items) {
              const std::size_t equals = item.find('=');
              all.emplace_back(item.substr(0, equals), Secret(item.substr(equals + 1)));
            }
            return std::nullopt;
          },
          .show = [](const Settings& settings, const Key&) -> Items {
            Items shown;
            for (const auto& [each, value] : Field{}(settings)) {
              shown.push_back(each + "=" + value.reveal());
            }
            return shown;
          }};
}
template <typename Field>
constexpr Key networks(std::string_view name, Field, std::string_view doc) {
  return list_key<Field>(name, Form::networks, doc);
}
template <typename Field>
constexpr Key ranges(std::string_view name, Field, std::string_view doc) {
  return list_key<Field>(name, Form::ranges, doc);
}

}  // namespace conversed::config
