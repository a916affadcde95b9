#include "flows/located.h"

namespace conversed::flows {

// Not in the class: there, Member is not complete yet.
Located::Located() = default;
Located::Located(nlohmann::json scalar, Place place) : scalar_(std::move(scalar)), place_(place) {}
Located::Located(Kind kind, Place place) : kind_(kind), place_(place) {}

Located Located::array(Place place) {
  return {Kind::array, place};
}

Located Located::object(Place place) {
  return {Kind::object, place};
}

Located Located::from_json(const nlohmann::json& value) {
  if (value.is_array()) {
    Located made = array({});
    made.items_.reserve(value.size());
    for (const auto& item : value) made.items_.push_back(from_json(item));
    return made;
  }
  if (value.is_object()) {
    Located made = object({});
    made.members_.reserve(value.size());
    for (const auto& [name, member] : value.items()) {
      made.members_.push_back({name, {}, from_json(member)});
    }
    return made;
  }
  return {value, {}};
}

const Located* Located::find(std::string_view name) const {
  for (const auto& member : members_) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

nlohmann::json Located::to_json() const {
  if (is_scalar()) return scalar_;
  if (is_array()) {
    auto made = nlohmann::json::array();
    for (const auto& item : items_) made.push_back(item.to_json());
    return made;
  }
  auto made = nlohmann::json::object();
  for (const auto& member : members_) made.emplace(member.name, member.value.to_json());
  return made;
}

std::string_view Located::kind_name() const {
  if (is_array()) return "a list";
  if (is_object()) return "a mapping";
  if (scalar_.is_string()) return "a text";
  if (scalar_.is_boolean()) return "true or false";
  if (scalar_.is_null()) return "nothing";
  return "a number";
}

}  // namespace conversed::flows
