#include "daemon/ctl/lookup.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "daemon/ctl/fields.h"

namespace conversed::ctl {

using model::Errc;
using model::fail;
using model::Result;

Result<std::string> find_id(Client& client, const std::string& path, std::string_view what,
                            const std::string& id_or_name) {
  auto list = client.manage("GET", path);
  if (!list) return fail(list.error());
  std::string names;
  for (const Fields& item : Fields(*list).items()) {
    auto id = item.text("_id");
    const auto name = item.text("name");
    if (id == id_or_name || name == id_or_name) return id;
    names += (names.empty() ? "" : ", ") + name;
  }
  return fail(Errc::not_found, "there is no " + std::string(what) + " '" + id_or_name + "'" +
                                   (names.empty() ? "" : "; there are: " + names));
}

std::string parameters(const std::vector<std::pair<const char*, std::string>>& names_and_values) {
  std::string all;
  for (const auto& [name, value] : names_and_values) {
    if (value.empty()) continue;
    if (!all.empty()) all += '&';
    all += name + ("=" + encode(value));
  }
  return all;
}

Result<std::string> find_project(Client& client, const Values&, const std::string& id_or_name) {
  return find_id(client, "/management/projects", "project", id_or_name);
}

Result<std::string> find_in_project(Client& client, const Values& values, std::string path,
                                    std::string_view what, const std::string& id_or_name) {
  if (const auto& named = values.text("--project"); !named.empty()) {
    auto project = find_project(client, values, named);
    if (!project) return project;
    path += "?projectId=" + encode(*project);
  }
  return find_id(client, path, what, id_or_name);
}

Result<std::string> find_flow(Client& client, const Values& values, const std::string& id_or_name) {
  return find_in_project(client, values, "/management/flows", "Flow", id_or_name);
}

Result<nlohmann::json> fetch_pages(Client& client, const std::string& path, std::size_t limit,
                                   const std::string& after) {
  constexpr std::size_t most_a_page = 100;
  auto items = nlohmann::json::array();
  nlohmann::json next = after;
  const char* const first = path.find('?') == std::string::npos ? "?" : "&";
  do {
    std::string query = "limit=" + std::to_string(std::min(limit - items.size(), most_a_page));
    const auto from = next.is_string() ? next.get<std::string>() : next.dump();
    if (!from.empty()) query += "&after=" + encode(from);
    auto page = client.manage("GET", path + first + query);
    if (!page) return fail(page.error());
    const Fields fields(*page);
    for (const auto& item : fields.any("items")) items.push_back(item);
    next = fields.has("next") ? fields.any("next") : nlohmann::json();
  } while (items.size() < limit && !next.is_null());
  return nlohmann::json{{"items", std::move(items)}, {"next", std::move(next)}};
}

}  // namespace conversed::ctl
