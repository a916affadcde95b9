#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "flows/problem.h"

namespace conversed::flows {

// A JSON value that knows where in its file each part stands. Made from YAML, from JSON text or,
// without places, from a JSON value; all later checks work on it, whatever it came from.
class Located {
 public:
  struct Member;

  Located();
  // `scalar` is null, a boolean, a number or a text.
  Located(nlohmann::json scalar, Place place);
  [[nodiscard]] static Located array(Place place);
  [[nodiscard]] static Located object(Place place);
  // Places are all 0. Requires that `value` is nested no deeper than what parse_json lets through.
  [[nodiscard]] static Located from_json(const nlohmann::json& value);

  [[nodiscard]] bool is_array() const { return kind_ == Kind::array; }
  [[nodiscard]] bool is_object() const { return kind_ == Kind::object; }
  [[nodiscard]] bool is_scalar() const { return kind_ == Kind::scalar; }
  [[nodiscard]] bool is_text() const { return is_scalar() && scalar_.is_string(); }
  [[nodiscard]] bool is_null() const { return is_scalar() && scalar_.is_null(); }

  [[nodiscard]] Place place() const { return place_; }
  // Null for arrays and objects.
  [[nodiscard]] const nlohmann::json& scalar() const { return scalar_; }
  [[nodiscard]] const std::string& text() const {
    return scalar_.get_ref<const std::string&>();  // requires is_text()
  }
  [[nodiscard]] const std::vector<Located>& items() const { return items_; }
  // In the file's order; names are unique, which the readers of files see to.
  [[nodiscard]] const std::vector<Member>& members() const { return members_; }
  [[nodiscard]] const Located* find(std::string_view name) const;

  [[nodiscard]] nlohmann::json to_json() const;
  // What the value is, for a message: `a text`, `a number`, `a list`, ...
  [[nodiscard]] std::string_view kind_name() const;

  std::vector<Located>& items() { return items_; }
  std::vector<Member>& members() { return members_; }

 private:
  enum class Kind : std::uint8_t { scalar, array, object };
  Located(Kind kind, Place place);

  Kind kind_ = Kind::scalar;
  nlohmann::json scalar_;
  std::vector<Located> items_;
  std::vector<Member> members_;
  Place place_;
};

struct Located::Member {
  std::string name;
  Place place;  // the name's
  Located value;
};

}  // namespace conversed::flows
