#include "api/openapi/description.h"

#include <utility>

namespace conversed::api::openapi {

Parameter query_parameter(std::string_view name, std::string description, Schema schema,
                          Need need) {
  return {Parameter::In::query, name, std::move(description), std::move(schema), need};
}

Parameter header_parameter(std::string_view name, std::string description, Schema schema) {
  return {Parameter::In::header, name, std::move(description), std::move(schema), Need::optional};
}

std::vector<Content> json_content(Schema schema) {
  return {{"application/json", std::move(schema)}};
}

std::vector<Content> form_content(Schema schema) {
  // Unknown ones are ignored, but none may be there twice (RFC 6749, section 3.2).
  schema["patternProperties"] = {{"", form_text()}};
  schema["propertyNames"] = form_text();
  return {{"application/x-www-form-urlencoded", std::move(schema)}};
}

std::vector<int> specified_errors() {
  return {400, 401, 402, 403, 404, 405, 409, 413, 500, 501, 502, 503, 504};
}

}  // namespace conversed::api::openapi
