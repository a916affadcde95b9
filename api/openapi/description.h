// Descriptions of operations for the OpenAPI document. An operation's row points to a function that
// makes its description and stands beside the handler.
#pragma once

#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "api/openapi/schemas.h"
#include "api/representation/input.h"

namespace conversed::api::openapi {

// A parameter of the query or a header. Path parameters follow from the path (document.cc).
struct Parameter {
  enum class In : std::uint8_t { path, query, header };
  In in = In::query;
  std::string_view name;
  std::string description;
  Schema schema;
  Need need = Need::optional;
};

[[nodiscard]] Parameter query_parameter(std::string_view name, std::string description,
                                        Schema schema, Need need = Need::optional);
[[nodiscard]] Parameter header_parameter(std::string_view name, std::string description,
                                         Schema schema);

struct Content {
  std::string_view type;  // "application/json"
  Schema schema;
};

[[nodiscard]] std::vector<Content> json_content(Schema schema);
[[nodiscard]] std::vector<Content> form_content(Schema schema);

struct Header {
  std::string_view name;
  std::string_view description;
  Schema schema;
  Need need = Need::required;
};

// A link from a value of an answer to the parameter `parameter` of `operation`.
struct Link {
  std::string_view name;
  std::string_view operation;
  std::string_view parameter;
  std::string_view value;  // a runtime expression: "$response.body#/_id"
};

// An answer without an error.
struct Success {
  int status = 200;
  std::string description;
  std::vector<Content> content = {};  // one for each media type; empty: no body
  std::vector<Header> headers = {};
  std::vector<Link> links = {};
};

struct Description {
  std::string summary;
  std::string details = {};
  std::vector<Parameter> parameters = {};
  std::vector<Content> body = {};  // empty: no body is read
  std::vector<Success> answers;
  // Error statuses of this operation, in addition to the statuses that follow from its credential
  // and its path, and to the common ones (document.cc).
  std::vector<int> errors = {};
  bool has_error_page = false;  // for a browser, which asks for HTML
};

// The thirteen errors that the API's specification lists for most of its operations.
[[nodiscard]] std::vector<int> specified_errors();

// ---- Answers and lists

// An answer in JSON, and an answer without a body (204).
[[nodiscard]] Success json_answer(std::string description, Schema schema, int status = 200);
[[nodiscard]] Success empty_answer(std::string description);

// An object in its representations: JSON, HAL, XML with this root element, and CSV.
[[nodiscard]] std::vector<Content> representations(std::string_view root, const Schema& schema);

// `limit`, `skip`, `sort` by one of these fields, `next` and `previous`.
[[nodiscard]] std::vector<Parameter> page_parameters(std::span<const std::string_view> fields);

// A page of a list with these parameters. `operation` is the list's id, for the next page's link.
[[nodiscard]] Success list_answer(std::string_view operation, std::string description,
                                  const ListForm& form, const Schema& item);

// Parameters of lists below /management: `limit`, and `after`, the `next` of the page before.
[[nodiscard]] std::vector<Parameter> row_parameters(std::vector<Parameter> more = {});
[[nodiscard]] Parameter page_limit();
[[nodiscard]] Schema row_page(Schema item);
// {"items": [...]}
[[nodiscard]] Schema items_of(Schema item);

// ---- Conversations

[[nodiscard]] Schema message_schema(UrlTokenIn place);
// One output of a session, as output_item shows it.
[[nodiscard]] Schema output_schema();
// {"_id"} of the accepted message.
[[nodiscard]] Schema accepted_schema();

[[nodiscard]] Parameter idempotency_parameter();
// `projectId` of lists below /management.
[[nodiscard]] Parameter project_parameter();
// `wait` delays the answer until `what` happens.
[[nodiscard]] Parameter wait_until(std::string_view what);

[[nodiscard]] Header inject_id_header();
// The plain text of inject and notify.
[[nodiscard]] Success accepted_answer(std::string_view says);

}  // namespace conversed::api::openapi
