#include "api/openapi/description.h"

#include <utility>

#include "store/model/ids.h"
#include "store/text/joined.h"

namespace conversed::api::openapi {

Parameter query_parameter(std::string_view name, std::string description, Schema schema,
                          Need need) {
  return {Parameter::In::query, name, std::move(description), std::move(schema), need};
}

Parameter header_parameter(std::string_view name, std::string description, Schema schema) {
  return {Parameter::In::header, name, std::move(description), std::move(schema)};
}

std::vector<Content> json_content(Schema schema) {
  return {{"application/json", std::move(schema)}};
}

std::vector<Content> form_content(Schema schema) {
  // Unknown parameters are ignored, but no parameter may be repeated (RFC 6749, section 3.2).
  schema["patternProperties"] = {{"", form_text()}};
  schema["propertyNames"] = form_text();
  return {{"application/x-www-form-urlencoded", std::move(schema)}};
}

std::vector<int> specified_errors() {
  return {400, 401, 402, 403, 404, 405, 409, 413, 500, 501, 502, 503, 504};
}

Success json_answer(std::string description, Schema schema, int status) {
  return {.status = status,
          .description = std::move(description),
          .content = json_content(std::move(schema))};
}

Success empty_answer(std::string description) {
  return {.status = 204, .description = std::move(description)};
}

// ---- Answers in several representations, and lists

namespace {

Schema hal_links() {
  const Schema link = object({{"href", text(1)}});
  return named(
      "HalLinks",
      object({{"self", link}, {"next", link, Need::optional}, {"prev", link, Need::optional}}));
}

// The schema with its name in XML.
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
  return {{"application/json", std::move(json)},
          {"application/hal+json", std::move(hal)},
          {"application/xml", xml},
          {"text/xml", xml},
          {"text/csv", described(csv_says, text())}};
}

Schema page(Property items) {
  return object({std::move(items),
                 {"total", described("The number of items on all pages.", integer(0))},
                 {"nextCursor", nullable_id()},
                 {"previousCursor", nullable_id()}});
}

Schema hal_page(const Schema& item) {
  return with_members(page({"_links", hal_links()}),
                      {{"_embedded", object({{"items", list_of(item)}})}});
}

std::vector<Header> list_headers() {
  return {{"X-Total-Count", "The number of items on all pages.", integer(0)},
          {"X-Next-Cursor", "For `next`.", id(), Need::optional},
          {"X-Previous-Cursor", "For `previous`.", id(), Need::optional},
          {"Link", "The next and the previous page (RFC 8288).", text(1), Need::optional}};
}

}  // namespace

std::vector<Content> representations(std::string_view root, const Schema& schema) {
  Schema hal{{"allOf", Value::array({schema, object({{"_links", hal_links()}})})}};
  Schema xml{{"allOf", Value::array({schema})}};
  return contents(schema, std::move(hal), element(root, std::move(xml)),
                  "A row of names and a row of values (RFC 4180).");
}

std::vector<Parameter> page_parameters(std::span<const std::string_view> fields) {
  const std::string key = "(" + text::joined(fields, "|") + "):(asc|desc)";
  Schema sort = text_like("^" + key + "(," + key + ")*$");
  sort["minLength"] = 1;
  return {page_limit(),
          query_parameter("skip", "How many items to skip.", with_default(0, integer(0))),
          query_parameter("sort",
                          "`field:direction`, several joined by commas. A cursor includes its "
                          "sort; if you give it again, it has to be the same.",
                          std::move(sort)),
          query_parameter("next", "The `nextCursor` of an earlier answer, good for an hour.", id()),
          query_parameter("previous", "The `previousCursor` of an earlier answer.", id())};
}

Success list_answer(std::string_view operation, std::string description, const ListForm& form,
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

std::vector<Parameter> row_parameters(std::vector<Parameter> more) {
  std::vector<Parameter> parameters{
      page_limit(),
      query_parameter("after", "The `next` of the page before.", with_default(0, integer(0)))};
  parameters.insert(parameters.end(), more.begin(), more.end());
  return parameters;
}

Parameter page_limit() {
  return query_parameter("limit", "How many items a page has.",
                         with_default(default_page_limit, integer(1, max_page_limit)));
}

Schema row_page(Schema item) {
  return object(
      {{"items", list_of(std::move(item))},
       {"next", described("Give it as `after`; null on the last page.", nullable(integer(0)))}});
}

Schema items_of(Schema item) {
  return object({{"items", list_of(std::move(item))}});
}

// ---- Conversations

Schema message_schema(UrlTokenIn place) {
  Schema schema = object(
      {{"userId", conversation_name()},
       {"sessionId", conversation_name()},
       {"text", described("The text of the message.", nullable(text())), Need::optional},
       {"data", described("Data of the message.", nullable(free_object())), Need::optional}});
  if (place == UrlTokenIn::body)
    schema = with_members(std::move(schema), {{"URLToken", url_token()}});
  schema = with_condition(std::move(schema), has_text("text"), anything(),
                          object({{"data", free_object()}}));
  Value example{{"userId", "bob"},
                {"sessionId", "s1"},
                {"text", "Hello"},
                {"data", {{"event", "packed"}, {"orderId", "A-1"}}}};
  if (place == UrlTokenIn::body) example["URLToken"] = std::string(model::url_token_length, 'a');
  schema = with_example(std::move(example), std::move(schema));
  return named(
      place == UrlTokenIn::body ? "Message" : "MessageToEndpoint",
      described("A message. It needs a `text` that is not empty, or `data`.", std::move(schema)));
}

Schema output_schema() {
  return named("Output", object({{"seq", integer(1)},
                                 {"text", text()},
                                 {"data", anything()},
                                 {"traceId", text()},
                                 {"source", text(1)},
                                 {"createdAt", unix_time()}}));
}

Schema accepted_schema() {
  return named("Accepted", object({{"_id", id()}}));
}

Parameter idempotency_parameter() {
  // Spaces around a header's value do not belong to the value.
  Schema schema = text_like("^[!-~]([ -~]{0,253}[!-~])?$");
  return header_parameter("Idempotency-Key",
                          "Makes a repeat safe: under the same key the same bytes of the body "
                          "have their effects once, and other bytes are a 409.",
                          std::move(schema));
}

Parameter project_parameter() {
  return query_parameter("projectId", "The project; required unless you see exactly one.", id());
}

Parameter wait_until(std::string_view what) {
  return query_parameter("wait", "How many seconds to wait for " + std::string(what) + " at most.",
                         with_default(0, integer(0, max_wait_seconds)));
}

Header inject_id_header() {
  return {"X-Inject-Id", "The id of the accepted message.", id()};
}

Success accepted_answer(std::string_view says) {
  return {.description = "The message is durable.",
          .content = {{"text/plain", constant(says)}},
          .headers = {inject_id_header()}};
}

}  // namespace conversed::api::openapi
