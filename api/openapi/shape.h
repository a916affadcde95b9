// The members of an object of the API, declared once. The document takes its schema from here, and
// answers take their values.
#pragma once

#include <functional>
#include <initializer_list>
#include <string>
#include <string_view>
#include <type_traits>
#include <utility>
#include <vector>

#include "api/openapi/schemas.h"
#include "store/model/clock.h"
#include "store/model/event.h"

namespace conversed::api::openapi {

// A member's value in JSON.
template <typename T>
[[nodiscard]] Value to_value(const T& value) {
  if constexpr (std::is_same_v<T, model::Timestamp>) {
    return unix_seconds(value);
  } else {
    return value;
  }
}

// Wraps `get` for a member that is null in the API when the object's value is empty.
template <typename Get>
[[nodiscard]] auto null_if_empty(Get get) {
  return [get](const auto& object) {
    const auto& value = std::invoke(get, object);
    return value == std::remove_cvref_t<decltype(value)>{} ? Value() : to_value(value);
  };
}
template <typename Get>
[[nodiscard]] auto null_if_absent(Get get) {
  return [get](const auto& object) {
    const auto& value = std::invoke(get, object);
    return value ? to_value(*value) : Value();
  };
}

template <typename T>
class Shape {
 public:
  // `get` is a pointer to a member of T, or takes a T and returns the value.
  struct Member {
    template <typename Get>
    Member(std::string_view member_name, Schema member_schema, Get get)
        : name(member_name),
          schema(std::move(member_schema)),
          value([get](const T& object) { return Value(to_value(std::invoke(get, object))); }) {}
    // An object of another shape.
    template <typename U, typename Get>
    Member(std::string_view member_name, const Shape<U>& shape, Get get)
        : Member(member_name, shape.schema(),
                 [shape, get](const T& object) { return shape(std::invoke(get, object)); }) {}

    std::string_view name;
    Schema schema;
    std::function<Value(const T&)> value;
  };

  // The document keeps a schema with a name once (schemas.h). An empty `name` means none.
  Shape(std::string_view name, std::initializer_list<Member> members)
      : name_(name), members_(members) {}

  [[nodiscard]] Shape with(std::string_view name, std::initializer_list<Member> members) const {
    Shape more(*this);
    more.name_ = name;
    more.members_.insert(more.members_.end(), members);
    return more;
  }

  // With the members of `other` behind its own.
  [[nodiscard]] Shape with(const Shape& other) const {
    Shape more(*this);
    more.members_.insert(more.members_.end(), other.members_.begin(), other.members_.end());
    return more;
  }

  [[nodiscard]] Schema schema() const {
    Schema schema = object({});
    for (const Member& each : members_) {
      schema = with_members(std::move(schema), {{each.name, each.schema}});
    }
    return name_.empty() ? schema : named(name_, std::move(schema));
  }
  [[nodiscard]] Value operator()(const T& object) const {
    Value value = Value::object();
    for (const Member& each : members_) value[std::string(each.name)] = each.value(object);
    return value;
  }
  [[nodiscard]] Value operator()(const std::vector<T>& objects) const {
    Value list = Value::array();
    for (const T& each : objects) list.push_back((*this)(each));
    return list;
  }
  // The names of the members, in order. They are CSV's columns.
  [[nodiscard]] std::vector<std::string_view> names() const {
    std::vector<std::string_view> names;
    for (const Member& each : members_) names.push_back(each.name);
    return names;
  }

 private:
  std::string_view name_;
  std::vector<Member> members_;
};

// `projectId`, `endpointId`, `userId` and `sessionId` of the session `key`.
template <typename T>
[[nodiscard]] Shape<T> session_shape(model::SessionKey T::*key) {
  const auto part = [key](std::string model::SessionKey::*member) {
    return [=](const T& object) { return object.*key.*member; };
  };
  return {"",
          {{"projectId", id(), part(&model::SessionKey::project_id)},
           {"endpointId", id(), part(&model::SessionKey::endpoint_id)},
           {"userId", text(1), part(&model::SessionKey::user_id)},
           {"sessionId", text(1), part(&model::SessionKey::session_id)}}};
}

}  // namespace conversed::api::openapi
