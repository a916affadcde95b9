#pragma once

#include <cstddef>
#include <nlohmann/json_fwd.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/result.h"

namespace conversed::flows::expression {

// A place that a Flow may write to, such as context.cart.items[0].price or profile["first name"].
// Immutable, thread-safe. The caller guards the JSON that it is applied to.
class Path {
 public:
  enum class Root : std::uint8_t { context, profile };
  struct Step {
    std::string name;  // for an index, its digits, because an object may have them as a name
    std::optional<std::size_t> index{};
  };

  static constexpr std::size_t max_source_bytes = 1024;
  static constexpr std::size_t max_steps = 32;            // names and indexes after the root
  static constexpr std::size_t max_array_items = 10'000;  // how far an index may extend an array

  // At least one name must follow the root. invalid_argument has the place and the reason ("column
  // 9: expected a name after '.'"). too_large: beyond a limit.
  [[nodiscard]] static model::Result<Path> compile(std::string_view source);

  [[nodiscard]] Root root() const { return root_; }
  [[nodiscard]] const std::string& text() const { return text_; }  // as written in the source

  // Puts the value at the place within `root`, the JSON that root() names. A missing or null value
  // on the way becomes an object, or an array if an index follows. Arrays are filled up with nulls.
  // invalid_argument, and no change, if a scalar is on the way or a name is applied to an array.
  [[nodiscard]] model::Result<void> assign(nlohmann::json& root, nlohmann::json value) const;

  // The value at the place. Null: there is none.
  [[nodiscard]] const nlohmann::json* find(const nlohmann::json& root) const;

  // Whether a write to one of the places may change the value at the other: one lies within the
  // other, or both lie behind an index, because a removal moves the items of an array.
  [[nodiscard]] bool may_overlap(const Path& other) const;

  // Removes the place and closes the gap in an array. False if the place does not exist.
  bool erase(nlohmann::json& root) const;

 private:
  Path() = default;
  [[nodiscard]] model::Result<void> check(const nlohmann::json& root) const;

  Root root_ = Root::context;
  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace conversed::flows::expression
