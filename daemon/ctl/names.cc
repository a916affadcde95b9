#include "daemon/ctl/names.h"

#include <algorithm>
#include <vector>

#include "store/model/ids.h"
#include "store/text/ascii.h"
#include "store/text/joined.h"

namespace conversed::ctl {
namespace {

using model::Errc;
using model::fail;
using model::Result;

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
Result<std::string> find_in_projects(Client& client, const Values& values, NamedObjects objects,
                                     const std::string& wanted) {
  const std::string path = objects.path + "?projectId=";
  if (const auto& named = values.text("--project"); !named.empty()) {
    auto project = find_project(client, values, named);
    if (!project) return project;
    objects.path = path + encode(*project);
    return find_object(client, objects, wanted);
  }
  auto projects = client.manage("GET", "/management/projects");
  if (!projects) return fail(projects.error());
  Found found;
  Result<void> last;
  bool was_read = false;
  for (const Fields& project : Fields(*projects).items()) {
    objects.path = path + encode(project.text("_id"));
    last = search(client, objects, wanted, " in " + project.text("name"), found);
    was_read = was_read || last;
    if (found.by_id) break;
  }
  if (!was_read && !last) return fail(last.error());
  return only_one(objects, wanted, std::move(found));
}

}  // namespace

Result<std::string> find_object(Client& client, const NamedObjects& objects,
                                const std::string& wanted) {
  Found found;
  if (auto read = search(client, objects, wanted, "", found); !read) return fail(read.error());
  return only_one(objects, wanted, std::move(found));
}

Result<std::string> find_project(Client& client, const Values&, const std::string& wanted) {
  return find_object(client, {"project", "/management/projects"}, wanted);
}

Result<std::string> find_flow(Client& client, const Values& values, const std::string& wanted) {
  return find_in_projects(client, values, {"Flow", "/management/flows"}, wanted);
}

Result<std::string> find_connection(Client& client, const Values& values,
                                    const std::string& wanted) {
  return find_in_projects(client, values, {"Connection", "/management/connections"}, wanted);
}

Result<std::string> find_endpoint(Client& client, const Values& values, const std::string& wanted) {
  constexpr std::size_t token_length = 64;
  const bool is_token = wanted.size() == token_length &&
                        wanted.find_first_not_of("0123456789abcdefABCDEF") == std::string::npos;
  if (is_token) return wanted;
  const NamedObjects objects{"Endpoint", "/management/endpoints", "name", "_id", "URLToken"};
  return find_in_projects(client, values, objects, wanted);
}

Result<std::string> find_user(Client& client, const Values&, const std::string& wanted) {
  return find_object(client, {"user", "/management/users", "email"}, wanted);
}

Result<std::string> find_api_key(Client& client, const Values&, const std::string& wanted) {
  return find_object(client, {"API key", "/management/apikeys"}, wanted);
}

Result<std::string> find_oauth_client(Client& client, const Values&, const std::string& wanted) {
  return find_object(client, {"client", "/management/oauth/clients", "name", "clientId"}, wanted);
}

Result<std::string> find_organisation(Client& client, const Values&, const std::string& wanted) {
  return find_object(client, {"organisation", "/management/organisations"}, wanted);
}

}  // namespace conversed::ctl
