#include "api/representation/document.h"

#include <utility>

#include "api/representation/csv.h"
#include "api/representation/xml.h"

namespace conversed::api {

Value or_null(const std::string& text) {
  return text.empty() ? Value(nullptr) : Value(text);
}

namespace {

Value listing(const Document& document) {
  const PageInfo& page = document.list->page;
  return {{"items", document.value},
          {"total", page.total},
          {"nextCursor", or_null(page.next_cursor)},
          {"previousCursor", or_null(page.previous_cursor)}};
}

Value json_value(const Document& document) {
  const bool whole = !document.list || document.list->form.json == ListForm::Json::bare_array;
  return whole ? document.value : listing(document);
}

// JSON Hypertext Application Language: the object with `_links`; the items of a list embedded.
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
  Value members = listing(document);
  Value items = std::move(members["items"]);
  members.erase("items");
  hal.update(members);
  hal["_embedded"] = {{"items", std::move(items)}};
  return hal;
}

}  // namespace

std::string to_text(const Value& value) {
  return value.dump(-1, ' ', false, Value::error_handler_t::replace);
}

std::string write(const Document& document, MediaType type) {
  switch (type) {
    case MediaType::json:
      break;
    case MediaType::hal:
      return to_text(hal_value(document));
    case MediaType::xml:
    case MediaType::text_xml:
      return to_xml(document);
    case MediaType::csv:
      return to_csv(document);
  }
  return to_text(json_value(document));
}

}  // namespace conversed::api
