// POST /v2.0/projects/{projectId}/snippets: creates a Token in a project.
// PATCH /v2.0/projects/{projectId}/members/{userId}: sets the locales that a member may work in.
#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/openapi/shape.h"
#include "api/operations/documents.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"
#include "store/text/ascii.h"
#include "store/text/utf8.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using namespace openapi;

constexpr std::size_t max_label_length = 200;  // characters
constexpr std::array<std::string_view, 7> types{"profile", "input",       "context",   "custom",
                                                "answer",  "flow-output", "flow-input"};

Result<store::Assets::NewToken> read_token(const Call& call) {
  store::Assets::NewToken token{.created_by = call.principal->user_id};
  std::optional<std::string> label;
  auto body = read_object(call.request,
                          {{"label", &label}, {"type", &token.type}, {"script", &token.script}});
  if (!body) return model::fail(body.error());
  if (label && (label->empty() || text::count_characters(*label) > max_label_length)) {
    return model::fail(Errc::invalid_argument, "label must have 1 to 200 characters");
  }
  if (label && (text::has_control(*label) || label->front() == ' ' || label->back() == ' ')) {
    return model::fail(Errc::invalid_argument,
                       "label must have no control characters, and no blanks at its ends");
  }
  if (std::ranges::find(types, token.type) == types.end()) {
    return model::fail(Errc::invalid_argument,
                       "type must be profile, input, context, custom, answer, flow-output or "
                       "flow-input");
  }
  token.label = std::move(label).value_or("");
  return token;
}

const Shape<store::Token>& token_shape() {
  static const Shape<store::Token> shape("Token",
                                         {{"_id", id(), &store::Token::id},
                                          {"label", text(1), &store::Token::label},
                                          {"type", one_of(types), &store::Token::type},
                                          {"script", text(), &store::Token::script},
                                          {"projectId", id(), &store::Token::project_id},
                                          {"createdAt", unix_time(), &store::Token::created_at},
                                          {"createdBy", text(), &store::Token::created_by},
                                          {"lastChanged", unix_time(), &store::Token::changed_at},
                                          {"lastChangedBy", text(), &store::Token::changed_by}});
  return shape;
}

Result<Response> create_token(const Call& call, ProjectServices& services) {
  auto project = path_project(services.store, call);
  if (!project) return model::fail(project.error());
  auto wanted = read_token(call);
  if (!wanted) return model::fail(wanted.error());
  auto token = services.store.assets().create_token(
      project->id, *wanted, static_cast<std::int64_t>(services.options.quota.get().tokens));
  return from_store(std::move(token)).map([&](const store::Token& made) {
    return document_response(call.request, call.exchange.instance, status::created,
                             {.name = "token", .value = token_shape()(made)});
  });
}

Description describe_create_token() {
  auto label =
      text_like(R"(^[^\u0000-\u0020\u007f]([^\u0000-\u001f\u007f]*[^\u0000-\u0020\u007f])?$)");
  label["maxLength"] = max_label_length;
  const auto body =
      object({{"label",
               described("Unique in its project; without one the Token gets a name.",
                         nullable(std::move(label))),
               Need::optional},
              {"type", with_default("custom", nullable(one_of(types))), Need::optional},
              {"script", described("The script that the Token expands to.", nullable(text())),
               Need::optional}});
  return {
      .summary = "Create a Token in a project",
      .body = json_content(named(
          "TokenCreation", with_example({{"label", "shopName"}, {"script", "The Shop"}}, body))),
      .answers = {{.status = status::created,
                   .description = "The Token.",
                   .content = representations("token", token_shape().schema())}},
      .errors = specified_errors()};
}

constexpr std::string_view missing_member = "there is no such member";

Result<std::vector<std::string>> read_locales(const Call& call) {
  auto body = read_object(call.request);
  if (!body) return model::fail(body.error());
  const auto member = body->find("allowedLocales");
  if (member == body->end() || !member->is_array()) {
    return model::fail(Errc::invalid_argument,
                       "allowedLocales is required: an array of objects with a localeId");
  }
  std::vector<std::string> ids;
  for (const auto& each : *member) {
    const bool named =
        each.is_object() && each.contains("localeId") && each["localeId"].is_string();
    if (!named) {
      return model::fail(Errc::invalid_argument,
                         "allowedLocales must be objects with a localeId, which is a string");
    }
    auto id = each["localeId"].get<std::string>();
    if (std::find(ids.begin(), ids.end(), id) == ids.end()) ids.push_back(std::move(id));
  }
  return ids;
}

Schema locales_schema() {
  return list_of(object({{"localeId", id()}}));
}

const Shape<store::Member>& member_shape() {
  using store::Member;
  const auto locales = [](const Member& member) {
    Value list = Value::array();
    for (const auto& id : member.allowed_locales) list.push_back({{"localeId", id}});
    return list;
  };
  static const Shape<Member> shape(
      "Member", {{"_id", id(), [](const Member& member) { return member.user.id; }},
                 {"name", text(), [](const Member& member) { return member.user.name; }},
                 {"roles", list_of(text(1)), &Member::roles},
                 {"allowedLocales", locales_schema(), locales}});
  return shape;
}

Result<Response> update_member(const Call& call, ProjectServices& services) {
  auto project_id = id_of(call, "projectId");
  if (!project_id) return model::fail(project_id.error());
  auto user_id = id_of(call, "userId");
  if (!user_id) return model::fail(user_id.error());
  auto project =
      open_project(services.store, *call.principal, *project_id, Role::member, missing_member);
  if (!project) return model::fail(project.error());
  // A missing member is 404 for any role and body.
  auto known = services.store.accounts().member(project->id, *user_id);
  if (!known) return model::fail(store_error(known.error()));
  if (auto held = require_role(*call.principal, *project, Role::member_manager); !held) {
    return model::fail(held.error());
  }
  auto locales = read_locales(call);
  if (!locales) return model::fail(locales.error());
  auto member = services.store.accounts().set_allowed_locales(project->id, *user_id, *locales);
  return from_store(std::move(member)).map([&](const store::Member& now) {
    return document_response(call.request, call.exchange.instance, status::ok,
                             {.name = "member", .value = member_shape()(now)});
  });
}

Description describe_update_member() {
  return {
      .summary = "Update a project member",
      .body = json_content(named("MemberUpdate", object({{"allowedLocales", locales_schema()}}))),
      .answers = {{.description = "The member.",
                   .content = representations("member", member_shape().schema())}},
      .errors = specified_errors()};
}

}  // namespace

Operations projects_operations() {
  static constexpr Operation rows[] = {
      for_clients("createToken_2_0", Method::post, "/v2.0/projects/{projectId}/snippets",
                  Role::token_admin, create_token, describe_create_token),
      for_clients("updateMember_2_0", Method::patch, "/v2.0/projects/{projectId}/members/{userId}",
                  Role::member_manager, update_member, describe_update_member),
  };
  return rows;
}

}  // namespace conversed::api
