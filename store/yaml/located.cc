#include "store/yaml/located.h"

namespace conversed::yaml {

// Not in the class: there, Member is not complete yet.
Located::Located() = default;
Located::Located(nlohmann::json scalar, Place place) : value_(std::move(scalar)), place_(place) {}
Located::Located(Value value, Place place) : value_(std::move(value)), place_(place) {}

Located Located::array(Place place) {
  return {Value(std::in_place_type<Items>), place};
}

Located Located::object(Place place) {
  return {Value(std::in_place_type<Members>), place};
}

const nlohmann::json& Located::scalar() const {
  static const nlohmann::json null;
  const auto* scalar = std::get_if<nlohmann::json>(&value_);
  return scalar == nullptr ? null : *scalar;
}

const std::vector<Located>& Located::items() const {
  static const Items none;
  const auto* items = std::get_if<Items>(&value_);
  return items == nullptr ? none : *items;
}

const std::vector<Located::Member>& Located::members() const {
  static const Members none;
  const auto* members = std::get_if<Members>(&value_);
  return members == nullptr ? none : *members;
}

Located Located::from_json(const nlohmann::json& value) {
  if (value.is_array()) {
    Located made = array({});
    made.items().reserve(value.size());
    for (const auto& item : value) made.items().push_back(from_json(item));
    return made;
  }
  if (value.is_object()) {
    Located made = object({});
    made.members().reserve(value.size());
    for (const auto& [name, member] : value.items()) {
      made.members().push_back({name, {}, from_json(member)});
    }
    return made;
  }
  return {value, {}};
}

const Located* Located::find(std::string_view name) const {
  for (const auto& member : members()) {
    if (member.name == name) return &member.value;
  }
  return nullptr;
}

nlohmann::json Located::to_json() const {
  if (is_scalar()) return scalar();
  if (is_array()) {
    auto made = nlohmann::json::array();
    for (const auto& item : items()) made.push_back(item.to_json());
    return made;
  }
  auto made = nlohmann::json::object();
  for (const auto& member : members()) made.emplace(member.name, member.value.to_json());
  return made;
}

std::string_view Located::kind_name() const {
  if (is_array()) return "a list";
  if (is_object()) return "a mapping";
  if (scalar().is_string()) return "a text";
  if (scalar().is_boolean()) return "true or false";
  if (scalar().is_null()) return "nothing";
  return "a number";
}

}  // namespace conversed::yaml
