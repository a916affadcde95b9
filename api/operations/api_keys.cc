// /management/apikeys: users create, list and revoke their own keys. Keys of other users require
// the role userAdmin, keys of a platformAdmin the role platformAdmin.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using namespace openapi;

Result<Response> create_key(const Call& call, AccountServices& services) {
  std::string name;
  std::string email;
  auto body = read_object(call.request, {{"name", &name}, {"user", &email}});
  if (!body) return model::fail(body.error());
  if (auto good = check_display_name(name); !good) return model::fail(good.error());
  auto user = user_to_manage(services.store, *call.principal, email);
  if (!user) return model::fail(user.error());
  auto made = services.store.accounts().create_api_key(user->organisation_id, user->id, name);
  if (!made) return model::fail(store_error(made.error()));
  // The key is shown only here.
  return json_response(status::created,
                       {{"_id", made->key.id},
                        {"name", made->key.name},
                        {"user", user->email},
                        {"key", made->secret}},
                       {{"Cache-Control", "no-store"}});
}

// The keys that the principal may see: all of the organisation's, or only its own.
Result<std::vector<store::ApiKey>> visible_keys(const Principal& principal,
                                                AccountServices& services) {
  auto keys = services.store.accounts().api_keys(principal.organisation_id);
  if (!keys) return model::fail(store_error(keys.error()));
  if (!principal.has(Role::user_admin)) {
    std::erase_if(*keys, [&](const auto& key) { return key.user_id != principal.user_id; });
  }
  return std::move(*keys);
}

Result<Response> list_keys(const Call& call, AccountServices& services) {
  auto keys = visible_keys(*call.principal, services);
  if (!keys) return model::fail(keys.error());
  auto users = services.store.accounts().users(call.principal->organisation_id);
  if (!users) return model::fail(store_error(users.error()));
  json items = json::array();
  for (const store::ApiKey& key : *keys) {
    const auto user = std::ranges::find(*users, key.user_id, &store::User::id);
    items.push_back({{"_id", key.id},
                     {"name", key.name},
                     {"user", user == users->end() ? "" : user->email},
                     {"createdAt", unix_seconds(key.created_at)}});
  }
  return ok({{"items", std::move(items)}});
}

Result<Response> revoke_key(const Call& call, AccountServices& services) {
  const Principal& principal = *call.principal;
  const std::string id(call.parameters["keyId"]);
  auto keys = visible_keys(principal, services);
  if (!keys) return model::fail(keys.error());
  const auto key = std::ranges::find(*keys, id, &store::ApiKey::id);
  if (key == keys->end()) return model::fail(Errc::not_found, "there is no such key");
  auto& accounts = services.store.accounts();
  auto user = accounts.user(principal.organisation_id, key->user_id);
  if (!user) return model::fail(store_error(user.error()));
  if (auto may = may_manage(principal, *user); !may) return model::fail(may.error());
  return from_store(accounts.revoke_api_key(principal.organisation_id, id)).map(no_content);
}

Description describe_create_key() {
  const auto body =
      object({{"name", bounded_bytes(max_display_name_bytes)},
              {"user", described("An e-mail address; default: your own.", nullable(text())),
               Need::optional}});
  const auto key = object({{"_id", id()},
                           {"name", text(1)},
                           {"user", text(1)},
                           {"key", described("Shown once.", text(1))}});
  return {
      .summary = "Create an API key",
      .details =
          "Keys of other users require the role `userAdmin`. Keys of a platformAdmin require "
          "`platformAdmin`.",
      .body = json_content(named("ApiKeyCreation", with_example({{"name", "order system"}}, body))),
      .answers = {{.status = status::created,
                   .description = "The key.",
                   .content = json_content(named("CreatedApiKey", key)),
                   .links = {{"revoke", "revokeApiKey", "keyId", "$response.body#/_id"}}}},
      .errors = {404}};
}

Description describe_list_keys() {
  const auto key =
      object({{"_id", id()}, {"name", text(1)}, {"user", text()}, {"createdAt", unix_time()}});
  return {
      .summary = "List API keys",
      .details = "With the role `userAdmin` all keys of the organisation, otherwise your own.",
      .answers = {json_answer("The keys, without their secrets.", items_of(named("ApiKey", key)))}};
}

Description describe_revoke_key() {
  return {.summary = "Revoke an API key", .answers = {empty_answer("The key is revoked.")}};
}

}  // namespace

Operations api_keys_operations() {
  static constexpr Operation rows[] = {
      with_password(for_operators("createApiKey", Method::post, "/management/apikeys", Role::member,
                                  create_key, describe_create_key)),
      for_operators("listApiKeys", Method::get, "/management/apikeys", Role::member, list_keys,
                    describe_list_keys),
      for_operators("revokeApiKey", Method::delete_, "/management/apikeys/{keyId}", Role::member,
                    revoke_key, describe_revoke_key),
  };
  return rows;
}

}  // namespace conversed::api
