#pragma once

#include <string>

#include "api/http/http.h"
#include "api/openapi/shape.h"
#include "api/operation.h"
#include "api/representation/document.h"
#include "store/model/result.h"
#include "store/paging/page.h"

// Helpers of operations that answer with documents: representations, and pages of lists.
namespace conversed::api {

// The document in the representation that the request asks for. A list also gets the headers
// `Link`, `X-Next-Cursor`, `X-Previous-Cursor` and `X-Total-Count`. A document without links gets
// the request's own, with the path `instance`.
[[nodiscard]] Response document_response(const Request& request, const std::string& instance,
                                         int status, Document document);

// `limit`, `skip`, `sort`, `next` and `previous` of a list. The list's store checks the names of
// fields. Errors: `invalid_argument`.
[[nodiscard]] model::Result<store::PageRequest> read_page_request(const Request& request,
                                                                  model::Timestamp now);

// A page of a list. The shape makes its items of the rows.
template <typename Row>
[[nodiscard]] Response page_response(const Call& call, const ListForm& form, store::Page<Row> page,
                                     const openapi::Shape<Row>& shape) {
  Value items = Value::array();
  for (const Row& row : page.items) items.push_back(shape(row));
  return document_response(call.request, call.exchange.instance, status::ok,
                           {.name = form.root,
                            .value = std::move(items),
                            .list = ListPage{.form = form,
                                             .columns = shape.names(),
                                             .total = page.total,
                                             .next_cursor = std::move(page.next),
                                             .previous_cursor = std::move(page.previous)}});
}

}  // namespace conversed::api
