#include "daemon/ctl/lookup.h"

#include <array>
#include <ctime>
#include <nlohmann/json.hpp>

namespace conversed::ctl {

using model::Errc;
using model::fail;
using model::Result;

Result<nlohmann::json> find_item(Client& client, const std::string& path, std::string_view what,
                                 const std::string& id_or_name) {
  auto list = client.manage("GET", path);
  if (!list) return fail(list.error());
  std::string names;
  for (const auto& item : list->at("items")) {
    const auto name = item.value("name", "");
    if (item.value("_id", "") == id_or_name || name == id_or_name) return item;
    names += (names.empty() ? "" : ", ") + name;
  }
  return fail(Errc::not_found, "there is no " + std::string(what) + " '" + id_or_name + "'" +
                                   (names.empty() ? "" : "; there are: " + names));
}

Result<std::string> project_query(Client& client, const std::string& id_or_name) {
  if (id_or_name.empty()) return std::string();
  auto project = find_item(client, "/management/projects", "project", id_or_name);
  if (!project) return fail(project.error());
  return "?projectId=" + encode(project->value("_id", ""));
}

Result<nlohmann::json> find_in_project(Client& client, const std::string& path,
                                       std::string_view what, const std::string& id_or_name,
                                       const std::string& project) {
  auto query = project_query(client, project);
  if (!query) return fail(query.error());
  return find_item(client, path + *query, what, id_or_name);
}

std::string time_text(const nlohmann::json& unix_seconds) {
  if (!unix_seconds.is_number_integer()) return "-";
  const auto seconds = static_cast<std::time_t>(unix_seconds.get<std::int64_t>());
  std::tm parts{};
  std::array<char, 32> text{};
  if (gmtime_r(&seconds, &parts) == nullptr) return "-";
  return {text.data(), std::strftime(text.data(), text.size(), "%Y-%m-%d %H:%M:%S", &parts)};
}

}  // namespace conversed::ctl
