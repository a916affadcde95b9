// POST and GET /management/organisations: adds an organisation with its first administrator, and
// lists the organisations.
//
// PUT /management/organisations/{organisationId}/domains: sets the organisation's e-mail domains.
//
// Requires the role platformAdmin, which the new administrators do not get.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"
#include "store/text/ascii.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using namespace openapi;

constexpr std::size_t max_domains = 100;

Result<Response> create_organisation(const Call& call, AccountServices& services) {
  std::string name;
  // An absent password is refused like an empty one.
  store::Accounts::NewUser admin{
      .email = "", .roles = {"projectAdmin", "userAdmin"}, .password = ""};
  auto body = read_object(
      call.request, {{"name", &name}, {"admin", &admin.email}, {"password", &admin.password}});
  if (!body) return model::fail(body.error());
  if (auto good = check_display_name(name); !good) return model::fail(good.error());
  admin.name = admin.email;
  const auto made = services.store.accounts().create_organisation(name, admin);
  return from_store(made).map([](const store::Organisation& organisation) {
    return json_response(status::created, {{"_id", organisation.id}, {"name", organisation.name}});
  });
}

Result<Response> list_organisations(const Call& /*call*/, AccountServices& services) {
  auto organisations = services.store.accounts().organisations();
  if (!organisations) return model::fail(store_error(organisations.error()));
  json items = json::array();
  const std::string month = store::month_of(services.clock.now());
  for (const auto& each : *organisations) {
    json used{{"month", month}};
    for (const char* counter : {store::injects_counter, store::model_tokens_counter}) {
      auto amount = services.store.usage().used(each.id, counter, month);
      if (!amount) return model::fail(store_error(amount.error()));
      used[counter] = *amount;
    }
    items.push_back({{"_id", each.id},
                     {"name", each.name},
                     {"domains", each.domains},
                     {"used", std::move(used)}});
  }
  return ok({{"items", std::move(items)}});
}

Result<Response> set_domains(const Call& call, AccountServices& services) {
  auto id = id_of(call, "organisationId");
  if (!id) return model::fail(id.error());
  std::vector<std::string> domains;
  auto body = read_object(call.request, {{"domains", &domains}});
  if (!body) return model::fail(body.error());
  // A missing member would remove every domain by mistake.
  if (!body->contains("domains")) return model::fail(Errc::invalid_argument, "domains is required");
  if (domains.size() > max_domains) {
    return model::fail(Errc::invalid_argument, "domains has 100 items at most");
  }
  // Checked before the write, because a write without a matching row would be committed, too.
  const auto all = services.store.accounts().organisations();
  if (!all) return model::fail(store_error(all.error()));
  if (std::ranges::none_of(*all, [&](const auto& each) { return each.id == *id; })) {
    return model::fail(Errc::not_found, "there is no such organisation");
  }
  const auto set = services.store.accounts().set_domains(*id, domains);
  return from_store(set).map([](const store::DomainsSet& now) {
    return ok({{"_id", now.organisation.id},
               {"name", now.organisation.name},
               {"domains", now.organisation.domains},
               {"strangers", now.strangers}});
  });
}

Description describe_create() {
  const auto body = object({{"name", bounded_bytes(max_display_name_bytes)},
                            {"admin", described("The first administrator.", email())},
                            {"password", new_password_schema()}});
  const auto organisation = named("Organisation", object({{"_id", id()}, {"name", text(1)}}));
  return {.summary = "Add an organisation",
          .body = json_content(named("OrganisationCreation", body)),
          .answers = {json_answer("The organisation.", organisation, status::created)},
          .errors = {409}};
}

Description describe_set_domains() {
  Schema domain = text_like("^[^@,;<>\\u0000-\\u0020\\u007f]+$");
  domain["maxLength"] = text::max_email_bytes - 2;  // without a name and the @
  const auto domains = list_of(domain, max_domains);
  const auto body = object({{"domains", described("The complete new list; none: `[]`.", domains)}});
  const auto answer =
      object({{"_id", id()},
              {"name", text(1)},
              {"domains", described("In lower case.", list_of(text(1)))},
              {"strangers", described("Addresses there that users of other organisations have had "
                                      "before, and keep.",
                                      list_of(text(1)))}});
  return {.summary = "Set the e-mail domains of an organisation",
          .details =
              "Other organisations can't add users with addresses there. Subdomains are domains of "
              "their own. 409 if another organisation has one of them.",
          .body = json_content(named("OrganisationDomains", body)),
          .answers = {json_answer("The organisation.", named("OrganisationWithDomains", answer))},
          .errors = {404, 409}};
}

Description describe_list_organisations() {
  const auto used =
      object({{"month", described("Calendar month in UTC: `2026-07`.", text(1))},
              {"injects", integer(0)},
              {"modelTokens", described("As the language models count them.", integer(0))}});
  const auto item = named(
      "OrganisationInUse",
      object({{"_id", id()}, {"name", text(1)}, {"domains", list_of(text(1))}, {"used", used}}));
  return {.summary = "List the organisations with their usage in this month",
          .answers = {json_answer("The organisations.", items_of(item))}};
}

}  // namespace

Operations organisations_operations() {
  static constexpr Operation rows[] = {
      with_password(for_operators("createOrganisation", Method::post, "/management/organisations",
                                  Role::platform_admin, create_organisation, describe_create)),
      for_operators("listOrganisations", Method::get, "/management/organisations",
                    Role::platform_admin, list_organisations, describe_list_organisations),
      for_operators("setOrganisationDomains", Method::put,
                    "/management/organisations/{organisationId}/domains", Role::platform_admin,
                    set_domains, describe_set_domains),
  };
  return rows;
}

}  // namespace conversed::api
