#pragma once

#include <string>
#include <string_view>

#include "api/auth/principal.h"
#include "api/operation.h"
#include "api/services.h"
#include "store/assets/assets.h"
#include "store/model/result.h"

// From the ids in a path to objects that the principal may use. A foreign object is the very error
// of a missing one; on an own one without the role it is `permission_denied`.
namespace conversed::api {

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

}  // namespace conversed::api
