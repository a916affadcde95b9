#pragma once

#include <nlohmann/json_fwd.hpp>
#include <string>
#include <string_view>

#include "daemon/ctl/client.h"

// What people call by name, and the management routes by id.
namespace conversed::ctl {

// The item of the list at `path` with this id or name. `not_found`, with the names that there are;
// `what` is what such a thing is called.
[[nodiscard]] model::Result<nlohmann::json> find_item(Client& client, const std::string& path,
                                                      std::string_view what,
                                                      const std::string& id_or_name);

// `?projectId=ID` for the project of this id or name; nothing for an empty one, so that the daemon
// takes the only one there is.
[[nodiscard]] model::Result<std::string> project_query(Client& client,
                                                       const std::string& id_or_name);

// An item of a project, as of `/management/flows`.
[[nodiscard]] model::Result<nlohmann::json> find_in_project(Client& client, const std::string& path,
                                                            std::string_view what,
                                                            const std::string& id_or_name,
                                                            const std::string& project);

// Unix seconds in UTC, as `2026-11-21 14:03:59`; `-` for null.
[[nodiscard]] std::string time_text(const nlohmann::json& unix_seconds);

}  // namespace conversed::ctl
