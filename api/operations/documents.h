#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "api/http/http.h"
#include "api/operation.h"
#include "api/representation/document.h"
#include "store/model/result.h"
#include "store/paging/page.h"

// Shared by the operations that answer with documents: representations, and pages of lists.
namespace conversed::api {

// The document in the representation that the request asks for. A list also says where it goes on,
// in the headers `Link`, `X-Next-Cursor`, `X-Previous-Cursor` and `X-Total-Count`. A document
// without links gets those of the request, whose path was `instance`.
[[nodiscard]] Response document_response(const Request& request, const std::string& instance,
                                         int status, Document document);

// What comes before "/v2.0/" in the path that the client used: "/new" or nothing.
[[nodiscard]] std::string base_of(std::string_view instance);

// `limit`, `skip`, `sort`, `next` and `previous` of a list, but for names of fields, which its
// store knows. Errors: `invalid_argument`.
[[nodiscard]] model::Result<store::PageRequest> read_page_request(const Request& request,
                                                                  model::Timestamp now);

// A page of a list, which `item_of` makes of its rows.
template <typename Row, typename ItemOf>
[[nodiscard]] Document page_document(store::Page<Row> page, std::string name, ListShape shape,
                                     ItemOf item_of) {
  shape.page = {.total = page.total,
                .next_cursor = std::move(page.next),
                .previous_cursor = std::move(page.previous)};
  Value items = Value::array();
  for (const Row& row : page.items) items.push_back(item_of(row));
  return {.name = std::move(name), .value = std::move(items), .list = std::move(shape)};
}

}  // namespace conversed::api
