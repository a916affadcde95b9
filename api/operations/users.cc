// /management/users: adds, lists and removes users, and sets their passwords and roles. Requires
// the role userAdmin. A user's own password requires no role.
//
// POST /v2.0/users/deprecatepassword: ends a user's password and the OAuth tokens of its sign-ins.
// The API documents only the error 400 here: for an unknown, foreign or malformed id, and for the
// password of the only platformAdmin.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/documents.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/store.h"
#include "store/text/joined.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using namespace openapi;

// The names of all roles, or of those in a project.
std::vector<std::string_view> roles_to_give(bool in_project) {
  auto names = names_of_roles();
  if (in_project) {
    std::erase_if(names, [](auto name) { return is_of_organisation(*role_from(name)); });
  }
  return names;
}

Result<void> check_roles(const std::vector<std::string>& names, bool in_project,
                         const Principal& principal) {
  for (const std::string& name : names) {
    const auto role = role_from(name);
    if (!role || (in_project && is_of_organisation(*role))) {
      return model::fail(Errc::invalid_argument,
                         "roles: there is no role " + name + (in_project ? " in a project" : "") +
                             "; there are: " + text::joined(roles_to_give(in_project)));
    }
    // This role's rights reach beyond the organisation.
    if (role == Role::platform_admin && !principal.has(Role::platform_admin)) {
      return model::fail(Errc::permission_denied, "the role platformAdmin is needed to give it");
    }
  }
  return {};
}

// Finds a project by its id or its name.
Result<std::string> find_project(const std::string& wanted, const Principal& principal,
                                 AccountServices& services) {
  auto projects = services.store.assets().projects(principal.organisation_id);
  if (!projects) return model::fail(store_error(projects.error()));
  for (const store::ProjectInfo& project : *projects) {
    if (project.id == wanted || project.name == wanted) return project.id;
  }
  return model::fail(Errc::not_found, "there is no such project");
}

Result<store::Accounts::NewUser> read_user(const Call& call, AccountServices& services) {
  store::Accounts::NewUser user;
  std::string project;
  std::vector<std::string> roles;
  auto body = read_object(call.request, {{"email", &user.email},
                                         {"name", &user.name},
                                         {"password", &user.password},
                                         {"project", &project},
                                         {"roles", &roles}});
  if (!body) return model::fail(body.error());
  if (user.name.size() > max_display_name_bytes) {
    return model::fail(Errc::invalid_argument, "name has 200 bytes at most");
  }
  if (user.name.empty()) user.name = user.email;
  if (auto may = check_roles(roles, !project.empty(), *call.principal); !may) {
    return model::fail(may.error());
  }
  if (project.empty()) {
    user.roles = std::move(roles);
    return user;
  }
  auto id = find_project(project, *call.principal, services);
  if (!id) return model::fail(id.error());
  user.membership = {std::move(*id), std::move(roles)};
  return user;
}

Result<Response> create_user(const Call& call, AccountServices& services) {
  auto wanted = read_user(call, services);
  if (!wanted) return model::fail(wanted.error());
  const auto made = services.store.accounts().create_user(call.principal->organisation_id, *wanted);
  return from_store(made).map([](const store::User& user) {
    return json_response(status::created, {{"_id", user.id}, {"email", user.email}});
  });
}

const Shape<store::User>& user_shape() {
  static const Shape<store::User> shape(
      "User", {{"_id", id(), &store::User::id},
               {"email", text(1), &store::User::email},
               {"name", text(), &store::User::name},
               {"roles", list_of(one_of(names_of_roles())), &store::User::roles},
               {"hasPassword", boolean(), &store::User::has_password},
               {"createdAt", unix_time(), &store::User::created_at}});
  return shape;
}

Result<Response> list_users(const Call& call, AccountServices& services) {
  return items_response(services.store.accounts().users(call.principal->organisation_id),
                        user_shape());
}

Result<Response> set_password(const Call& call, AccountServices& services) {
  std::string email;
  std::string password;
  auto body = read_object(call.request, {{"user", &email}, {"password", &password}});
  if (!body) return model::fail(body.error());
  auto user = user_to_manage(services.store, *call.principal, email);
  if (!user) return model::fail(user.error());
  auto& accounts = services.store.accounts();
  return from_store(accounts.set_password(user->organisation_id, user->id, password))
      .map(no_content);
}

Schema new_user_schema() {
  Schema schema =
      object({{"email", email()},
              {"name",
               described("At most " + std::to_string(max_display_name_bytes) + " bytes in UTF-8.",
                         nullable(text(0, max_display_name_bytes))),
               Need::optional},
              {"password", nullable(new_password_schema()), Need::optional},
              {"project", described("Its id or name.", nullable(text())), Need::optional},
              {"roles",
               described("Roles in the project if one is given, otherwise in the organisation.",
                         nullable(list_of(one_of(names_of_roles())))),
               Need::optional}});
  auto names = names_of_roles();
  std::erase_if(names, [](std::string_view name) { return is_of_organisation(*role_from(name)); });
  const Schema project_roles = nullable(list_of(one_of(names)));
  schema = with_condition(std::move(schema), has_text("project"),
                          object({{"roles", project_roles, Need::optional}}), anything());
  return named("UserCreation", std::move(schema));
}

Description describe_create_user() {
  return {.summary = "Add a user",
          .body = json_content(new_user_schema()),
          .answers = {{.status = status::created,
                       .description = "The user.",
                       .content = json_content(
                           named("CreatedUser", object({{"_id", id()}, {"email", text(1)}}))),
                       .links = {{"setRoles", "setUserRoles", "userId", "$response.body#/_id"},
                                 {"remove", "removeUser", "userId", "$response.body#/_id"}}}},
          .errors = {404, 409}};
}

Description describe_list_users() {
  return {.summary = "List the users of the organisation",
          .answers = {json_answer("The users.", items_of(user_shape().schema()))}};
}

Description describe_set_password() {
  const auto body =
      object({{"password", new_password_schema()},
              {"user", described("An e-mail address; default: your own.", nullable(text())),
               Need::optional}});
  return {.summary = "Set a password",
          .details =
              "Other users' passwords require the role `userAdmin`. Tokens of sign-ins with the "
              "old password end.",
          .body = json_content(named("PasswordChange", body)),
          .answers = {empty_answer("The password is set.")},
          .errors = {404}};
}

// The user in the path, if the principal may manage the user.
Result<store::User> managed_user(const Call& call, AccountServices& services) {
  const Principal& principal = *call.principal;
  auto id = id_of(call, "userId");
  if (!id) return model::fail(id.error());
  auto user = services.store.accounts().user(principal.organisation_id, *id);
  if (!user) return model::fail(store_error(user.error()));
  if (auto may = may_manage(principal, *user); !may) return model::fail(may.error());
  return user;
}

Result<Response> set_roles(const Call& call, AccountServices& services) {
  auto user = managed_user(call, services);
  if (!user) return model::fail(user.error());
  std::vector<std::string> roles;
  auto body = read_object(call.request, {{"roles", &roles}});
  if (!body) return model::fail(body.error());
  // A missing member would remove every role by mistake.
  if (!body->contains("roles")) return model::fail(Errc::invalid_argument, "roles is required");
  if (auto may = check_roles(roles, false, *call.principal); !may) return model::fail(may.error());
  auto& accounts = services.store.accounts();
  return from_store(accounts.set_roles(user->organisation_id, user->id, roles)).map([&] {
    return ok({{"_id", user->id}, {"email", user->email}, {"roles", roles}});
  });
}

Result<Response> remove_user(const Call& call, AccountServices& services) {
  auto user = managed_user(call, services);
  if (!user) return model::fail(user.error());
  return from_store(services.store.accounts().remove_user(user->organisation_id, user->id))
      .map(no_content);
}

Description describe_set_roles() {
  const auto roles = list_of(one_of(names_of_roles()));
  const auto body = object({{"roles", described("The complete new list of roles.", roles)}});
  const auto user = object({{"_id", id()}, {"email", text(1)}, {"roles", roles}});
  return {.summary = "Set the roles of a user in the organisation",
          .details =
              "409 for the only user who can administer the platform. The API keys and tokens of a "
              "user who becomes a platformAdmin end.",
          .body = json_content(named("UserRoles", body)),
          .answers = {json_answer("The user.", named("UserWithRoles", user))},
          .errors = {404, 409}};
}

Description describe_remove_user() {
  return {.summary = "Remove a user",
          .details =
              "The user's API keys, tokens, sign-ins and memberships end. 409 for the only user "
              "who can administer the platform.",
          .answers = {empty_answer("The user is removed.")},
          .errors = {404, 409}};
}

// The API documents only the error 400 for this operation.
model::Error bad_request(const model::Error& error) {
  const bool is_of_user = error.code == Errc::not_found || error.code == Errc::conflict;
  return is_of_user ? model::Error{Errc::invalid_argument, error.message} : store_error(error);
}

Result<Response> deprecate_password(const Call& call, AccountServices& services) {
  std::string text;
  auto body = read_object(call.request, {{"userId", &text}});
  if (!body) return model::fail(body.error());
  auto id = checked_id("userId", text);
  if (!id) return model::fail(id.error());
  const Principal& principal = *call.principal;
  auto& accounts = services.store.accounts();
  auto user = accounts.user(principal.organisation_id, *id).map_error(bad_request);
  if (!user) return model::fail(user.error());
  if (!principal.has(Role::user_admin)) {
    return model::fail(Errc::permission_denied, "the role userAdmin is needed");
  }
  if (auto may = may_manage(principal, *user); !may) return model::fail(may.error());
  return accounts.set_password(principal.organisation_id, *id, std::nullopt)
      .map_error(bad_request)
      .map([&] {
        return document_response(call.request, call.exchange.instance, status::ok,
                                 {.name = "confirmation", .value = {{"deprecated", true}}});
      });
}

Description describe_deprecate_password() {
  const auto done = object({{"deprecated", constant(true)}});
  return {.summary = "Deprecate the password of a user",
          .details =
              "The password no longer signs the user in, and the tokens of its sign-ins end. 400 "
              "for an unknown user, and for the only user who can administer the platform.",
          .body = json_content(named("PasswordOwner", object({{"userId", id()}}))),
          .answers = {{.description = "The password is deprecated.",
                       .content = representations("confirmation", named("Confirmation", done))}}};
}

}  // namespace

Operations users_operations() {
  static constexpr Operation rows[] = {
      with_password(for_operators("createUser", Method::post, "/management/users", Role::user_admin,
                                  create_user, describe_create_user)),
      for_operators("listUsers", Method::get, "/management/users", Role::user_admin, list_users,
                    describe_list_users),
      with_password(for_operators("setPassword", Method::post, "/management/users/password",
                                  Role::member, set_password, describe_set_password)),
      for_operators("setUserRoles", Method::put, "/management/users/{userId}/roles",
                    Role::user_admin, set_roles, describe_set_roles),
      for_operators("removeUser", Method::delete_, "/management/users/{userId}", Role::user_admin,
                    remove_user, describe_remove_user),
      for_clients("deprecatePassword_2_0", Method::post, "/v2.0/users/deprecatepassword",
                  Role::user_admin, deprecate_password, describe_deprecate_password),
  };
  return rows;
}

}  // namespace conversed::api
