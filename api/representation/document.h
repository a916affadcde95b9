// What an operation answers with, before it is known in which representation.
#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/representation/media_type.h"

namespace conversed::api {

// Members keep the order that they were added in: it is that of XML's elements and CSV's columns.
using Value = nlohmann::ordered_json;

// What a page of a list has besides its items. Empty cursors: there is no such page.
struct PageInfo {
  std::int64_t total = 0;
  std::string next_cursor;
  std::string previous_cursor;
};

// Where else to go from an answer, for HAL and `Link`; empty: nowhere.
struct Links {
  std::string self;
  std::string next;
  std::string previous;
};

// How a list looks.
struct ListForm {
  // What JSON makes of it: {"items", "total", "nextCursor", "previousCursor"}, or the items alone.
  enum class Json : std::uint8_t { object, bare_array };
  Json json = Json::object;
  std::string_view root;  // XML's root element
  std::string_view item;  // XML's element of one item
};

// A page of a list.
struct ListPage {
  ListForm form;
  std::vector<std::string_view> columns;  // CSV's, which has them without any item, too
  PageInfo page{};
};

struct Document {
  std::string_view name;         // XML's root element
  Value value;                   // an object; of a list the array of its items
  std::optional<ListPage> list;  // nothing: one object
  Links links{};
};

// The body in that representation. Bytes that are not UTF-8 become replacement characters.
[[nodiscard]] std::string write(const Document& document, MediaType type);

// The text; null for an empty one.
[[nodiscard]] Value or_null(const std::string& text);

// JSON, as `write` has it.
[[nodiscard]] std::string to_text(const Value& value);

}  // namespace conversed::api
