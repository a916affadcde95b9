#include "store/model/key_range.h"

#include <initializer_list>

#include "store/model/event.h"

namespace conversed::model {
namespace {

// The keys that begin with these parts.
KeyRange keys_behind(std::initializer_list<std::string_view> parts) {
  KeyRange range;
  for (const auto part : parts) range.from.append(part).append(1, SessionKey::separator);
  range.to = range.from;
  ++range.to.back();
  return range;
}

}  // namespace

KeyRange keys_of_project(std::string_view project_id) {
  return keys_behind({project_id});
}

KeyRange keys_of_user(std::string_view project_id, std::string_view user_id) {
  return keys_behind({project_id, user_id});
}

KeyRange keys_of_user(std::string_view project_id, std::string_view user_id,
                      std::string_view endpoint_id) {
  return keys_behind({project_id, user_id, endpoint_id});
}

}  // namespace conversed::model
