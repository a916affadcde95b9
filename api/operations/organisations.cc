// POST and GET /management/organisations: further organisations of the installation, each with its
// first administrator. Takes the role platformAdmin, which those administrators do not get.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/lists.h"
#include "api/operations.h"
#include "api/operations/management.h"
#include "api/operations/replies.h"
#include "store/passwords.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;

Result<store::Organisation> create_wanted(const Call& call, Services& services) {
  if (!call.principal->has(Role::platform_admin)) {
    return model::fail(Errc::permission_denied, "the role platformAdmin is needed");
  }
  auto body = read_object(call.request);
  if (!body) return model::fail(body.error());
  auto name = name_member(*body);
  if (!name) return model::fail(name.error());
  auto admin = text_member(*body, "admin");
  if (!admin) return model::fail(admin.error());
  auto password = text_member(*body, "password");
  if (!password) return model::fail(password.error());
  auto made =
      services.store.accounts().create_organisation(*name, {.email = *admin,
                                                            .name = *admin,
                                                            .roles = {"projectAdmin", "userAdmin"},
                                                            .password = *password});
  if (!made) return model::fail(store_error(made.error()));
  return made;
}

void create(Call call, Services& services, Reply reply) {
  auto made = create_wanted(call, services);
  if (!made) return send_error(reply, create_organisation_operation, made.error());
  send_json(reply, status::created, {{"_id", made->id}, {"name", made->name}});
}

void list(Call call, Services& services, Reply reply) {
  if (!call.principal->has(Role::platform_admin)) {
    return send_error(reply, list_organisations_operation,
                      {Errc::permission_denied, "the role platformAdmin is needed"});
  }
  auto organisations = services.store.accounts().organisations();
  if (!organisations) {
    return send_error(reply, list_organisations_operation, store_error(organisations.error()));
  }
  json items = json::array();
  const std::string month = store::month_of(services.clock.now());
  for (const auto& each : *organisations) {
    json used{{"month", month}};
    for (const char* counter : {store::injects_counter, store::model_tokens_counter}) {
      auto amount = services.store.usage().used(each.id, counter, month);
      if (!amount) {
        return send_error(reply, list_organisations_operation, store_error(amount.error()));
      }
      used[counter] = *amount;
    }
    items.push_back({{"_id", each.id}, {"name", each.name}, {"used", std::move(used)}});
  }
  send_json(reply, status::ok, {{"items", std::move(items)}});
}

openapi::Schema organisation_schema() {
  using namespace openapi;
  return named("Organisation", object({{"_id", id()}, {"name", text(1)}}));
}

openapi::Description describe_create() {
  using namespace openapi;
  const auto body = object({{"name", bounded_bytes(max_display_name_bytes)},
                            {"admin", described("The first administrator.", email())},
                            {"password", text(1, store::max_password_bytes)}});
  return {.tag = "Management",
          .summary = "Add an organisation",
          .body = json_content(named("NewOrganisation", body)),
          .answers = {{.status = status::created,
                       .description = "The organisation.",
                       .content = json_content(organisation_schema())}},
          .errors = {409}};
}

openapi::Description describe_list() {
  using namespace openapi;
  const auto used =
      object({{"month", described("Of the calendar, in UTC: `2026-07`.", text(1))},
              {"injects", integer(0)},
              {"modelTokens", described("As language models count them.", integer(0))}});
  const auto item =
      named("OrganisationInUse", object({{"_id", id()}, {"name", text(1)}, {"used", used}}));
  return {
      .tag = "Management",
      .summary = "List the organisations, and what each has used of its plan this month",
      .answers = {{.description = "The organisations.", .content = json_content(items_of(item))}}};
}

}  // namespace

constinit const Operation create_organisation_operation{.id = "createOrganisation",
                                                        .method = Method::post,
                                                        .path = "/management/organisations",
                                                        .credential = Credential::basic,
                                                        .role = Role::platform_admin,
                                                        .run = create,
                                                        .describe = describe_create};

constinit const Operation list_organisations_operation{.id = "listOrganisations",
                                                       .method = Method::get,
                                                       .path = "/management/organisations",
                                                       .credential = Credential::basic,
                                                       .role = Role::platform_admin,
                                                       .run = list,
                                                       .describe = describe_list};

}  // namespace conversed::api
