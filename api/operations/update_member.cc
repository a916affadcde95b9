// PATCH /v2.0/projects/{projectId}/members/{userId}: which locales a member may work in.
#include <algorithm>
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

Document document_of(const store::Member& member) {
  Value locales = Value::array();
  for (const auto& id : member.allowed_locales) locales.push_back({{"localeId", id}});
  return {.name = "member",
          .value = {{"_id", member.user.id},
                    {"name", member.user.name},
                    {"roles", member.roles},
                    {"allowedLocales", std::move(locales)}},
          .list = std::nullopt};
}

Result<Response> update_member(const Call& call, ProjectServices& services) {
  auto project_id = id_of(call, "projectId");
  if (!project_id) return model::fail(project_id.error());
  auto user_id = id_of(call, "userId");
  if (!user_id) return model::fail(user_id.error());
  auto project =
      open_project(services.store, *call.principal, *project_id, Role::member, missing_member);
  if (!project) return model::fail(project.error());
  // Before the role and the body are looked at: who is no member is missing whatever they are.
  auto known = services.store.accounts().member(project->id, *user_id);
  if (!known && known.error().code == Errc::not_found) {
    return model::fail(Errc::not_found, std::string(missing_member));
  }
  if (!known) return model::fail(store_error(known.error()));
  if (auto held = require_role(*call.principal, *project, Role::member_manager); !held) {
    return model::fail(held.error());
  }
  auto locales = read_locales(call);
  if (!locales) return model::fail(locales.error());
  auto member = services.store.accounts().set_allowed_locales(project->id, *user_id, *locales);
  if (!member) return model::fail(store_error(member.error()));
  return document_response(call.request, call.exchange.instance, status::ok, document_of(*member));
}

openapi::Description describe_update_member() {
  using namespace openapi;
  const auto locales = list_of(object({{"localeId", id()}}));
  const auto member = object(
      {{"_id", id()}, {"name", text()}, {"roles", list_of(text(1))}, {"allowedLocales", locales}});
  return {.summary = "Update a project member",
          .parameters = {path_parameter("projectId", "The project.", id()),
                         path_parameter("userId", "The member.", id())},
          .body = json_content(named("MemberUpdate", object({{"allowedLocales", locales}}))),
          .answers = {{.description = "The member.",
                       .content = representations("member", named("Member", member))}},
          .errors = specified_errors()};
}

}  // namespace

constinit const Operation update_member_operation =
    for_clients("updateMember_2_0", Method::patch, "/v2.0/projects/{projectId}/members/{userId}",
                Role::member_manager, update_member, describe_update_member);

}  // namespace conversed::api
