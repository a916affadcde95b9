#pragma once

#include <string>
#include <string_view>

#include "daemon/ctl/client.h"
#include "daemon/ctl/command.h"

// Finds objects by their ids or names, as people type them.
//
// An id wins over a name. Errors: `not_found` with the names that exist, `conflict` with the ids of
// several objects that have the name, and all errors of the lists that are read.
namespace conversed::ctl {

// A list of objects with names.
struct NamedObjects {
  std::string_view what;  // the kind of object
  std::string path;
  const char* name = "name";  // members of an item; e-mail addresses have no case
  const char* id = "_id";
  const char* result = id;  // what commands send
};
[[nodiscard]] model::Result<std::string> find_object(Client& client, const NamedObjects& objects,
                                                     const std::string& wanted);

// The kinds of objects, for `Option::found_by`. Objects of projects are searched in the project of
// `--project`, or without it in all projects.
[[nodiscard]] model::Result<std::string> find_project(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_flow(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_connection(Client&, const Values&,
                                                         const std::string&);
// The URLToken of an Endpoint. A text of the form of a URLToken is taken as it is, without a
// request.
[[nodiscard]] model::Result<std::string> find_endpoint(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_user(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_api_key(Client&, const Values&, const std::string&);
[[nodiscard]] model::Result<std::string> find_oauth_client(Client&, const Values&,
                                                           const std::string&);
[[nodiscard]] model::Result<std::string> find_organisation(Client&, const Values&,
                                                           const std::string&);

}  // namespace conversed::ctl
