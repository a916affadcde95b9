// /management/oauth/clients: adds, lists and removes the organisation's OAuth clients. Requires the
// role userAdmin, because a client decides how users sign in.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/auth/oauth_parameters.h"
#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using store::OauthClient;
using namespace openapi;

constexpr std::size_t max_redirect_uris = 20;

Result<OauthClient> read_client(const Call& call) {
  OauthClient client{.id = "", .organisation_id = call.principal->organisation_id, .name = ""};
  auto body = read_object(call.request, {{"name", &client.name},
                                         {"public", &client.is_public},
                                         {"passwordGrant", &client.password_grant},
                                         {"redirectUris", &client.redirect_uris}});
  if (!body) return model::fail(body.error());
  if (auto good = check_display_name(client.name); !good) return model::fail(good.error());
  if (client.redirect_uris.size() > max_redirect_uris) {
    return model::fail(Errc::invalid_argument, "redirectUris has 20 items at most");
  }
  for (const std::string& uri : client.redirect_uris) {
    if (is_redirect_uri(uri)) continue;
    return model::fail(Errc::invalid_argument,
                       "redirectUris: " + uri +
                           " has to be an absolute https address without a fragment, one of http "
                           "on 127.0.0.1, [::1] or localhost, or one of a scheme of your own whose "
                           "name holds a dot");
  }
  if (client.redirect_uris.empty() && !client.password_grant) {
    return model::fail(
        Errc::invalid_argument,
        "redirectUris or passwordGrant is required; without them no user can sign in");
  }
  return client;
}

Result<Response> create_client(const Call& call, AccountServices& services) {
  auto wanted = read_client(call);
  if (!wanted) return model::fail(wanted.error());
  const auto made = services.store.oauth().create_client(*std::move(wanted));
  return from_store(made).map([](const store::NewOauthClient& client) {
    // The secret is shown only here.
    return json_response(status::created,
                         {{"clientId", client.client.id}, {"clientSecret", or_null(client.secret)}},
                         {{"Cache-Control", "no-store"}});
  });
}

const Shape<OauthClient>& client_shape() {
  static const Shape<OauthClient> shape(
      "OAuthClient", {{"clientId", id(), &OauthClient::id},
                      {"name", text(1), &OauthClient::name},
                      {"public", boolean(), &OauthClient::is_public},
                      {"redirectUris", list_of(text(1)), &OauthClient::redirect_uris},
                      {"passwordGrant", boolean(), &OauthClient::password_grant},
                      {"createdAt", unix_time(), &OauthClient::created_at}});
  return shape;
}

Result<Response> list_clients(const Call& call, AccountServices& services) {
  return items_response(services.store.oauth().clients(call.principal->organisation_id),
                        client_shape());
}

Result<Response> remove_client(const Call& call, AccountServices& services) {
  const auto removed = services.store.oauth().remove_client(
      call.principal->organisation_id, std::string(call.parameters["clientId"]));
  return from_store(removed).map(no_content);
}

Description describe_create_client() {
  Schema uri = text_like(redirect_uri_expression);
  uri["maxLength"] = max_redirect_uri_bytes;
  uri["description"] =
      "An absolute https address without a fragment, one of http on 127.0.0.1, [::1] or localhost, "
      "or one of a scheme of the app's own, with a dot in it.";
  const auto uris = list_of(uri, max_redirect_uris);
  Schema body =
      object({{"name", bounded_bytes(max_display_name_bytes)},
              {"public", described("Whether the client can't keep a secret.", nullable(boolean())),
               Need::optional},
              {"redirectUris", nullable(uris), Need::optional},
              {"passwordGrant", nullable(boolean()), Need::optional}});
  Schema some_uris = uris;
  some_uris["minItems"] = 1;
  body = with_condition(std::move(body), object({{"passwordGrant", constant(true)}}), anything(),
                        object({{"redirectUris", std::move(some_uris)}}));
  const auto client =
      object({{"clientId", id()},
              {"clientSecret", described("Shown once; null if public.", nullable(text(1)))}});
  Value example{{"name", "Shop"}, {"redirectUris", {"https://shop.example/callback"}}};
  return {
      .summary = "Add an OAuth client",
      .details = "Requires redirectUris or passwordGrant.",
      .body = json_content(named("OAuthClientCreation", with_example(std::move(example), body))),
      .answers = {
          {.status = status::created,
           .description = "The client.",
           .content = json_content(named("CreatedOAuthClient", client)),
           .links = {{"remove", "removeOauthClient", "clientId", "$response.body#/clientId"}}}}};
}

Description describe_list_clients() {
  return {.summary = "List the OAuth clients of the organisation",
          .answers = {json_answer("The clients.", items_of(client_shape().schema()))}};
}

Description describe_remove_client() {
  return {.summary = "Remove an OAuth client",
          .details = "The client's codes and tokens end.",
          .answers = {empty_answer("The client is removed.")}};
}

}  // namespace

Operations oauth_clients_operations() {
  static constexpr Operation rows[] = {
      with_password(for_operators("createOauthClient", Method::post, "/management/oauth/clients",
                                  Role::user_admin, create_client, describe_create_client)),
      for_operators("listOauthClients", Method::get, "/management/oauth/clients", Role::user_admin,
                    list_clients, describe_list_clients),
      for_operators("removeOauthClient", Method::delete_, "/management/oauth/clients/{clientId}",
                    Role::user_admin, remove_client, describe_remove_client),
  };
  return rows;
}

}  // namespace conversed::api
