#include "config/key_forms.h"

#include <algorithm>
#include <array>
#include <charconv>
#include <limits>

#include "store/text/ascii.h"
#include "store/text/joined.h"
#include "store/text/quantity.h"

namespace conversed::config {

Complaint parse_number(const Key& key, const std::string& text, std::uint64_t& value) {
  std::optional<std::uint64_t> read;
  if (key.form == Form::count) {
    read = text::parse_whole(text);
  } else if (key.form == Form::size) {
    read = text::parse_size(text);
  } else if (const auto duration = text::parse_duration(text)) {
    read = static_cast<std::uint64_t>(duration->count());
  }
  if (!read) return "";
  if (*read < key.range.min) return "too small";
  if (*read > key.range.max) return "too large";
  value = *read;
  return std::nullopt;
}

std::string number_text(const Key& key, std::uint64_t value) {
  switch (key.form) {
    case Form::duration:
      return text::duration_text(Duration(static_cast<Duration::rep>(value)));
    case Form::size:
      return text::size_text(value);
    default:
      return std::to_string(value);
  }
}

std::optional<double> parse_share(std::string_view text) {
  double share = 0;
  const auto [end, error] = std::from_chars(text.data(), text.data() + text.size(), share);
  if (error != std::errc() || end != text.data() + text.size()) return std::nullopt;
  return share;
}

std::string share_text(double share) {
  std::array<char, 32> text{};
  return {text.data(), std::to_chars(text.data(), text.data() + text.size(), share).ptr};
}

Complaint parse_word(const Key& key, std::string_view text, std::size_t& index) {
  const auto found = std::find(key.words.begin(), key.words.end(), text);
  if (found == key.words.end()) return "";
  index = static_cast<std::size_t>(found - key.words.begin());
  return std::nullopt;
}

Complaint parse_text(const Key& key, const std::string& text, std::string& value) {
  if (!key.text->accepts(text)) return "";
  value = key.text->lower_case ? text::lower_case(text) : text;
  return std::nullopt;
}

std::string Key::variable() const {
  std::string name = "CONVERSED_";
  for (const char c : path) {
    name += c == '.' ? '_' : c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  }
  return name;
}

std::string Key::expected() const {
  const auto from = number_text(*this, range.min);
  const auto to = number_text(*this, range.max);
  const bool open_ended =
      range.max >= static_cast<std::uint64_t>(std::numeric_limits<std::int64_t>::max());
  switch (form) {
    case Form::count:
      return "a whole number " + (open_ended ? from + " or above" : "from " + from + " to " + to);
    case Form::duration:
      return "a duration from " + from + " to " + to + ", such as 500ms, 10s, 5m, 2h or 3d";
    case Form::size:
      return "a size from " + from + " to " + to + ", in bytes, KiB, MiB or GiB";
    case Form::word:
      return "one of " + text::joined(words);
    case Form::list:
      if (text == nullptr) return "a list of " + text::joined(words);
      break;
    case Form::text:
      break;
  }
  return std::string(text->expected);
}

}  // namespace conversed::config
