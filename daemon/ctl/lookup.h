#pragma once

#include <string>
#include <string_view>

#include "daemon/ctl/client.h"

// What people call by name, and the management routes by id.
namespace conversed::ctl {

// The id of the item with this id or name in the list at `path`. `not_found`, with the names that
// there are; `what` is what such a thing is called.
[[nodiscard]] model::Result<std::string> find_id(Client& client, const std::string& path,
                                                 std::string_view what,
                                                 const std::string& id_or_name);

// A query: `?projectId=ID` for the project of this id or name, and `more` (`name=value`, and so
// on). Without a project the daemon takes the only one that there is.
[[nodiscard]] model::Result<std::string> project_query(Client& client,
                                                       const std::string& id_or_name,
                                                       const std::string& more = {});

// The id of an item of a project, as of `/management/flows`.
[[nodiscard]] model::Result<std::string> find_in_project(Client& client, const std::string& path,
                                                         std::string_view what,
                                                         const std::string& id_or_name,
                                                         const std::string& project);

// The management route of the Flow with this id or name.
[[nodiscard]] model::Result<std::string> flow_route(Client& client, const std::string& id_or_name,
                                                    const std::string& project);

}  // namespace conversed::ctl
