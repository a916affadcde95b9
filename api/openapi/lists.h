// What the document says of answers that come in several representations, and of lists.
#pragma once

#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/openapi/description.h"

namespace conversed::api::openapi {

// An object as JSON, HAL, XML with this root element, and CSV.
[[nodiscard]] std::vector<Content> representations(std::string_view root, const Schema& schema);

// `limit`, `skip`, `sort` by these fields, `next` and `previous`.
[[nodiscard]] std::vector<Parameter> page_parameters(std::span<const std::string_view> fields);

// A page of a list of that form; `operation` is the list's own, for its next page.
[[nodiscard]] Answer list_answer(std::string_view operation, std::string description,
                                 const ListForm& form, const Schema& item);

// The lists below /management: `limit` and `after`, which is the `next` of the page before.
[[nodiscard]] std::vector<Parameter> row_parameters();
[[nodiscard]] Schema row_page(Schema item);
// {"items": [...]}
[[nodiscard]] Schema items_of(Schema item);

}  // namespace conversed::api::openapi
