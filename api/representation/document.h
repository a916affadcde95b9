// An answer as values, and its bytes in each representation.
#pragma once

#include <chrono>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/representation/media_type.h"
#include "store/model/clock.h"

namespace conversed::api {

// Members keep the order that they were added in: it is that of XML's elements and CSV's columns.
using Value = nlohmann::ordered_json;

// Where else to go from an answer, for HAL and `Link`; empty: nowhere.
struct Links {
  std::string self;
  std::string next{};
  std::string previous{};
};

struct ListForm {
  // What JSON makes of it: {"items", "total", "nextCursor", "previousCursor"}, or the items alone.
  enum class Json : std::uint8_t { object, bare_array };
  Json json = Json::object;
  std::string_view root;  // XML's root element
  std::string_view item;  // XML's element of one item
};

// What a page of a list has besides its items.
struct ListPage {
  ListForm form;
  std::vector<std::string_view> columns;  // CSV's, which has them without any item, too
  std::int64_t total = 0;                 // items of all pages
  std::string next_cursor;                // empty: there is no such page
  std::string previous_cursor;
};

struct Document {
  std::string_view name;           // XML's root element
  Value value;                     // an object; of a list the array of its items
  std::optional<ListPage> list{};  // nothing: one object
  Links links{};
};

// The body in that representation. Bytes that are not UTF-8 become replacement characters.
//
// CSV (RFC 4180): a header row, then a row for each item, or one row for an object; nested values
// as JSON text, null as an empty cell. A cell that begins with `=`, `+`, `-`, `@` or a tab gets a
// `'` before it, since spreadsheets would run it as a formula. Totals and cursors are left out.
//
// XML 1.0: members become elements in their order, arrays repeated elements (an array within an
// array: elements `item`), null an empty element with `xsi:nil`. A character that XML forbids
// becomes U+FFFD in text, and _xHHHH_ in names, which keep ASCII's letters, digits, `_`, `-` and
// `.`; an underscore that looks like the beginning of an escape is escaped, too.
[[nodiscard]] std::string write(const Document& document, MediaType type);

// Every time in the API is in Unix seconds.
[[nodiscard]] inline std::int64_t unix_seconds(model::Timestamp time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

[[nodiscard]] Value or_null(const std::string& text);

}  // namespace conversed::api
