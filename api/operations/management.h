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

// Shared by the operations: finds the objects that a principal may use by ids in a path, and makes
// answers of the store's rows. All functions here may block.
namespace conversed::api {

// ---- Objects
//
// A foreign object has the same error as a missing one. An object of the principal's own
// organisation without the role is `permission_denied`.

// An id in the path or query. `invalid_argument` unless it has 24 characters of a-z and 0-9.
[[nodiscard]] model::Result<std::string> id_of(const Call& call, std::string_view parameter);
[[nodiscard]] model::Result<std::string> checked_id(std::string_view parameter,
                                                    std::string_view value);

// The project, for a principal with the role in it. `missing` is the error message for its absence.
[[nodiscard]] model::Result<store::ProjectInfo> open_project(
    store::Store& store, const Principal& principal, const std::string& project_id, Role role,
    std::string_view missing = "there is no such project");

// The project in the path, for a principal with the operation's role in it.
[[nodiscard]] model::Result<store::ProjectInfo> path_project(store::Store& store, const Call& call);

// Checks the role for an object that the principal can see: `permission_denied` without it.
[[nodiscard]] model::Result<void> require_role(const Principal& principal,
                                               const store::ProjectInfo& project, Role role);

// The project of an object that was `found` in the store, for a principal with the role in it.
// `missing` is the error message for the object's absence.
[[nodiscard]] model::Result<store::ProjectInfo> open_owner(store::Store& store,
                                                           const Principal& principal,
                                                           const model::Result<std::string>& found,
                                                           Role role, std::string_view missing);

// The Flow in the path, for a principal with the operation's role in its project.
struct PathFlow {
  std::string id;
  store::ProjectInfo project;
};
[[nodiscard]] model::Result<PathFlow> path_flow(store::Store& store, const Call& call);
inline constexpr std::string_view missing_flow = "there is no such Flow";

// The projects of the principal's organisation in which it holds the role.
[[nodiscard]] model::Result<std::vector<store::ProjectInfo>> projects_with(
    store::Store& store, const Principal& principal, Role role);

// The project of the query parameter `projectId`. Without the parameter, the only project in which
// the principal holds the role. Errors: `not_found` (also for a foreign project),
// `permission_denied`, `invalid_argument` if there are several projects.
[[nodiscard]] model::Result<store::ProjectInfo> project_of(store::Store& store, const Call& call,
                                                           Role role);

// Whether the principal, who may manage users, may manage this user: make or remove a credential,
// change the roles, or remove the user. A userAdmin gives every role of the organisation, so only
// platformAdmins have more rights. A credential of a platformAdmin makes its holder one, and an
// installation without a platformAdmin can never get one again. Otherwise `permission_denied`.
[[nodiscard]] model::Result<void> may_manage(const Principal& principal, const store::User& user);

// The user for whom a password or key is made: the user of the e-mail address, or the principal if
// it is empty. `permission_denied` unless the principal is that user, or manages users and
// may_manage this one. `not_found` only after that check.
[[nodiscard]] model::Result<store::User> user_to_manage(store::Store& store,
                                                        const Principal& principal,
                                                        const std::string& email);

[[nodiscard]] openapi::Schema new_password_schema();

// Texts that text::parse_duration takes.
[[nodiscard]] openapi::Schema duration_schema();
[[nodiscard]] openapi::Schema duration_or_empty_schema();

// The session that `URLToken`, `userId` and `sessionId` name, for a principal with
// conversationAdmin in its project. Does not check that the session exists.
[[nodiscard]] model::Result<model::SessionKey> session_of(AssetsCache& assets,
                                                          const Principal& principal,
                                                          std::string_view url_token,
                                                          std::string_view user_id,
                                                          std::string_view session_id);

// The object of the path that is `found` in one of the principal's projects, for a principal with
// the operation's role there. `missing` is the error message for its absence.
template <typename Found>
[[nodiscard]] auto find_in_projects(store::Store& store, const Call& call, Found found,
                                    std::string_view missing) -> decltype(found(std::string())) {
  auto projects = projects_with(store, *call.principal, Role::member);
  if (!projects) return model::fail(projects.error());
  std::optional<model::Error> failure;  // of a shard that may have the object
  for (const store::ProjectInfo& project : *projects) {
    auto object = found(project.id);
    if (!object && object.error().code == model::Errc::not_found) continue;
    if (!object) {
      failure = object.error();
      continue;
    }
    if (auto may = require_role(*call.principal, project, call.operation.role); !may) {
      return model::fail(may.error());
    }
    return object;
  }
  if (failure) return model::fail(store_error(*failure));
  return model::fail(model::Errc::not_found, std::string(missing));
}

// The name of a user, a key or an organisation: 1 to 200 bytes. `invalid_argument` otherwise.
inline constexpr std::size_t max_display_name_bytes = 200;
[[nodiscard]] model::Result<void> check_display_name(std::string_view name);

// ---- Answers
//
// These take results of the store. A store failure is answered without the store's message.

// A whole list: {"items"}.
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

// A page of rows: {"items","next"}. `item` makes JSON of a row. `place` is the member of the last
// row that becomes `next`.
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

// The same of a page that knows its `next`, which may be there although the page is not full.
template <typename Page, typename Item>
[[nodiscard]] model::Result<Response> page_response(const model::Result<Page>& found,
                                                    const Item& item) {
  return from_store(found).map([&](const Page& page) {
    nlohmann::json items = nlohmann::json::array();
    for (const auto& row : page.rows) items.emplace_back(item(row));
    return ok({{"items", std::move(items)},
               {"next", page.next ? nlohmann::json(*page.next) : nlohmann::json()}});
  });
}

}  // namespace conversed::api
