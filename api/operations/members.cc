#include "api/operations/members.h"

#include <nlohmann/json.hpp>

namespace conversed::api {

using model::Errc;
using model::Result;

Result<std::vector<std::string>> text_list_member(const nlohmann::json& object, const char* name) {
  const auto member = object.find(name);
  std::vector<std::string> list;
  if (member == object.end() || member->is_null()) return list;
  const auto wrong = [&] {
    return model::fail(Errc::invalid_argument, std::string(name) + " must be a list of strings");
  };
  if (!member->is_array()) return wrong();
  for (const auto& item : *member) {
    if (!item.is_string()) return wrong();
    list.push_back(item.get<std::string>());
  }
  return list;
}

Result<bool> flag_member(const nlohmann::json& object, const char* name) {
  const auto member = object.find(name);
  if (member == object.end() || member->is_null()) return false;
  if (!member->is_boolean()) {
    return model::fail(Errc::invalid_argument, std::string(name) + " must be true or false");
  }
  return member->get<bool>();
}

}  // namespace conversed::api
