#include <algorithm>
#include <cctype>

#include "api/openapi/document.h"

namespace conversed::api::openapi {
namespace {

// Names that YAML takes for nothing but themselves.
bool is_plain(std::string_view name) {
  static constexpr std::string_view special[] = {"null", "true", "false", "yes", "no",
                                                 "on",   "off",  "y",     "n"};
  const bool letters = std::all_of(name.begin(), name.end(), [](unsigned char c) {
    return std::isalnum(c) != 0 || c == '_' || c == '-';
  });
  return letters && !name.empty() && std::isalpha(static_cast<unsigned char>(name.front())) != 0 &&
         std::find(std::begin(special), std::end(special), name) == std::end(special);
}

bool is_block(const Value& value) {
  return (value.is_object() || value.is_array()) && !value.empty();
}

void write(std::string& out, const Value& value, std::size_t depth);

// What stands behind a name or a dash. JSON's own notation of scalars is YAML's, too.
void write_inner(std::string& out, const Value& value, std::size_t depth) {
  if (!is_block(value)) {
    out += ' ';
    out += to_text(value);
    out += '\n';
    return;
  }
  out += '\n';
  write(out, value, depth + 1);
}

void write(std::string& out, const Value& value, std::size_t depth) {
  const std::string indent(depth * 2, ' ');
  for (const auto& [name, member] : value.items()) {
    out += indent;
    if (value.is_array()) {
      out += '-';
    } else {
      out += is_plain(name) ? name : to_text(Value(name));
      out += ':';
    }
    write_inner(out, member, depth);
  }
}

}  // namespace

std::string to_yaml(const Value& value) {
  if (!is_block(value)) return to_text(value) + '\n';
  std::string out;
  write(out, value, 0);
  return out;
}

}  // namespace conversed::api::openapi
