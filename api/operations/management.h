#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "api/auth/principal.h"
#include "api/openapi/shape.h"
#include "api/operation.h"
#include "api/operations/objects.h"
#include "api/replies.h"
#include "api/representation/message_body.h"
#include "api/representation/query.h"
#include "api/services.h"
#include "store/accounts/accounts.h"
#include "store/assets/assets.h"
#include "store/model/result.h"

// What the management operations have in common. They run on the management pool, so all of this
// may block.
namespace conversed::api {

// The projects of the principal's organisation in which it holds the role.
[[nodiscard]] model::Result<std::vector<store::ProjectInfo>> projects_with(
    store::Store& store, const Principal& principal, Role role);

// The project of the query parameter `projectId`; without one, the only project in which the
// principal holds the role. Errors: `not_found` (also foreign), `permission_denied`,
// `invalid_argument` when there are several to choose from.
[[nodiscard]] model::Result<store::ProjectInfo> project_of(store::Store& store, const Call& call,
                                                           Role role);

// The session that `URLToken`, `userId` and `sessionId` name, for a principal with
// conversationAdmin in its project. Whether it exists is not checked.
[[nodiscard]] model::Result<model::SessionKey> session_of(AssetsCache& assets,
                                                          const Principal& principal,
                                                          std::string_view url_token,
                                                          std::string_view user_id,
                                                          std::string_view session_id);

// The query parameter `dryRun`; default false. A word that is neither of the two must not be taken
// for a request that is meant: `invalid_argument`.
[[nodiscard]] model::Result<bool> read_dry_run(const Request& request);

// The body as a JSON object. `invalid_argument` for anything else.
[[nodiscard]] model::Result<nlohmann::json> read_object(const Request& request);

// A string member: empty when absent or null. `invalid_argument` for another type.
[[nodiscard]] model::Result<std::string> text_member(const nlohmann::json& object,
                                                     const char* name);

// A member that is a list of strings: empty when absent or null. `invalid_argument` for anything
// else.
[[nodiscard]] model::Result<std::vector<std::string>> text_list_member(const nlohmann::json& object,
                                                                       const char* name);

// A member that is true or false: false when absent or null.
[[nodiscard]] model::Result<bool> flag_member(const nlohmann::json& object, const char* name);

// What a user, a key or an organisation is called, `name` of the object: 1 to 200 bytes.
// `invalid_argument` for anything else.
inline constexpr std::size_t max_display_name_bytes = 200;
[[nodiscard]] model::Result<std::string> name_member(const nlohmann::json& object);

// The page parameters of the lists: `limit` and `after` (the `next` of the page
// before, 0 begins).
struct PageQuery {
  std::size_t limit = default_page_limit;
  std::int64_t after = 0;
};
[[nodiscard]] model::Result<PageQuery> page_query(const Request& request);

// All of a list: {"items"}.
template <typename Row>
[[nodiscard]] Response items_response(const std::vector<Row>& rows,
                                      const openapi::Shape<Row>& shape) {
  nlohmann::json items = nlohmann::json::array();
  for (const Row& row : rows) items.emplace_back(shape(row));
  return ok({{"items", std::move(items)}});
}

// A page of rows: {"items","next"}. `item` makes JSON of a row; `place` is the member of the last
// row that `after` takes.
template <typename Row, typename Place, typename Item>
[[nodiscard]] Response rows_response(const std::vector<Row>& rows, const PageQuery& page,
                                     Place Row::*place, Item item) {
  nlohmann::json items = nlohmann::json::array();
  for (const Row& row : rows) items.emplace_back(item(row));
  const bool is_full = rows.size() == page.limit;
  return ok({{"items", std::move(items)},
             {"next", is_full ? nlohmann::json(rows.back().*place) : nlohmann::json()}});
}

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

// {"projectId","endpointId","userId","sessionId"} of a session.
[[nodiscard]] nlohmann::json session_names(const model::SessionKey& key);

// Unix seconds, as every time in the API.
[[nodiscard]] std::int64_t unix_seconds(model::Timestamp time);

}  // namespace conversed::api
