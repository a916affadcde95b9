#include "api/representation/xml.h"

#include <array>
#include <cstdio>
#include <string_view>

#include "store/text/utf8.h"

namespace conversed::api {
namespace {

constexpr std::string_view replacement = "\xEF\xBF\xBD";  // U+FFFD

// Takes the next character off valid UTF-8.
char32_t next_character(std::string_view& text) {
  const auto byte = [&](std::size_t i) {
    return static_cast<char32_t>(static_cast<unsigned char>(text[i]));
  };
  const char32_t first = byte(0);
  if (first < 0x80) {
    text.remove_prefix(1);
    return first;
  }
  const std::size_t length = first < 0xE0 ? 2 : first < 0xF0 ? 3 : 4;
  char32_t character = first & (0xFFU >> (length + 1));
  for (std::size_t i = 1; i < length; ++i) character = (character << 6) | (byte(i) & 0x3F);
  text.remove_prefix(length);
  return character;
}

// The production Char of XML 1.0.
bool is_allowed(char32_t c) {
  return c == 0x9 || c == 0xA || c == 0xD || (c >= 0x20 && c != 0xFFFE && c != 0xFFFF);
}

// Of the characters of names those that all parsers take: widespread ones go by XML 1.0's fourth
// edition, which knows far fewer letters than the fifth. The colon belongs to namespaces.
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

std::string utf8_only(std::string_view text) {
  if (text::is_utf8(text)) return std::string(text);
  std::string cleaned;
  for (const char c : text) {
    if (static_cast<unsigned char>(c) < 0x80) {
      cleaned += c;
    } else {
      cleaned += replacement;
    }
  }
  return cleaned;
}

std::string element_name(std::string_view member) {
  if (member.empty()) return "_";
  const std::string valid = utf8_only(member);
  std::string name;
  std::string_view rest = valid;
  while (!rest.empty()) {
    const std::string_view before = rest;
    const char32_t c = next_character(rest);
    const bool ambiguous = c == '_' && rest.starts_with('x');
    const bool fits = name.empty() ? may_begin_name(c) : may_continue_name(c);
    if (fits && !ambiguous) {
      name.append(before.substr(0, before.size() - rest.size()));
    } else {
      append_escaped_name(name, c);
    }
  }
  return name;
}

void append_text(std::string& out, std::string_view text) {
  const std::string valid = utf8_only(text);
  std::string_view rest = valid;
  while (!rest.empty()) {
    const std::string_view before = rest;
    const char32_t c = next_character(rest);
    if (c == '&') {
      out += "&amp;";
    } else if (c == '<') {
      out += "&lt;";
    } else if (c == '>') {
      out += "&gt;";
    } else if (c == '\r') {
      out += "&#13;";  // parsers read a bare one as a line feed
    } else if (!is_allowed(c)) {
      out += replacement;
    } else {
      out.append(before.substr(0, before.size() - rest.size()));
    }
  }
}

void append_members(std::string& out, const Value& object);

// Elements nest as deep as the value does, which is bounded where JSON comes in.
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
    out += to_text(value);
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

}  // namespace

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
    const PageInfo& page = document.list->page;
    out += "<items>";
    append_items(out, document);
    out += "</items>";
    append_members(out, {{"total", page.total},
                         {"nextCursor", or_null(page.next_cursor)},
                         {"previousCursor", or_null(page.previous_cursor)}});
  }
  out.append("</").append(root).append(">\n");
  return out;
}

}  // namespace conversed::api
