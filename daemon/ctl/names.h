#pragma once

#include <string>
#include <vector>

#include "daemon/ctl/client.h"
#include "daemon/ctl/command.h"

// Finds objects by their ids or names, as people type them.
//
// An id wins over a name. Errors: `not_found` with the names that exist, `conflict` with the ids of
// several objects that have the name, and all errors of the lists that are read.
namespace conversed::ctl {

// The kinds of objects, for `Option::found_by`. Objects of projects are searched in the project of
// `--project`, or without it in all projects.
[[nodiscard]] model::Result<std::string> find_project(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_flow(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_connection(Client&, const Values&,
                                                         const std::string&);
// The names of the objects that a finder finds.
[[nodiscard]] model::Result<std::vector<std::string>> names_for(Client& client,
                                                                const Values& values, Find find);

// The URLToken of an Endpoint. A text of the form of a URLToken is taken as it is, without a
// request.
[[nodiscard]] model::Result<std::string> find_endpoint(Client&, const Values&, const std::string&);
// The id of an Endpoint.
[[nodiscard]] model::Result<std::string> find_endpoint_id(Client&, const Values&,
                                                          const std::string&);
[[nodiscard]] model::Result<std::string> find_user(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_api_key(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_token(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_oauth_client(Client&, const Values&,
                                                           const std::string&);
[[nodiscard]] model::Result<std::string> find_organisation(Client&, const Values&,
                                                           const std::string&);

}  // namespace conversed::ctl
