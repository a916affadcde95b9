// A JSON value to YAML text.
#include "store/yaml/writer.h"

#include <algorithm>
#include <array>
#include <cstdint>
#include <string_view>

namespace conversed::yaml {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t max_line = 100;           // of a list or mapping on one line
constexpr std::size_t max_implicit_key = 1000;  // YAML looks no further than 1024 for a colon
constexpr std::size_t step = 2;

bool is_letter(char c) {
  return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || c == '_';
}

// Words, ids and paths: no indicator of YAML's is among their characters, but for blanks within.
bool is_plain(std::string_view text) {
  constexpr std::size_t longest = 200;
  static constexpr std::array<std::string_view, 10> words{"true", "false", "null", "yes", "no",
                                                          "on",   "off",   "y",    "n",   "nan"};
  if (text.empty() || text.size() > longest || !is_letter(text.front()) || text.back() == ' ') {
    return false;
  }
  const bool good = std::all_of(text.begin(), text.end(), [](char c) {
    return is_letter(c) || (c >= '0' && c <= '9') || c == '-' || c == '.' || c == '/' || c == ' ';
  });
  if (!good) return false;
  std::string lower(text);
  std::transform(lower.begin(), lower.end(), lower.begin(),
                 [](char c) { return c >= 'A' && c <= 'Z' ? static_cast<char>(c + 32) : c; });
  return std::find(words.begin(), words.end(), lower) == words.end();
}

// Escapes of characters that YAML must not hold unescaped or takes for line ends, and of characters
// that change the direction of writing, so that a reader sees the text in its real order.
std::string_view escape_of(std::string_view rest, std::size_t& length) {
  struct Escape {
    std::string_view bytes;
    std::string_view text;
  };
  static constexpr std::array<Escape, 15> escapes{{{"\x7F", "\\x7f"},
                                                   {"\xC2\x85", "\\x85"},
                                                   {"\xE2\x80\xA8", "\\L"},
                                                   {"\xE2\x80\xA9", "\\P"},
                                                   {"\xEF\xBB\xBF", "\\ufeff"},
                                                   {"\xC2\xA0", "\\xa0"},
                                                   {"\xE2\x80\xAA", "\\u202a"},
                                                   {"\xE2\x80\xAB", "\\u202b"},
                                                   {"\xE2\x80\xAC", "\\u202c"},
                                                   {"\xE2\x80\xAD", "\\u202d"},
                                                   {"\xE2\x80\xAE", "\\u202e"},
                                                   {"\xE2\x81\xA6", "\\u2066"},
                                                   {"\xE2\x81\xA7", "\\u2067"},
                                                   {"\xE2\x81\xA8", "\\u2068"},
                                                   {"\xE2\x81\xA9", "\\u2069"}}};
  for (const Escape& escape : escapes) {
    if (!rest.starts_with(escape.bytes)) continue;
    length = escape.bytes.size();
    return escape.text;
  }
  // C1 control characters: U+0080 to U+009F.
  if (rest.size() > 1 && rest[0] == '\xC2' && static_cast<std::uint8_t>(rest[1]) < 0xA0) {
    length = 2;
  }
  return {};
}

void append_hex(std::string& out, std::uint8_t byte) {
  static constexpr std::string_view digits = "0123456789abcdef";
  out += "\\x";
  out += digits[byte >> 4];
  out += digits[byte & 0xF];
}

std::string in_quotes(std::string_view text) {
  std::string out = "\"";
  while (!text.empty()) {
    std::size_t length = 0;
    const auto escape = escape_of(text, length);
    const char c = text.front();
    const auto byte = static_cast<std::uint8_t>(c);
    if (length > 0 && escape.empty()) {
      append_hex(out, static_cast<std::uint8_t>(text[1]));
    } else if (length > 0) {
      out += escape;
    } else {
      length = 1;
      if (c == '"' || c == '\\') {
        out += '\\';
        out += c;
      } else if (c == '\n') {
        out += "\\n";
      } else if (c == '\t') {
        out += "\\t";
      } else if (byte < 0x20) {
        append_hex(out, byte);
      } else {
        out += c;
      }
    }
    text.remove_prefix(length);
  }
  return out + '"';
}

// Several lines as they are, such as prompts.
bool fits_block(std::string_view text) {
  if (text.find('\n') == std::string_view::npos || text.ends_with("\n\n") || text == "\n") {
    return false;
  }
  bool starts_line = true;
  for (std::size_t i = 0; i < text.size(); ++i) {
    std::size_t length = 0;
    (void)escape_of(text.substr(i), length);
    if (length > 0) return false;
    const char c = text[i];
    if (static_cast<std::uint8_t>(c) < 0x20 && c != '\n') return false;
    // Leading blanks would be taken for indentation, trailing ones are lost by editors.
    if (starts_line && c == ' ') return false;
    const bool ends_line = i + 1 == text.size() || text[i + 1] == '\n';
    if (c == ' ' && ends_line) return false;
    starts_line = c == '\n';
  }
  return text.front() != '\n';
}

class Writer {
 public:
  std::string take() { return std::move(out_); }

  // At the place where a value begins: behind `key:` or `-`, or at the document's start.
  void value(const ordered_json& value, std::size_t indent) {
    if (value.is_object() && !value.empty()) {
      if (const auto line = on_one_line(value); !line.empty() && indent > 0) {
        out_ += ' ' + line + '\n';
      } else {
        if (indent > 0) out_ += '\n';
        members(value, indent, true);
      }
    } else if (value.is_array() && !value.empty()) {
      if (const auto line = on_one_line(value); !line.empty()) {
        out_ += ' ' + line + '\n';
      } else {
        out_ += '\n';
        items(value, indent);
      }
    } else {
      scalar(value, indent);
    }
  }

 private:
  void begin_line(std::size_t indent) { out_.append(indent, ' '); }

  void scalar(const ordered_json& value, std::size_t indent) {
    if (value.is_string() && fits_block(value.get_ref<const std::string&>())) {
      return block(value.get_ref<const std::string&>(), indent);
    }
    if (!out_.empty()) out_ += ' ';
    out_ += scalar_text(value) + '\n';
  }

  void block(std::string_view text, std::size_t indent) {
    const bool ends = text.ends_with('\n');
    out_ += ends ? " |\n" : " |-\n";
    if (ends) text.remove_suffix(1);
    while (true) {
      const auto end = text.find('\n');
      const auto line = text.substr(0, end);
      if (!line.empty()) begin_line(std::max(indent, step));
      out_.append(line);
      out_ += '\n';
      if (end == std::string_view::npos) return;
      text.remove_prefix(end + 1);
    }
  }

  void members(const ordered_json& object, std::size_t indent, bool indents_first) {
    bool first = true;
    for (const auto& [name, member] : object.items()) {
      if (!first || indents_first) begin_line(indent);
      first = false;
      const std::string key = is_plain(name) ? name : in_quotes(name);
      if (key.size() <= max_implicit_key) {
        out_ += key + ':';
      } else {
        out_ += "? " + key + '\n';
        begin_line(indent);
        out_ += ':';
      }
      value(member, indent + step);
    }
  }

  void items(const ordered_json& array, std::size_t indent) {
    for (const auto& item : array) {
      begin_line(indent);
      out_ += '-';
      if (item.is_object() && !item.empty() && on_one_line(item).empty()) {
        out_ += ' ';
        members(item, indent + step, false);
      } else {
        value(item, indent + step);
      }
    }
  }

  static std::string scalar_text(const ordered_json& value) {
    if (value.is_string()) {
      const auto& text = value.get_ref<const std::string&>();
      return is_plain(text) ? text : in_quotes(text);
    }
    return value.dump();  // a number, true, false or null, or an empty list or mapping
  }

  // Small lists and mappings without others in them; empty if the value is none. Mappings stay on
  // lines of their own if they have more than a few members.
  static std::string on_one_line(const ordered_json& value) {
    constexpr std::size_t few = 3;
    const bool is_object = value.is_object();
    if (is_object && (value.size() > few || value.size() < 2)) return {};
    std::string line = is_object ? "{" : "[";
    for (const auto& [name, part] : value.items()) {
      if (part.is_structured() && !part.empty()) return {};
      if (line.size() > 1) line += ", ";
      if (is_object) line += (is_plain(name) ? name : in_quotes(name)) + ": ";
      if (part.is_string()) {
        const auto& text = part.get_ref<const std::string&>();
        if (text.size() > max_line || fits_block(text)) return {};
      }
      line += scalar_text(part);
      if (line.size() > max_line) return {};
    }
    return line + (is_object ? "}" : "]");
  }

  std::string out_;
};

}  // namespace

std::string write(const ordered_json& value) {
  Writer writer;
  writer.value(value, 0);
  return writer.take();
}

}  // namespace conversed::yaml
