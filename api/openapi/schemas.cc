#include "api/openapi/schemas.h"

#include <utility>

#include "api/representation/input.h"
#include "store/text/ascii.h"

namespace conversed::api::openapi {

Schema text(std::size_t min, std::optional<std::size_t> max) {
  Schema schema{{"type", "string"}};
  if (min > 0) schema["minLength"] = min;
  if (max) schema["maxLength"] = *max;
  return schema;
}

Schema form_text(std::size_t min) {
  Schema schema = text_like("^[^\\u0000]*$");
  if (min > 0) schema["minLength"] = min;
  return schema;
}

Schema text_like(std::string_view expression) {
  return {{"type", "string"}, {"pattern", expression}};
}

Schema one_of(std::span<const std::string_view> values) {
  Schema schema{{"type", "string"}, {"enum", Value::array()}};
  for (const auto value : values) schema["enum"].push_back(value);
  return schema;
}

Schema one_of(std::initializer_list<std::string_view> values) {
  return one_of(std::span(values.begin(), values.size()));
}

// Some code generators need the type beside the value.
Schema constant(Value value) {
  Schema schema = Schema::object();
  if (value.is_string()) schema["type"] = "string";
  schema["const"] = std::move(value);
  return schema;
}

Schema integer(std::int64_t min, std::int64_t max) {
  Schema schema{{"type", "integer"}, {"format", "int64"}, {"minimum", min}};
  if (max != std::numeric_limits<std::int64_t>::max()) schema["maximum"] = max;
  return schema;
}

Schema boolean() {
  return {{"type", "boolean"}};
}

Schema anything() {
  return Schema::object();
}

Schema free_object() {
  return map_of(true);
}

Schema object(std::initializer_list<Property> properties) {
  return with_members({{"type", "object"}, {"properties", Schema::object()}}, properties);
}

Schema with_members(Schema schema, std::initializer_list<Property> properties) {
  for (const Property& each : properties) {
    schema["properties"][std::string(each.name)] = each.schema;
    if (each.need == Need::required) schema["required"].push_back(each.name);
  }
  return schema;
}

Schema map_of(Schema values) {
  return {{"type", "object"}, {"additionalProperties", std::move(values)}};
}

Schema list_of(Schema items, std::optional<std::size_t> max) {
  Schema schema{{"type", "array"}, {"items", std::move(items)}};
  if (max) schema["maxItems"] = *max;
  return schema;
}

Schema nullable(Schema schema) {
  const auto type = schema.find("type");
  const bool simple = type != schema.end() && type->is_string() && !schema.contains("enum") &&
                      !schema.contains(component_mark);
  if (!simple) return any_of({std::move(schema), {{"type", "null"}}});
  *type = Schema::array({*type, "null"});
  return schema;
}

Schema any_of(std::initializer_list<Schema> schemas) {
  Schema choices = Schema::array();
  for (const Schema& each : schemas) choices.push_back(each);
  return {{"anyOf", std::move(choices)}};
}

Schema with_condition(Schema schema, Schema condition, Schema then, Schema otherwise) {
  schema["if"] = std::move(condition);
  if (!then.empty()) schema["then"] = std::move(then);
  if (!otherwise.empty()) schema["else"] = std::move(otherwise);
  return schema;
}

Schema has_text(std::string_view name) {
  return object({{name, text(1)}});
}

Schema described(std::string_view description, Schema schema) {
  schema["description"] = description;
  return schema;
}

Schema with_default(Value value, Schema schema) {
  schema["default"] = std::move(value);
  return schema;
}

Schema with_example(Value value, Schema schema) {
  schema["examples"] = Schema::array();
  schema["examples"].push_back(std::move(value));
  return schema;
}

Schema named(std::string_view name, Schema schema) {
  schema[component_mark] = name;
  return schema;
}

Schema id() {
  return named("Id", described("An identifier.", text_like("^[a-z0-9]{24}$")));
}

// Not `nullable(id())`: some code generators refuse null for a choice of a component and null.
Schema nullable_id() {
  return nullable(text_like("^[a-z0-9]{24}$"));
}

Schema url_token() {
  return named("URLToken", described("The address part of an Endpoint: 64 hexadecimal digits.",
                                     text_like("^[0-9A-Fa-f]{64}$")));
}

Schema trace_id() {
  return described("A trace id (W3C Trace Context).", text_like("^[0-9a-f]{32}$"));
}

Schema unix_time() {
  return described("Unix time in seconds.", integer(0));
}

Schema email() {
  Schema schema = text_like(R"(^[^@,;<>\u0000-\u0020\u007f]+@[^@,;<>\u0000-\u0020\u007f]+$)");
  schema["maxLength"] = text::max_email_bytes;
  return described(
      "An e-mail address, of " + std::to_string(text::max_email_bytes) + " bytes in UTF-8 at most.",
      std::move(schema));
}

Schema bounded_bytes(std::size_t max_bytes) {
  return described("At most " + std::to_string(max_bytes) + " bytes in UTF-8.", text(1, max_bytes));
}

Schema conversation_name() {
  Schema schema = text_like(R"(^[^\u0000-\u001f\u007f-\u009f]+$)");
  schema["minLength"] = 1;
  schema["maxLength"] = max_name_bytes;
  return described(
      "Without control characters; at most " + std::to_string(max_name_bytes) + " bytes in UTF-8.",
      std::move(schema));
}

namespace {

Property problem_detail() {
  return {"detail", described("The cause, for people.", text())};
}

Schema problem_members() {
  return object(
      {{"type", described("The reason phrase of the status.", text(1))},
       {"title", text(1)},
       {"status", described("The status of the answer.", integer(400, 599))},
       problem_detail(),
       {"instance", described("The path of the request.", text())},
       {"code", described("The service's own code of the error.", integer(0))},
       {"traceId", trace_id()},
       {"details", described("Further values for programs; may be empty.", free_object())}});
}

}  // namespace

Schema problem() {
  return named("Problem", described("An error (RFC 7807).", problem_members()));
}

Schema not_found_problem() {
  return named("NotFoundProblem",
               described("The object does not exist, or you can't see it.",
                         with_members(problem_members(), {{"logLevel", text(1)}})));
}

Schema reduced_error() {
  return named("ReducedError",
               described("An error with fewer members.", object({{"status", integer(400, 599)},
                                                                 {"code", integer(0)},
                                                                 {"type", text(1)},
                                                                 problem_detail()})));
}

Schema oauth_error() {
  return named(
      "OAuthError",
      described("An error of OAuth 2.0 (RFC 6749, section 5.2).",
                with_members(problem_members(), {{"error", described("RFC 6749's code.", text(1))},
                                                 {"error_description", text()}})));
}

}  // namespace conversed::api::openapi
