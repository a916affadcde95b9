#pragma once

#include <cstddef>
#include <nlohmann/json.hpp>
#include <string>
#include <variant>
#include <vector>

namespace conversed::yaml {

// Lines and columns count from 1, columns in characters. Line 0: the value has no place in a file.
struct Place {
  std::size_t line = 0;
  std::size_t column = 0;

  bool operator==(const Place&) const = default;
};

// A JSON value with the place of each part in its file. Made from YAML, from JSON text or,
// without places, from a JSON value; all later checks work on it.
class Located {
 public:
  struct Member;

  Located();
  // `scalar` is null, a boolean, a number or a text.
  Located(nlohmann::json scalar, Place place);
  [[nodiscard]] static Located array(Place place);
  [[nodiscard]] static Located object(Place place);
  // Places are all 0. Requires that `value` nests no deeper than parse_json permits.
  [[nodiscard]] static Located from_json(const nlohmann::json& value);

  [[nodiscard]] bool is_array() const { return std::holds_alternative<Items>(value_); }
  [[nodiscard]] bool is_object() const { return std::holds_alternative<Members>(value_); }
  [[nodiscard]] bool is_scalar() const { return std::holds_alternative<nlohmann::json>(value_); }
  [[nodiscard]] bool is_text() const { return is_scalar() && scalar().is_string(); }
  [[nodiscard]] bool is_null() const { return is_scalar() && scalar().is_null(); }

  [[nodiscard]] Place place() const { return place_; }
  // Null for arrays and objects.
  [[nodiscard]] const nlohmann::json& scalar() const;
  [[nodiscard]] const std::string& text() const {
    return scalar().get_ref<const std::string&>();  // requires is_text()
  }
  // Empty if the value is no array.
  [[nodiscard]] const std::vector<Located>& items() const;
  // In the file's order. The readers of files refuse names that occur twice. Empty if the value is
  // no object.
  [[nodiscard]] const std::vector<Member>& members() const;
  [[nodiscard]] const Located* find(std::string_view name) const;

  [[nodiscard]] nlohmann::json to_json() const;
  // The kind of the value, for a message: `a text`, `a number`, `a list`, ...
  [[nodiscard]] std::string_view kind_name() const;

  std::vector<Located>& items() { return std::get<Items>(value_); }     // requires is_array()
  std::vector<Member>& members() { return std::get<Members>(value_); }  // requires is_object()

 private:
  using Items = std::vector<Located>;
  using Members = std::vector<Member>;
  using Value = std::variant<nlohmann::json, Items, Members>;
  Located(Value value, Place place);

  Value value_;
  Place place_;
};

struct Located::Member {
  std::string name;
  Place place;  // the name's
  Located value;
};

}  // namespace conversed::yaml
