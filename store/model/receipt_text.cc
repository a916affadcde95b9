#include "store/model/receipt_text.h"

#include <algorithm>
#include <charconv>
#include <cstdint>
#include <cstring>
#include <nlohmann/json.hpp>
#include <optional>
#include <system_error>
#include <utility>

#include "store/model/json.h"

namespace conversed::model {
namespace {

using nlohmann::json;

constexpr char end_of_text = '\x1f';
constexpr std::size_t most_shared = '~' - ' ';
constexpr int most_levels = 16;

bool is_printable(std::string_view text) {
  return !any_byte(text, [](std::uint64_t eight) {
    const auto above_tilde = (eight + each_byte) | eight;
    return bytes_below(eight, ' ') | above_tilde;
  });
}

bool is_digit(char c) {
  return c >= '0' && c <= '9';
}

// How many characters the texts share at their beginning.
std::size_t shared_by(std::string_view a, std::string_view b) {
  const auto end = std::min({a.size(), b.size(), most_shared});
  std::size_t shared = 0;
  for (; shared + sizeof(std::uint64_t) <= end; shared += sizeof(std::uint64_t)) {
    std::uint64_t of_a = 0;
    std::uint64_t of_b = 0;
    std::memcpy(&of_a, a.data() + shared, sizeof of_a);
    std::memcpy(&of_b, b.data() + shared, sizeof of_b);
    if (of_a != of_b) break;
  }
  while (shared < end && a[shared] == b[shared]) ++shared;
  return shared;
}

// Reads values from the front of the text. None: the text is damaged.
class Reader {
 public:
  explicit Reader(std::string_view text) : text_(text) {}

  [[nodiscard]] bool at_end() const { return text_.empty(); }

  // The members up to the text's end, or up to the `}` that ends an inner object.
  std::optional<json> members(int level) {
    json object = json::object();
    while (!at_end() && text_.front() != '}') {
      const auto name = take_name();
      auto read = name ? value(level, {}) : std::nullopt;
      if (!read) return std::nullopt;
      object[std::string(*name)] = *std::move(read);
    }
    return object;
  }

 private:
  char take() {
    const char first = text_.front();
    text_.remove_prefix(1);
    return first;
  }

  std::optional<std::string_view> take_name() {
    const char character = take();
    for (std::size_t place = 0; place < receipt_names.size(); ++place) {
      if (receipt_name_at(place) == character) return receipt_names[place];
    }
    return std::nullopt;
  }

  std::optional<json> number() {
    std::int64_t value = 0;
    const auto read = std::from_chars(text_.data(), text_.data() + text_.size(), value);
    if (read.ec != std::errc()) return std::nullopt;
    text_.remove_prefix(static_cast<std::size_t>(read.ptr - text_.data()));
    return json(value);
  }

  std::optional<std::string_view> take_text() {
    const auto end = text_.find(end_of_text);
    if (end == std::string_view::npos) return std::nullopt;
    const auto text = text_.substr(0, end);
    text_.remove_prefix(end + 1);
    return text;
  }

  static std::optional<json> printable(std::string text) {
    return is_printable(text) ? std::optional<json>(std::move(text)) : std::nullopt;
  }

  std::optional<json> value(int level, std::string_view before) {
    if (at_end() || level == most_levels) return std::nullopt;
    if (text_.front() == '-' || is_digit(text_.front())) return number();
    const char kind = take();
    if (kind == 't' || kind == 'f') return json(kind == 't');
    if (kind == '{') return object(level + 1);
    if (kind == '[') return list(level + 1);
    if (kind == '<') return text_behind(before);
    const auto text = take_text();
    if (!text) return std::nullopt;
    if (kind == '"') return printable(std::string(*text));
    if (kind != ':') return std::nullopt;
    auto parsed = json::parse(*text, nullptr, false);
    return parsed.is_discarded() ? std::nullopt : std::optional(std::move(parsed));
  }

  std::optional<json> object(int level) {
    auto read = members(level);
    if (!read || at_end()) return std::nullopt;
    take();  // its `}`
    return read;
  }

  std::optional<json> list(int level) {
    json list = json::array();
    while (!at_end() && text_.front() != ']') {
      const auto* const before = list.empty() ? nullptr : list.back().get_ptr<const std::string*>();
      auto read = value(level, before == nullptr ? std::string_view() : *before);
      if (!read) return std::nullopt;
      if (read->is_number() && !at_end() && text_.front() == ',') take();
      list.push_back(*std::move(read));
    }
    if (at_end()) return std::nullopt;
    take();
    return list;
  }

  std::optional<json> text_behind(std::string_view before) {
    if (at_end()) return std::nullopt;
    const auto shared = static_cast<std::size_t>(take() - ' ');
    const auto rest = take_text();
    if (!rest || shared > before.size()) return std::nullopt;
    return printable(std::string(before.substr(0, shared)).append(*rest));
  }

  std::string_view text_;
};

}  // namespace

void ReceiptText::append(std::string_view value) {
  if (!is_printable(value)) {
    std::string quoted;
    append_quoted(quoted, value);
    return append_json(quoted);
  }
  text_.add('"');
  text_.add(value);
  text_.add(end_of_text);
}

void ReceiptText::append_json(std::string_view json) {
  text_.add(':');
  text_.add(json);
  text_.add(end_of_text);
}

void ReceiptText::append_behind(std::string_view before, std::string_view text) {
  const auto shared = shared_by(before, text);
  if (shared < 2 || !is_printable(text)) return append(text);
  text_.add('<');
  text_.add(static_cast<char>(' ' + shared));
  text_.add(text.substr(shared));
  text_.add(end_of_text);
}

void ReceiptText::add_texts(ReceiptName name, std::span<const std::string> texts) {
  text_.add(name.character());
  text_.add('[');
  std::string_view before;
  for (const std::string_view text : texts) append_behind(std::exchange(before, text), text);
  text_.add(']');
}

void ReceiptText::add_lines(ReceiptName name, std::string_view lines) {
  text_.add(name.character());
  text_.add('[');
  std::string_view before;
  while (!lines.empty()) {
    const auto line = lines.substr(0, lines.find('\n'));
    append_behind(std::exchange(before, line), line);
    lines.remove_prefix(std::min(line.size() + 1, lines.size()));
  }
  text_.add(']');
}

json read_receipt_text(std::string_view text) {
  Reader reader(text);
  auto step = reader.members(0);
  return step && reader.at_end() ? *std::move(step) : json(json::value_t::discarded);
}

}  // namespace conversed::model
