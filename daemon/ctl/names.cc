#include "daemon/ctl/names.h"

#include <map>
#include <utility>

#include "store/model/ids.h"
#include "store/text/ascii.h"
#include "store/text/joined.h"

namespace conversed::ctl {
namespace {

using model::Errc;
using model::fail;
using model::Result;

// A list of objects with names.
struct NamedObjects {
  std::string_view what;  // the kind of object
  std::string path;
  const char* name = "name";  // members of an item; e-mail addresses have no case
  const char* id = "_id";
  const char* result = "_id";  // what commands send
  bool are_in_projects = false;
};

struct Found {
  std::string result;  // of the last object that fits
  bool by_id = false;
  std::vector<std::string> candidates;  // `ID` or `ID in PROJECT`, by name
  std::vector<std::string> names;       // of all objects
};

bool same_name(const NamedObjects& objects, const std::string& a, const std::string& b) {
  return std::string_view(objects.name) == "email" ? text::equals_ignoring_case(a, b) : a == b;
}

Result<void> search(Client& client, const NamedObjects& objects, const std::string& wanted,
                    const std::string& place, Found& found) {
  auto list = client.manage("GET", objects.path);
  if (!list) return fail(list.error());
  for (const Fields& item : Fields(*list).items()) {
    const auto id = item.text(objects.id);
    auto name = item.text(objects.name);
    found.by_id = id == wanted;
    if (found.by_id || same_name(objects, name, wanted)) {
      found.result = item.text(objects.result);
      if (found.by_id) return {};
      found.candidates.push_back(id + place);
    }
    found.names.push_back(std::move(name));
  }
  return {};
}

Result<std::string> only_one(const NamedObjects& objects, const std::string& wanted, Found found) {
  const auto named = std::string(objects.what) + " '" + wanted + "'";
  if (found.by_id || found.candidates.size() == 1) return std::move(found.result);
  if (!found.candidates.empty()) {
    return fail(Errc::conflict, "there are several: " + named + "; give the id of one:\n  " +
                                    text::joined(found.candidates, "\n  "));
  }
  constexpr std::size_t most_names = 20;
  const bool is_long = found.names.size() > most_names;
  if (is_long) found.names.resize(most_names);
  std::string names = found.names.empty() ? "" : "; there are: " + text::joined(found.names);
  return fail(Errc::not_found, "there is no " + named + names + (is_long ? ", …" : ""));
}

// Without `--project`: projects in which the user may not read the list are left out.
Result<Found> search_projects(Client& client, const Values& values, NamedObjects objects,
                              const std::string& wanted) {
  const std::string path = objects.path + "?projectId=";
  Found found;
  if (const auto& named = values.text("--project"); !named.empty()) {
    auto project = find_project(client, values, named);
    if (!project) return fail(project.error());
    objects.path = path + encode(*project);
    auto read = search(client, objects, wanted, "", found);
    return read.map([&] { return std::move(found); });
  }
  auto projects = client.manage("GET", "/management/projects");
  if (!projects) return fail(projects.error());
  Result<void> last;
  bool was_read = false;
  for (const Fields& project : Fields(*projects).items()) {
    objects.path = path + encode(project.text("_id"));
    last = search(client, objects, wanted, " in " + project.text("name"), found);
    was_read = was_read || last;
    if (found.by_id) break;
  }
  if (!was_read && !last) return fail(last.error());
  return found;
}

Result<Found> search_all(Client& client, const Values& values, const NamedObjects& objects,
                         const std::string& wanted) {
  if (objects.are_in_projects) return search_projects(client, values, objects, wanted);
  Found found;
  auto read = search(client, objects, wanted, "", found);
  return read.map([&] { return std::move(found); });
}

Result<std::string> find(Client& client, const Values& values, const NamedObjects& objects,
                         const std::string& wanted) {
  auto found = search_all(client, values, objects, wanted);
  if (!found) return fail(found.error());
  return only_one(objects, wanted, *std::move(found));
}

const NamedObjects projects{"project", "/management/projects"};
const NamedObjects flows{.what = "Flow", .path = "/management/flows", .are_in_projects = true};
const NamedObjects connections{
    .what = "Connection", .path = "/management/connections", .are_in_projects = true};
const NamedObjects endpoints{.what = "Endpoint",
                             .path = "/management/endpoints",
                             .result = "URLToken",
                             .are_in_projects = true};
const NamedObjects endpoint_ids{
    .what = "Endpoint", .path = "/management/endpoints", .are_in_projects = true};
const NamedObjects users{.what = "user", .path = "/management/users", .name = "email"};
const NamedObjects api_keys{"API key", "/management/apikeys"};
const NamedObjects tokens{"token", "/management/tokens"};
const NamedObjects oauth_clients{
    .what = "client", .path = "/management/oauth/clients", .id = "clientId", .result = "clientId"};
const NamedObjects organisations{"organisation", "/management/organisations"};

}  // namespace

Result<std::string> find_project(Client& client, const Values& values, const std::string& wanted) {
  return find(client, values, projects, wanted);
}

Result<std::string> find_flow(Client& client, const Values& values, const std::string& wanted) {
  return find(client, values, flows, wanted);
}

Result<std::string> find_connection(Client& client, const Values& values,
                                    const std::string& wanted) {
  return find(client, values, connections, wanted);
}

Result<std::string> find_endpoint(Client& client, const Values& values, const std::string& wanted) {
  constexpr std::size_t token_length = 64;
  const bool is_token = wanted.size() == token_length &&
                        wanted.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  return is_token ? wanted : find(client, values, endpoints, wanted);
}

Result<std::string> find_endpoint_id(Client& client, const Values& values,
                                     const std::string& wanted) {
  return find(client, values, endpoint_ids, wanted);
}

Result<std::string> find_user(Client& client, const Values& values, const std::string& wanted) {
  return find(client, values, users, wanted);
}

Result<std::string> find_api_key(Client& client, const Values& values, const std::string& wanted) {
  return find(client, values, api_keys, wanted);
}

Result<std::string> find_token(Client& client, const Values& values, const std::string& wanted) {
  return find(client, values, tokens, wanted);
}

Result<std::string> find_oauth_client(Client& client, const Values& values,
                                      const std::string& wanted) {
  return find(client, values, oauth_clients, wanted);
}

Result<std::string> find_organisation(Client& client, const Values& values,
                                      const std::string& wanted) {
  return find(client, values, organisations, wanted);
}

Result<std::vector<std::string>> names_for(Client& client, const Values& values, Find finder) {
  static const std::map<Find, const NamedObjects*> kinds{
      {find_project, &projects},           {find_flow, &flows},
      {find_connection, &connections},     {find_endpoint, &endpoints},
      {find_endpoint_id, &endpoint_ids},   {find_user, &users},
      {find_api_key, &api_keys},           {find_token, &tokens},
      {find_oauth_client, &oauth_clients}, {find_organisation, &organisations}};
  const auto kind = kinds.find(finder);
  if (kind == kinds.end()) return std::vector<std::string>();
  return search_all(client, values, *kind->second, "").map([](Found found) {
    return std::move(found.names);
  });
}

}  // namespace conversed::ctl
