// A JSON value to YAML text.
#include "store/yaml/writer.h"

#include <algorithm>
#include <array>
#include <string_view>

#include "store/text/ascii.h"
#include "store/text/terminal.h"

namespace conversed::yaml {
namespace {

using nlohmann::ordered_json;

constexpr std::size_t max_line = 100;           // of a list or mapping on one line
constexpr std::size_t max_implicit_key = 1000;  // YAML looks no further than 1024 for a colon
constexpr std::size_t step = 2;

bool is_letter(char c) {
  return text::is_letter(c) || c == '_';
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
    return is_letter(c) || text::is_digit(c) || c == '-' || c == '.' || c == '/' || c == ' ';
  });
  if (!good) return false;
  return std::ranges::find(words, text::lower_case(text)) == words.end();
}

// JSON's escapes are YAML's. YAML also forbids some characters that JSON lets stand, and takes some
// for line ends. Marks of the direction of writing are escaped, so that a reader sees the real
// order.
std::string in_quotes(const std::string& text) {
  return text::shown(ordered_json(text).dump(), text::Lines::one);
}

// Several lines as they are, such as prompts.
bool fits_block(const std::string& text) {
  const auto has = [&](std::string_view part) { return text.find(part) != std::string::npos; };
  // Leading blanks would be taken for indentation, trailing ones are lost by editors.
  const bool has_outer_blanks =
      text.starts_with(' ') || has("\n ") || has(" \n") || text.ends_with(' ');
  return has("\n") && !text.starts_with('\n') && !text.ends_with("\n\n") && !has_outer_blanks &&
         !has("\t") && text::shown(text, text::Lines::many) == text;
}

class Writer {
 public:
  std::string take() { return std::move(out_); }

  // At the place where a value begins: behind `key:` or `-`, or at the document's start.
  void value(const ordered_json& value, std::size_t indent) {
    if (!value.is_structured() || value.empty()) return scalar(value, indent);
    const bool is_document = value.is_object() && indent == 0;
    if (const auto line = on_one_line(value); !line.empty() && !is_document) {
      out_ += ' ' + line + '\n';
      return;
    }
    if (!is_document) out_ += '\n';
    value.is_object() ? members(value, indent, true) : items(value, indent);
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

  // The text of a small list or mapping that holds no other one. Empty for any other value, and for
  // a mapping of more than a few members, which gets a line a member.
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
