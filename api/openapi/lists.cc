#include "api/openapi/lists.h"

#include <utility>

#include "api/representation/query.h"

namespace conversed::api::openapi {
namespace {

constexpr std::string_view json_type = "application/json";
constexpr std::string_view hal_type = "application/hal+json";
constexpr std::string_view xml_types[] = {"application/xml", "text/xml"};
constexpr std::string_view csv_type = "text/csv";

Schema hal_links() {
  const Schema link = object({{"href", text(1)}});
  return named(
      "HalLinks",
      object({{"self", link}, {"next", link, Need::optional}, {"prev", link, Need::optional}}));
}

// The schema with what XML calls it.
Schema element(std::string_view name, Schema schema) {
  schema["xml"] = {{"name", name}};
  return schema;
}

Schema wrapped_list(std::string_view name, std::string_view item_element, const Schema& item) {
  Schema list = list_of({{"allOf", Value::array({item})}, {"xml", {{"name", item_element}}}});
  list["xml"] = {{"name", name}, {"wrapped", true}};
  return list;
}

std::vector<Content> contents(Schema json, Schema hal, const Schema& xml,
                              std::string_view csv_says) {
  std::vector<Content> all{{json_type, std::move(json)}, {hal_type, std::move(hal)}};
  for (const auto type : xml_types) all.push_back({type, xml});
  all.push_back({csv_type, described(csv_says, text())});
  return all;
}

Schema cursor_or_null() {
  return nullable(id());
}

Schema page(Property items) {
  return object({std::move(items),
                 {"total", described("Of the items of all pages.", integer(0))},
                 {"nextCursor", cursor_or_null()},
                 {"previousCursor", cursor_or_null()}});
}

Schema hal_page(const Schema& item) {
  Schema schema = page({"_links", hal_links()});
  schema["properties"]["_embedded"] = object({{"items", list_of(item)}});
  schema["required"].push_back("_embedded");
  return schema;
}

std::vector<Header> list_headers() {
  return {{"X-Total-Count", "How many items all pages have.", integer(0)},
          {"X-Next-Cursor", "For `next`.", id(), Need::optional},
          {"X-Previous-Cursor", "For `previous`.", id(), Need::optional},
          {"Link", "The next and the previous page (RFC 8288).", text(1), Need::optional}};
}

// "_id|order"
std::string joined(std::span<const std::string_view> fields) {
  std::string names;
  for (const auto field : fields) {
    if (!names.empty()) names += '|';
    names += field;
  }
  return names;
}

}  // namespace

std::vector<Content> representations(std::string_view root, const Schema& schema) {
  Schema hal{
      {"allOf", Value::array({schema, object({{"_links", hal_links()}})})},
  };
  Schema xml{{"allOf", Value::array({schema})}};
  return contents(schema, std::move(hal), element(root, std::move(xml)),
                  "A row of names and a row of values (RFC 4180).");
}

std::vector<Parameter> page_parameters(std::span<const std::string_view> fields) {
  const std::string key = "(" + joined(fields) + "):(asc|desc)";
  Schema sort = text_like("^" + key + "(," + key + ")*$");
  sort["minLength"] = 1;
  return {query_parameter("limit", "How many items a page has.",
                          with_default(default_page_limit, integer(1, max_page_limit))),
          query_parameter("skip", "How many items to pass over.", with_default(0, integer(0))),
          query_parameter("sort",
                          "`field:direction`, several joined by commas. A cursor brings its own; "
                          "given again it has to be the same.",
                          std::move(sort)),
          query_parameter("next", "The `nextCursor` of an earlier answer, good for an hour.", id()),
          query_parameter("previous", "The `previousCursor` of an earlier answer.", id())};
}

Answer list_answer(std::string_view operation, std::string description, const ListForm& form,
                   const Schema& item) {
  const bool bare = form.json == ListForm::Json::bare_array;
  Schema json = bare ? list_of(item) : page({"items", list_of(item)});
  Schema wrapped = wrapped_list(bare ? form.root : "items", form.item, item);
  Schema xml = bare ? std::move(wrapped) : element(form.root, page({"items", std::move(wrapped)}));
  return {.description = std::move(description),
          .content = contents(std::move(json), hal_page(item), xml,
                              "A row of names, then one of values for each item (RFC 4180)."),
          .headers = list_headers(),
          .links = {{"next", operation, "next", "$response.header.X-Next-Cursor"},
                    {"previous", operation, "previous", "$response.header.X-Previous-Cursor"}}};
}

std::vector<Parameter> row_parameters() {
  return {query_parameter("limit", "How many items a page has.",
                          with_default(default_page_limit, integer(1, max_page_limit))),
          query_parameter("after", "The `next` of the page before.", with_default(0, integer(0)))};
}

Schema row_page(Schema item) {
  return object({{"items", list_of(std::move(item))},
                 {"next", described("For `after`; null on the last page.", nullable(integer(0)))}});
}

Schema items_of(Schema item) {
  return object({{"items", list_of(std::move(item))}});
}

}  // namespace conversed::api::openapi
