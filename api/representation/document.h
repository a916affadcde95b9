// Writes an answer's values as bytes of each representation.
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

// Members keep their order, which is the order of XML's elements and CSV's columns.
using Value = nlohmann::ordered_json;

// Links of an answer, for HAL and `Link`. Empty: no link.
struct Links {
  std::string self;
  std::string next{};
  std::string previous{};
};

struct ListForm {
  // The JSON of a list: {"items", "total", "nextCursor", "previousCursor"}, or the items alone.
  enum class Json : std::uint8_t { object, bare_array };
  Json json = Json::object;
  std::string_view root;  // XML's root element
  std::string_view item;  // XML's element of one item
};

// The parts of a list's page besides its items.
struct ListPage {
  ListForm form;
  std::vector<std::string_view> columns;  // CSV's columns, also for an empty page
  std::int64_t total = 0;                 // number of items on all pages
  std::string next_cursor;                // empty: no such page
  std::string previous_cursor;
};

struct Document {
  std::string_view name;           // XML's root element
  Value value;                     // an object, or a list's array of items
  std::optional<ListPage> list{};  // nothing: a single object
  Links links{};
};

// The body in a representation. Bytes that are not UTF-8 become replacement characters.
//
// CSV (RFC 4180): a header row, then a row for each item, or one row for an object. Nested values
// are JSON text, and null is an empty cell. A cell that begins with `=`, `+`, `-`, `@` or a tab
// gets a `'` before it, because spreadsheets would run it as a formula. Totals and cursors are left
// out.
//
// XML 1.0: members become elements in their order, arrays repeated elements (an array within an
// array: elements `item`), null an empty element with `xsi:nil`. A character that XML forbids
// becomes U+FFFD in text and _xHHHH_ in names. Names keep ASCII's letters, digits, `_`, `-` and
// `.`. An underscore that looks like the beginning of an escape is escaped, too.
[[nodiscard]] std::string write(const Document& document, MediaType type);

// Times in the API are Unix seconds.
[[nodiscard]] inline std::int64_t unix_seconds(model::Timestamp time) {
  return std::chrono::floor<std::chrono::seconds>(time).time_since_epoch().count();
}

[[nodiscard]] Value or_null(const std::string& text);

}  // namespace conversed::api
