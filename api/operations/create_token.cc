// POST /v2.0/projects/{projectId}/snippets: creates a Token in a project.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/lists.h"
#include "api/operations/documents.h"
#include "api/operations/management.h"
#include "api/operations/objects.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;

constexpr std::size_t max_label_length = 200;  // characters
constexpr std::array<std::string_view, 7> types{"profile", "input",       "context",   "custom",
                                                "answer",  "flow-output", "flow-input"};

bool is_given(const nlohmann::json& object, const char* name) {
  const auto member = object.find(name);
  return member != object.end() && !member->is_null();
}

std::size_t characters(std::string_view text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0) != 0x80;
  }));
}

Result<store::Assets::NewToken> read_token(const Call& call) {
  auto body = read_object(call.request);
  if (!body) return model::fail(body.error());
  store::Assets::NewToken token;
  auto label = text_member(*body, "label");
  if (!label) return model::fail(label.error());
  if (is_given(*body, "label") && (label->empty() || characters(*label) > max_label_length)) {
    return model::fail(Errc::invalid_argument, "label must have 1 to 200 characters");
  }
  token.label = *std::move(label);
  if (is_given(*body, "type")) {
    auto type = text_member(*body, "type");
    if (!type) return model::fail(type.error());
    if (std::find(types.begin(), types.end(), *type) == types.end()) {
      return model::fail(Errc::invalid_argument,
                         "type must be profile, input, context, custom, answer, flow-output or "
                         "flow-input");
    }
    token.type = *std::move(type);
  }
  auto script = text_member(*body, "script");
  if (!script) return model::fail(script.error());
  token.script = *std::move(script);
  token.created_by = call.principal->user_id;
  return token;
}

Document document_of(const store::Token& token) {
  return {.name = "token",
          .value = {{"_id", token.id},
                    {"label", token.label},
                    {"type", token.type},
                    {"script", token.script},
                    {"projectId", token.project_id},
                    {"createdAt", unix_seconds(token.created_at)},
                    {"createdBy", token.created_by},
                    {"lastChanged", unix_seconds(token.changed_at)},
                    {"lastChangedBy", token.changed_by}},
          .list = std::nullopt};
}

Result<Response> create_token(const Call& call, ProjectServices& services) {
  auto id = id_of(call, "projectId");
  if (!id) return model::fail(id.error());
  auto project = open_project(services.store, *call.principal, *id, Role::token_admin);
  if (!project) return model::fail(project.error());
  auto wanted = read_token(call);
  if (!wanted) return model::fail(wanted.error());
  auto token = services.store.assets().create_token(
      project->id, *wanted, static_cast<std::int64_t>(services.options.quota.get().tokens));
  if (!token) return model::fail(store_error(token.error()));
  return document_response(call.request, call.exchange.instance, status::created,
                           document_of(*token));
}

openapi::Schema token_schema() {
  using namespace openapi;
  return named("Token", object({{"_id", id()},
                                {"label", text(1)},
                                {"type", one_of(types)},
                                {"script", text()},
                                {"projectId", id()},
                                {"createdAt", unix_time()},
                                {"createdBy", text()},
                                {"lastChanged", unix_time()},
                                {"lastChangedBy", text()}}));
}

openapi::Description describe_create_token() {
  using namespace openapi;
  const auto body = object(
      {{"label",
        described("Unique in its project; without one the Token gets a name.",
                  nullable(text(1, max_label_length))),
        Need::optional},
       {"type", with_default("custom", nullable(one_of(types))), Need::optional},
       {"script", described("What the Token expands to.", nullable(text())), Need::optional}});
  return {.summary = "Create a Token in a project",
          .parameters = {path_parameter("projectId", "The project.", id())},
          .body = json_content(named(
              "NewToken", with_example({{"label", "shopName"}, {"script", "The Shop"}}, body))),
          .answers = {{.status = status::created,
                       .description = "The Token.",
                       .content = representations("token", token_schema())}},
          .errors = specified_errors()};
}

}  // namespace

constinit const Operation create_token_operation =
    for_clients("createToken_2_0", Method::post, "/v2.0/projects/{projectId}/snippets",
                Role::token_admin, create_token, describe_create_token);

}  // namespace conversed::api
