// /management/tokens: users create, list and revoke tokens that operators and their scripts send in
// place of a password. Tokens of other users require the role userAdmin, and only the user itself
// creates one.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"
#include "store/text/joined.h"
#include "store/text/quantity.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using store::ManagementToken;
using namespace openapi;

constexpr std::chrono::hours longest_token_life{366 * 24};
constexpr std::chrono::hours usual_token_life{30 * 24};

Schema token_scopes_schema() {
  const auto names = names_of_scopes();
  Schema scopes = list_of(one_of(std::span(names)));
  scopes["minItems"] = 1;
  return described(
      "Roles: the token acts with these roles of its user alone. `all`: with all of them. `read`: "
      "it changes nothing.",
      std::move(scopes));
}

Result<void> check_token_scopes(const std::vector<std::string>& scopes) {
  const auto known = names_of_scopes();
  for (const std::string& scope : scopes) {
    if (std::ranges::find(known, scope) != known.end()) continue;
    return model::fail(Errc::invalid_argument, "scopes: there is no scope '" + scope +
                                                   "'; there are: " + text::joined(known));
  }
  if (!scopes.empty()) return {};
  return model::fail(Errc::invalid_argument,
                     "scopes: name at least one of: " + text::joined(known));
}

Result<std::chrono::milliseconds> management_token_life(const std::string& text) {
  if (text.empty()) return usual_token_life;
  const auto life = text::parse_duration(text);
  if (life && *life > std::chrono::milliseconds(0) && *life <= longest_token_life) return *life;
  return model::fail(Errc::invalid_argument,
                     "expires: write a duration of at most 366d, such as 90d or 12h");
}

json management_token_json(const ManagementToken& token, const std::string& email) {
  return {{"_id", token.id},
          {"name", token.name},
          {"user", email},
          {"scopes", token.scopes},
          {"createdAt", unix_seconds(token.created_at)},
          {"expiresAt", unix_seconds(token.expires_at)}};
}

Result<Response> create_own_token(const Call& call, AccountServices& services) {
  ManagementToken wanted;
  std::string expires;
  auto body = read_object(
      call.request, {{"name", &wanted.name}, {"scopes", &wanted.scopes}, {"expires", &expires}});
  if (!body) return model::fail(body.error());
  if (auto good = check_display_name(wanted.name); !good) return model::fail(good.error());
  if (auto good = check_token_scopes(wanted.scopes); !good) return model::fail(good.error());
  auto life = management_token_life(expires);
  if (!life) return model::fail(life.error());
  const Principal& principal = *call.principal;
  wanted.user_id = principal.user_id;
  wanted.expires_at = services.store.timer_now() + *life;
  auto& accounts = services.store.accounts();
  auto user = accounts.user(principal.organisation_id, principal.user_id);
  if (!user) return model::fail(store_error(user.error()));
  auto made = accounts.create_management_token(principal.organisation_id, std::move(wanted));
  if (!made) return model::fail(store_error(made.error()));
  json answer = management_token_json(made->token, user->email);
  answer["token"] = made->secret;  // shown only here
  return json_response(status::created, std::move(answer), {{"Cache-Control", "no-store"}});
}

// The tokens that the principal may see: all of the organisation's, or only its own.
Result<std::vector<ManagementToken>> visible_tokens(const Principal& principal,
                                                    AccountServices& services) {
  auto tokens = services.store.accounts().management_tokens(principal.organisation_id);
  if (!tokens) return model::fail(store_error(tokens.error()));
  if (!principal.has(Role::user_admin)) {
    std::erase_if(*tokens, [&](const auto& each) { return each.user_id != principal.user_id; });
  }
  return std::move(*tokens);
}

Result<Response> list_visible_tokens(const Call& call, AccountServices& services) {
  auto tokens = visible_tokens(*call.principal, services);
  if (!tokens) return model::fail(tokens.error());
  auto users = services.store.accounts().users(call.principal->organisation_id);
  if (!users) return model::fail(store_error(users.error()));
  json items = json::array();
  for (const ManagementToken& token : *tokens) {
    const auto user = std::ranges::find(*users, token.user_id, &store::User::id);
    items.push_back(management_token_json(token, user == users->end() ? "" : user->email));
  }
  return ok({{"items", std::move(items)}});
}

Result<Response> revoke_visible_token(const Call& call, AccountServices& services) {
  const Principal& principal = *call.principal;
  const std::string id(call.parameters["tokenId"]);
  auto tokens = visible_tokens(principal, services);
  if (!tokens) return model::fail(tokens.error());
  const auto token = std::ranges::find(*tokens, id, &ManagementToken::id);
  if (token == tokens->end()) return model::fail(Errc::not_found, "there is no such token");
  auto& accounts = services.store.accounts();
  auto user = accounts.user(principal.organisation_id, token->user_id);
  if (!user) return model::fail(store_error(user.error()));
  if (user->id != principal.user_id) {
    if (auto may = may_manage(principal, *user); !may) return model::fail(may.error());
  }
  return from_store(accounts.revoke_management_token(principal.organisation_id, id))
      .map(no_content);
}

Schema management_token_schema() {
  return object({{"_id", id()},
                 {"name", text(1)},
                 {"user", text()},
                 {"scopes", token_scopes_schema()},
                 {"createdAt", unix_time()},
                 {"expiresAt", unix_time()}});
}

Description describe_create_management_token() {
  const auto body = object({{"name", bounded_bytes(max_display_name_bytes)},
                            {"scopes", token_scopes_schema()},
                            {"expires",
                             described("A duration of at most 366d; default: 30d.",
                                       nullable(duration_or_empty_schema())),
                             Need::optional}});
  const auto made =
      with_members(management_token_schema(), {{"token", described("Shown once.", text(1))}});
  const json example{{"name", "backup script"}, {"scopes", {"platformAdmin"}}, {"expires", "90d"}};
  return {.summary = "Create a management token",
          .details =
              "It is sent as the password of HTTP Basic, with your e-mail address. It makes "
              "no credentials: this takes your password.",
          .body = json_content(named("ManagementTokenCreation", with_example(example, body))),
          .answers = {{.status = status::created,
                       .description = "The token.",
                       .content = json_content(named("CreatedManagementToken", made)),
                       .links = {{"revoke", "revokeManagementToken", "tokenId",
                                  "$response.body#/_id"}}}},
          .errors = {409}};
}

Description describe_list_visible_tokens() {
  return {
      .summary = "List management tokens",
      .details = "With the role `userAdmin` all tokens of the organisation, otherwise your own.",
      .answers = {json_answer("The tokens, without their secrets.",
                              items_of(named("ManagementToken", management_token_schema())))}};
}

Description describe_revoke_management_token() {
  return {.summary = "Revoke a management token",
          .answers = {empty_answer("The token is revoked.")}};
}

}  // namespace

Operations management_tokens_operations() {
  static constexpr Operation rows[] = {
      with_password(for_operators("createManagementToken", Method::post, "/management/tokens",
                                  Role::member, create_own_token,
                                  describe_create_management_token)),
      for_operators("listManagementTokens", Method::get, "/management/tokens", Role::member,
                    list_visible_tokens, describe_list_visible_tokens),
      for_operators("revokeManagementToken", Method::delete_, "/management/tokens/{tokenId}",
                    Role::member, revoke_visible_token, describe_revoke_management_token),
  };
  return rows;
}

}  // namespace conversed::api
