#include "api/representation/csv.h"

#include <string_view>

namespace conversed::api {
namespace {

std::string cell_text(const Value& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  return to_text(value);
}

void append_cell(std::string& out, std::string text) {
  constexpr std::string_view formula_begins = "=+-@\t\r\n";
  if (!text.empty() && formula_begins.find(text.front()) != std::string_view::npos) {
    text.insert(text.begin(), '\'');
  }
  if (text.find_first_of(",\"\r\n") == std::string::npos) {
    out += text;
    return;
  }
  out += '"';
  for (const char c : text) {
    if (c == '"') out += '"';
    out += c;
  }
  out += '"';
}

template <typename Cells>
void append_row(std::string& out, const Cells& cells) {
  const std::size_t begin = out.size();
  bool first = true;
  for (const auto& cell : cells) {
    if (!first) out += ',';
    first = false;
    append_cell(out, std::string(cell));
  }
  // An empty line is no row to most readers.
  if (out.size() == begin) out += "\"\"";
  out += "\r\n";
}

std::vector<std::string> row_of(const Value& object, const std::vector<std::string_view>& columns) {
  std::vector<std::string> row;
  row.reserve(columns.size());
  for (const auto column : columns) {
    const auto member = object.find(column);
    row.push_back(member == object.end() ? std::string() : cell_text(*member));
  }
  return row;
}

}  // namespace

std::string to_csv(const Document& document) {
  std::string out;
  if (document.list) {
    append_row(out, document.list->columns);
    for (const auto& item : document.value) append_row(out, row_of(item, document.list->columns));
    return out;
  }
  std::vector<std::string_view> columns;
  for (const auto& member : document.value.items()) columns.push_back(member.key());
  append_row(out, columns);
  append_row(out, row_of(document.value, columns));
  return out;
}

}  // namespace conversed::api
