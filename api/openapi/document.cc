#include "api/openapi/document.h"

#include <algorithm>
#include <cstdio>
#include <cstdlib>
#include <map>
#include <set>
#include <utility>

#include "api/http/error_reply.h"
#include "api/http/http_syntax.h"
#include "api/openapi/description.h"

namespace conversed::api::openapi {
namespace {

// The version of the interface, not of the program.
constexpr std::string_view interface_version = "2026.16.0";

constexpr std::string_view about =
    "Keeps conversations going: users talk with Flows, other systems push events into running "
    "conversations.\n\nEvery path is served with and without the base path. Errors are JSON "
    "(`application/problem+json`) for every `Accept`. Requests that are not valid HTTP/1.1 are "
    "refused with 400, 415, 417, 501 or 505. `HEAD` is answered where `GET` is, `OPTIONS` "
    "everywhere, and methods that are not listed below with 405. For 24 hours a repeated "
    "`Idempotency-Key` with the same body gets the answer of its first 2xx.";

// Statuses that every operation may answer with.
constexpr int common_errors[] = {400, 405, 408, 413, 414, 429, 431, 500, 503};
// The object in the path is missing or foreign.
constexpr int missing_object = 404;
// The store or the queue failed during a change, so its outcome is unknown.
constexpr int unknown_outcome = 504;
// Statuses of operations that require credentials.
constexpr int credential_errors[] = {401, 403};

[[noreturn]] void defect(std::string_view what, std::string_view where) {
  std::fprintf(stderr, "openapi: %.*s: %.*s\n", static_cast<int>(what.size()), what.data(),
               static_cast<int>(where.size()), where.data());
  std::abort();
}

// ---- Components

Value reference(std::string_view kind, std::string_view name) {
  return {{"$ref", "#/components/" + std::string(kind) + "/" + std::string(name)}};
}

// Keeps each named schema once and leaves references in its places.
class Components {
 public:
  [[nodiscard]] Value place(Value schema) {
    // The values of these keywords are not schemas.
    static const std::set<std::string, std::less<>> plain{"default", "const", "enum", "examples"};
    if (schema.is_array()) {
      for (auto& each : schema) each = place(std::move(each));
      return schema;
    }
    if (!schema.is_object()) return schema;
    for (auto& [name, member] : schema.items()) {
      if (!plain.contains(name)) member = place(std::move(member));
    }
    return keep(std::move(schema));
  }
  [[nodiscard]] const Value& schemas() const { return schemas_; }

 private:
  Value keep(Value schema) {
    const auto mark = schema.find(component_mark);
    if (mark == schema.end() || !mark->is_string()) return schema;
    const auto name = mark->get<std::string>();
    schema.erase(component_mark);
    const auto known = schemas_.find(name);
    if (known != schemas_.end() && *known != schema) defect("two schemas have one name", name);
    schemas_[name] = std::move(schema);
    return reference("schemas", name);
  }

  Value schemas_ = Value::object();
};

Value header_object(std::string_view description, Value schema, Need need) {
  return {{"description", description},
          {"required", need == Need::required},
          {"schema", std::move(schema)}};
}

// The headers of answers with this status.
Value headers_of(int status) {
  Value headers{{"X-Trace-Id", reference("headers", "TraceId")},
                {"traceparent", reference("headers", "Traceparent")}};
  if (status == 401) headers["WWW-Authenticate"] = reference("headers", "WWWAuthenticate");
  if (status == 405) headers["Allow"] = reference("headers", "Allow");
  if (status == 429 || status == 503) headers["Retry-After"] = reference("headers", "RetryAfter");
  return headers;
}

Value common_headers() {
  return {{"TraceId",
           header_object("The trace of the request. Quote it in questions about the request.",
                         trace_id(), Need::required)},
          {"Traceparent",
           header_object("W3C Trace Context: the request's trace, and the span of its handling.",
                         text_like("^00-[0-9a-f]{32}-[0-9a-f]{16}-[0-9a-f]{2}$"), Need::required)},
          {"WWWAuthenticate", header_object("The credentials to send.", text(1), Need::required)},
          {"Allow", header_object("The methods of the path.", text(1), Need::required)},
          {"RetryAfter",
           header_object("When to try again, as an HTTP date.", text(1), Need::required)}};
}

// "NotFound"
std::string response_name(int status) {
  std::string name(reason_phrase(status));
  std::erase(name, ' ');
  return name;
}

Value content_object(const std::vector<Content>& content, Components& components) {
  Value object = Value::object();
  for (const auto& [type, schema] : content) {
    object[std::string(type)] = {{"schema", components.place(schema)}};
  }
  return object;
}

Value error_response_object(int status, const std::vector<Content>& content,
                            Components& components) {
  return {{"description", reason_phrase(status)},
          {"headers", headers_of(status)},
          {"content", content_object(content, components)}};
}

Content problem_content(int status) {
  return {"application/problem+json", status == 404 ? not_found_problem() : problem()};
}

// ---- One operation

Value parameter_object(const Parameter& parameter, Components& components) {
  static constexpr std::string_view places[] = {"path", "query", "header"};
  return {{"name", parameter.name},
          {"in", places[static_cast<std::size_t>(parameter.in)]},
          {"description", parameter.description},
          {"required", parameter.need == Need::required},
          {"schema", components.place(parameter.schema)}};
}

// The {names} of a path. A name means the same kind of object in each path.
std::vector<Parameter> path_parameters(std::string_view path) {
  static const std::map<std::string_view, std::string_view> objects{
      {"URLToken", "The Endpoint."},
      {"clientId", "The client."},
      {"connectionId", "The Connection."},
      {"consoleFile", "The file."},
      {"consoleFolder", "The file's folder."},
      {"deadLetterId", "The dead letter."},
      {"endpointId", "The Endpoint."},
      {"flowId", "The Flow."},
      {"id", "The event, output, timer, call, job or dead letter."},
      {"keyId", "The key."},
      {"knowledgeStoreId", "The Knowledge Store."},
      {"lexiconId", "The Lexicon."},
      {"organisationId", "The organisation."},
      {"outputId", "The output."},
      {"projectId", "The project."},
      {"receiptId", "The event, one of its outputs, its trace or its Idempotency-Key."},
      {"scheduleId", "The schedule."},
      {"sourceId", "The Knowledge Source."},
      {"taskId", "The task."},
      {"timerId", "The timer."},
      {"tokenId", "The management token."},
      {"userId", "The user."}};
  std::vector<Parameter> parameters;
  for (auto open = path.find('{'); open != std::string_view::npos; open = path.find('{')) {
    const auto close = path.find('}', open);
    const auto name = path.substr(open + 1, close - open - 1);
    path.remove_prefix(close);
    const auto object = objects.find(name);
    if (object == objects.end()) defect("no description of a path's name", name);
    const bool is_derived = name == "timerId" || name == "outputId" || name == "id";
    Schema schema = name == "URLToken"            ? url_token()
                    : is_derived                  ? text_like("^[a-z0-9-]{1,200}$")
                    : name == "receiptId"         ? text_like("^[ -~]{1,255}$")
                    : name.starts_with("console") ? text_like("^[A-Za-z0-9.]{1,100}$")
                                                  : id();
    parameters.push_back({Parameter::In::path, name, std::string(object->second), std::move(schema),
                          Need::required});
  }
  return parameters;
}

Value answer_object(const Success& answer, Components& components) {
  Value object{{"description", answer.description}, {"headers", headers_of(answer.status)}};
  for (const Header& header : answer.headers) {
    object["headers"][std::string(header.name)] =
        header_object(header.description, components.place(header.schema), header.need);
  }
  if (!answer.content.empty()) object["content"] = content_object(answer.content, components);
  for (const Link& link : answer.links) {
    object["links"][std::string(link.name)] = {
        {"operationId", link.operation},
        {"parameters", {{std::string(link.parameter), link.value}}}};
  }
  return object;
}

// The error's response: the shared one, unless this operation's error has a shape of its own.
Value error_object(const Operation& operation, const Description& description, int status,
                   Components& components) {
  if (operation.error_shape == ErrorShape::oauth) {
    // A request that is refused before its path is known gets a problem, not this shape.
    std::vector<Content> content{{"application/json", oauth_error()}, problem_content(status)};
    if (description.has_error_page) content.push_back({"text/html", text(1)});
    return error_response_object(status, content, components);
  }
  const bool reduced =
      operation.error_shape == ErrorShape::reduced && (status == 400 || status == 404);
  if (!reduced) return reference("responses", response_name(status));
  return error_response_object(status, {{"application/problem+json", reduced_error()}}, components);
}

std::set<int> errors_of(const Operation& operation, const Description& description) {
  std::set<int> statuses(description.errors.begin(), description.errors.end());
  statuses.insert(std::begin(common_errors), std::end(common_errors));
  if (operation.path.find('{') != std::string_view::npos) statuses.insert(missing_object);
  if (operation.method != Method::get) statuses.insert(unknown_outcome);
  if (operation.credential != Credential::open) {
    statuses.insert(std::begin(credential_errors), std::end(credential_errors));
  }
  return statuses;
}

Value security_of(Credential credential) {
  Value choices = Value::array();
  if (credential == Credential::basic) choices.push_back({{"BasicAuth", Value::array()}});
  if (credential != Credential::client) return choices;
  for (const char* scheme :
       {"APIKeyHeader", "APIKeyQueryParam", "ContactCenterTokenHeader", "OAuth2"}) {
    choices.push_back({{scheme, Value::array()}});
  }
  return choices;
}

// The tag of a path: that of the first row whose prefix the path has.
std::string_view tag_of(std::string_view path) {
  constexpr std::array<std::pair<std::string_view, std::string_view>, 12> chapters{{
      {"/management", "Management"},
      {"/auth/", "OAuth 2.0"},
      {"/.well-known/", "OAuth 2.0"},
      {"/openapi.", "About"},
      {"/schemas/", "About"},
      {"/v2.0/tasks", "Tasks"},
      {"/v2.0/projects/", "Projects"},
      {"/v2.0/connections/", "Projects"},
      {"/v2.0/users/", "Users"},
      {"/v2.0/lexicons/", "Knowledge"},
      {"/v2.0/knowledgestores/", "Knowledge"},
      {"/v2.0/organisations/", "Knowledge"},
  }};
  for (const auto& [begin, tag] : chapters) {
    if (path.starts_with(begin)) return tag;
  }
  return "Conversations";
}

Value operation_object(const Operation& operation, const Description& description,
                       Components& components, std::set<int>& errors_used) {
  Value object{{"operationId", operation.id},
               {"tags", Value::array({tag_of(operation.path)})},
               {"summary", description.summary}};
  std::string details = description.details;
  if (const auto role = to_string(operation.role); !role.empty()) {
    if (!details.empty()) details += "\n\n";
    details += "Requires the role `" + std::string(role) + "`.";
  }
  if (!details.empty()) object["description"] = details;
  auto parameters = path_parameters(operation.path);
  parameters.insert(parameters.end(), description.parameters.begin(), description.parameters.end());
  for (const Parameter& parameter : parameters) {
    object["parameters"].push_back(parameter_object(parameter, components));
  }
  if (!description.body.empty()) {
    object["requestBody"] = {{"required", true},
                             {"content", content_object(description.body, components)}};
  }
  Value& responses = object["responses"] = Value::object();
  for (const Success& answer : description.answers) {
    responses[std::to_string(answer.status)] = answer_object(answer, components);
  }
  const auto errors = errors_of(operation, description);
  for (const int status : errors) {
    responses[std::to_string(status)] = error_object(operation, description, status, components);
  }
  errors_used.insert(errors.begin(), errors.end());
  object["security"] = security_of(operation.credential);
  return object;
}

// ---- The whole

Value oauth_flow(std::string_view base) {
  const std::string token(std::string(base) + "/auth/oauth2/token");
  return {{"password", {{"tokenUrl", token}, {"refreshUrl", token}, {"scopes", Value::object()}}},
          {"authorizationCode",
           {{"authorizationUrl", std::string(base) + "/auth/oauth2/authorize"},
            {"tokenUrl", token},
            {"refreshUrl", token},
            {"scopes", Value::object()}}}};
}

Value security_schemes(std::string_view base) {
  return {{"APIKeyHeader", {{"type", "apiKey"}, {"in", "header"}, {"name", "X-API-Key"}}},
          {"APIKeyQueryParam", {{"type", "apiKey"}, {"in", "query"}, {"name", "api_key"}}},
          {"ContactCenterTokenHeader",
           {{"type", "apiKey"},
            {"in", "header"},
            {"name", "x-contactcenter-authorization"},
            {"description",
             "The word `Bearer`, a space and a token of the contact center, where the service "
             "belongs to one."}}},
          {"OAuth2", {{"type", "oauth2"}, {"flows", oauth_flow(base)}}},
          {"BasicAuth",
           {{"type", "http"},
            {"scheme", "basic"},
            {"description", "E-mail address and password of a user; only below /management."}}}};
}

}  // namespace

Value document(std::span<const Operation* const> operations, std::string_view base) {
  Components components;
  Value paths = Value::object();
  Value tags = Value::array();
  std::set<int> errors;
  for (const Operation* operation : operations) {
    if (operation->describe == nullptr) defect("no description", operation->id);
    const Description description = operation->describe();
    const Value tag{{"name", tag_of(operation->path)}};
    if (std::find(tags.begin(), tags.end(), tag) == tags.end()) tags.push_back(tag);
    paths[std::string(operation->path)][lower_case(method_name(operation->method))] =
        operation_object(*operation, description, components, errors);
  }
  tags.push_back({{"name", webhooks_tag}});
  Value responses = Value::object();
  for (const int status : errors) {
    responses[response_name(status)] =
        error_response_object(status, {problem_content(status)}, components);
  }
  return {
      {"openapi", "3.1.0"},
      {"info",
       {{"title", "conversed"},
        {"version", interface_version},
        {"description", about},
        {"license", {{"name", "Apache-2.0"}, {"identifier", "Apache-2.0"}}}}},
      {"servers", Value::array({{{"url", base.empty() ? "/" : base}}})},
      {"tags", std::move(tags)},
      {"paths", std::move(paths)},
      // A reference: of an inline path item some generators make a client that does not compile.
      {"webhooks", {{"output", reference("pathItems", "Delivery")}}},
      {"components",
       {{"schemas", components.schemas()},
        {"responses", std::move(responses)},
        {"headers", common_headers()},
        {"pathItems", {{"Delivery", delivery_item()}}},
        {"securitySchemes", security_schemes(base)}}}};
}

}  // namespace conversed::api::openapi
