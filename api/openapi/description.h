// What the OpenAPI document says of an operation: its row in the table points to a function that
// makes it, which stands beside what it describes.
#pragma once

#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "api/openapi/schemas.h"

namespace conversed::api::openapi {

// A parameter of the query or a header. Those of the path follow from it (document.cc).
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

// A body in one media type.
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

// Where a value of an answer leads: it is the parameter `parameter` of `operation`.
struct Link {
  std::string_view name;
  std::string_view operation;
  std::string_view parameter;
  std::string_view value;  // a runtime expression: "$response.body#/_id"
};

// An answer that is no error.
struct Answer {
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
  std::vector<Content> body = {};  // empty: none is read
  std::vector<Answer> answers;
  // Statuses of 400 and above that this operation answers with, beside those that its credential
  // brings and those that every request may be refused with (document.cc).
  std::vector<int> errors = {};
  bool has_error_page = false;  // for a browser, which asks for HTML
};

// The thirteen that the API's specification has for most of its operations.
[[nodiscard]] std::vector<int> specified_errors();

}  // namespace conversed::api::openapi
