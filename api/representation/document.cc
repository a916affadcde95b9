#include "api/representation/document.h"

#include <array>
#include <cstdio>
#include <utility>

#include "store/model/json.h"
#include "store/text/markup.h"
#include "store/text/utf8.h"

namespace conversed::api {

Value or_null(const std::string& text) {
  return text.empty() ? Value(nullptr) : Value(text);
}

namespace {

Value page_members(const ListPage& page) {
  return {{"total", page.total},
          {"nextCursor", or_null(page.next_cursor)},
          {"previousCursor", or_null(page.previous_cursor)}};
}

Value json_value(const Document& document) {
  const bool whole = !document.list || document.list->form.json == ListForm::Json::bare_array;
  if (whole) return document.value;
  Value object{{"items", document.value}};
  object.update(page_members(*document.list));
  return object;
}

// JSON Hypertext Application Language: the object with `_links`. A list's items are embedded.
Value hal_value(const Document& document) {
  Value links;
  links["self"] = {{"href", document.links.self}};
  if (!document.links.next.empty()) links["next"] = {{"href", document.links.next}};
  if (!document.links.previous.empty()) links["prev"] = {{"href", document.links.previous}};
  Value hal{{"_links", std::move(links)}};
  if (!document.list) {
    hal.update(document.value);
    return hal;
  }
  hal.update(page_members(*document.list));
  hal["_embedded"] = {{"items", document.value}};
  return hal;
}

// ---- CSV

std::string cell_text(const Value& value) {
  if (value.is_null()) return {};
  if (value.is_string()) return value.get<std::string>();
  return model::json_text(value);
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
  // Most readers skip an empty line, so it becomes a quoted empty cell.
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

// ---- XML

constexpr char32_t replacement = 0xFFFD;

// The production Char of XML 1.0.
bool is_allowed(char32_t c) {
  return c == 0x9 || c == 0xA || c == 0xD ||
         (c >= 0x20 && c != 0xFFFE && c != 0xFFFF && (c < 0xD800 || c > 0xDFFF));
}

// The characters of names that all parsers accept. Widespread parsers follow XML 1.0's fourth
// edition, which knows far fewer letters than the fifth. The colon is reserved for namespaces.
bool may_begin_name(char32_t c) {
  return (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') || c == '_';
}

bool may_continue_name(char32_t c) {
  return may_begin_name(c) || (c >= '0' && c <= '9') || c == '-' || c == '.';
}

void append_escaped_name(std::string& out, char32_t c) {
  std::array<char, 16> text{};
  const int length = std::snprintf(text.data(), text.size(), "_x%04X_", static_cast<unsigned>(c));
  out.append(text.data(), static_cast<std::size_t>(length));
}

std::string element_name(std::string_view member) {
  if (member.empty()) return "_";
  std::string name;
  for (std::size_t at = 0; at < member.size();) {
    const auto [c, bytes] = text::decode(member, at);
    at += bytes;
    const bool ambiguous = c == '_' && member.substr(at).starts_with('x');
    const bool fits = name.empty() ? may_begin_name(c) : may_continue_name(c);
    if (fits && !ambiguous) {
      name += static_cast<char>(c);
    } else {
      append_escaped_name(name, c);
    }
  }
  return name;
}

void append_text(std::string& out, std::string_view text) {
  for (std::size_t at = 0; at < text.size();) {
    const auto [c, bytes] = text::decode(text, at);
    at += bytes;
    if (const auto entity = text::entity_of(c); !entity.empty()) {
      out += entity;
    } else if (c == '\r') {
      out += "&#13;";  // parsers read a bare one as a line feed
    } else {
      text::append_code(out, is_allowed(c) ? c : replacement);
    }
  }
}

void append_members(std::string& out, const Value& object);

// Recurses as deep as the value nests. The JSON parser bounds that depth.
void append_element(std::string& out, const std::string& name, const Value& value) {
  if (value.is_null()) {
    out.append("<").append(name).append(" xsi:nil=\"true\"/>");
    return;
  }
  out.append("<").append(name).append(">");
  if (value.is_object()) {
    append_members(out, value);
  } else if (value.is_array()) {
    for (const auto& each : value) append_element(out, "item", each);
  } else if (value.is_string()) {
    append_text(out, value.get_ref<const std::string&>());
  } else {
    out += model::json_text(value);
  }
  out.append("</").append(name).append(">");
}

void append_members(std::string& out, const Value& object) {
  for (const auto& [member, value] : object.items()) {
    const std::string name = element_name(member);
    if (!value.is_array()) {
      append_element(out, name, value);
      continue;
    }
    for (const auto& each : value) append_element(out, name, each);
  }
}

void append_items(std::string& out, const Document& document) {
  const std::string item(document.list->form.item);
  for (const auto& each : document.value) append_element(out, item, each);
}

std::string to_xml(const Document& document) {
  std::string out = R"(<?xml version="1.0" encoding="UTF-8"?>)";
  const std::string root(document.name);
  out.append("\n<").append(root);
  out.append(R"( xmlns:xsi="http://www.w3.org/2001/XMLSchema-instance">)");
  if (!document.list) {
    append_members(out, document.value);
  } else if (document.list->form.json == ListForm::Json::bare_array) {
    append_items(out, document);
  } else {
    out += "<items>";
    append_items(out, document);
    out += "</items>";
    append_members(out, page_members(*document.list));
  }
  out.append("</").append(root).append(">\n");
  return out;
}

}  // namespace

std::string write(const Document& document, MediaType type) {
  switch (type) {
    case MediaType::json:
      break;
    case MediaType::hal:
      return model::json_text(hal_value(document));
    case MediaType::xml:
    case MediaType::text_xml:
      return to_xml(document);
    case MediaType::csv:
      return to_csv(document);
  }
  return model::json_text(json_value(document));
}

}  // namespace conversed::api
