#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "api/auth/principal.h"
#include "api/openapi/shape.h"
#include "api/operation.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "api/services.h"
#include "store/accounts/accounts.h"
#include "store/assets/assets.h"
#include "store/model/result.h"

// What operations have in common: from the ids in a path to objects that the principal may use, and
// from rows of the store to answers. All of this may block.
namespace conversed::api {

// ---- Objects
//
// A foreign object is the very error of a missing one; on an own one without the role it is
// `permission_denied`.

// A path's or query's id. `invalid_argument` unless it has 24 characters of a-z and 0-9.
[[nodiscard]] model::Result<std::string> id_of(const Call& call, std::string_view parameter);
[[nodiscard]] model::Result<std::string> checked_id(std::string_view parameter,
                                                    std::string_view value);

// The project, for a principal with the role in it. `missing` is what its absence is called.
[[nodiscard]] model::Result<store::ProjectInfo> open_project(
    store::Store& store, const Principal& principal, const std::string& project_id, Role role,
    std::string_view missing = "there is no such project");

// The project that the path names, for a principal with the operation's role in it.
[[nodiscard]] model::Result<store::ProjectInfo> path_project(store::Store& store, const Call& call);

// The role, for an object that the principal can see: `permission_denied` without it.
[[nodiscard]] model::Result<void> require_role(const Principal& principal,
                                               const store::ProjectInfo& project, Role role);

// The project of an object, as `found` in the store, for a principal with the role in it. `missing`
// is what the object's absence is called.
[[nodiscard]] model::Result<store::ProjectInfo> open_owner(store::Store& store,
                                                           const Principal& principal,
                                                           const model::Result<std::string>& found,
                                                           Role role, std::string_view missing);

// The projects of the principal's organisation in which it holds the role.
[[nodiscard]] model::Result<std::vector<store::ProjectInfo>> projects_with(
    store::Store& store, const Principal& principal, Role role);

// The project of the query parameter `projectId`; without one, the only project in which the
// principal holds the role. Errors: `not_found` (also foreign), `permission_denied`,
// `invalid_argument` when there are several to choose from.
[[nodiscard]] model::Result<store::ProjectInfo> project_of(store::Store& store, const Call& call,
                                                           Role role);

// Whether the principal, who may manage users, may manage this one: make a credential for the user,
// take one away, change the roles, or remove the user. A userAdmin gives every role of the
// organisation, so only platformAdmins have more rights than that. A credential of a platformAdmin
// makes its holder one, and an installation without any can get none. `permission_denied`
// otherwise.
[[nodiscard]] model::Result<void> may_manage(const Principal& principal, const store::User& user);

// The user whose password or key is to be made: of the e-mail address, or of an empty one the
// principal. `permission_denied` unless the principal is that user, or manages users and
// may_manage this one; only then `not_found`.
[[nodiscard]] model::Result<store::User> user_to_manage(store::Store& store,
                                                        const Principal& principal,
                                                        const std::string& email);

[[nodiscard]] openapi::Schema new_password_schema();

// The session that `URLToken`, `userId` and `sessionId` name, for a principal with
// conversationAdmin in its project. Whether it exists is not checked.
[[nodiscard]] model::Result<model::SessionKey> session_of(AssetsCache& assets,
                                                          const Principal& principal,
                                                          std::string_view url_token,
                                                          std::string_view user_id,
                                                          std::string_view session_id);

// The object of the path that is `found` in one of the principal's projects, for a principal with
// conversationAdmin there. `missing` is what its absence is called.
template <typename Found>
[[nodiscard]] auto find_in_projects(store::Store& store, const Principal& principal, Found found,
                                    std::string_view missing) -> decltype(found(std::string())) {
  auto projects = projects_with(store, principal, Role::member);
  if (!projects) return model::fail(projects.error());
  for (const store::ProjectInfo& project : *projects) {
    auto object = found(project.id);
    if (!object && object.error().code == model::Errc::not_found) continue;
    if (!object) return model::fail(store_error(object.error()));
    if (auto may = require_role(principal, project, Role::conversation_admin); !may) {
      return model::fail(may.error());
    }
    return object;
  }
  return model::fail(model::Errc::not_found, std::string(missing));
}

// The name of a user, a key or an organisation: 1 to 200 bytes. `invalid_argument` for anything
// else.
inline constexpr std::size_t max_display_name_bytes = 200;
[[nodiscard]] model::Result<void> check_display_name(std::string_view name);

// ---- Answers
//
// They take what the store answered. A failure of the store is told without its words.

// All of a list: {"items"}.
template <typename Row>
[[nodiscard]] model::Result<Response> items_response(model::Result<std::vector<Row>> rows,
                                                     const openapi::Shape<Row>& shape) {
  return from_store(std::move(rows)).map([&](const std::vector<Row>& all) {
    return ok({{"items", shape(all)}});
  });
}

// The parameters of a page of rows: `limit` and `after` (the `next` of the page before, 0 begins).
struct PageQuery {
  std::size_t limit = default_page_limit;
  std::int64_t after = 0;
};
[[nodiscard]] model::Result<PageQuery> page_query(const Request& request);

// A page of rows: {"items","next"}. `item` makes JSON of a row; `place` is the member of the last
// row that `after` takes.
template <typename Row, typename Place, typename Item>
[[nodiscard]] model::Result<Response> rows_response(const model::Result<std::vector<Row>>& found,
                                                    const PageQuery& page, Place Row::*place,
                                                    const Item& item) {
  return from_store(found).map([&](const std::vector<Row>& rows) {
    nlohmann::json items = nlohmann::json::array();
    for (const Row& row : rows) items.emplace_back(item(row));
    const bool is_full = rows.size() == page.limit;
    return ok({{"items", std::move(items)},
               {"next", is_full ? nlohmann::json(rows.back().*place) : nlohmann::json()}});
  });
}

}  // namespace conversed::api
