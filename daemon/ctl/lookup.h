#pragma once

#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "daemon/ctl/command.h"

// From names on the command line to ids, and from pages to lists.
namespace conversed::ctl {

// The id of the item with this id or name in the list at `path`. `not_found`, with the names of the
// list; `what` names the kind of item.
[[nodiscard]] model::Result<std::string> find_id(Client& client, const std::string& path,
                                                 std::string_view what,
                                                 const std::string& id_or_name);

// `name=value` of each value that is not empty, with `&` between them.
[[nodiscard]] std::string parameters(
    const std::vector<std::pair<const char*, std::string>>& names_and_values);

// The id of the project of this id or name.
[[nodiscard]] model::Result<std::string> find_project(Client& client, const Values& values,
                                                      const std::string& id_or_name);

// The id of an item in the list of the project of `--project`, such as `/management/flows`. Without
// a project the daemon takes the only one that there is.
[[nodiscard]] model::Result<std::string> find_in_project(Client& client, const Values& values,
                                                         std::string path, std::string_view what,
                                                         const std::string& id_or_name);
[[nodiscard]] model::Result<std::string> find_flow(Client& client, const Values& values,
                                                   const std::string& id_or_name);

// Up to `limit` items of the list at `path`, from behind `after` on (empty: from the beginning), as
// `{"items", "next"}`. Reads as many pages as that takes: a page may be short.
[[nodiscard]] model::Result<nlohmann::json> fetch_pages(Client& client, const std::string& path,
                                                        std::size_t limit,
                                                        const std::string& after = {});

}  // namespace conversed::ctl
