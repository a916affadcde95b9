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
// Immutable, thread-safe; the JSON that it is applied to is the caller's to guard.
class Path {
 public:
  enum class Root : std::uint8_t { context, profile };
  struct Step {
    std::string name;  // for an index, its digits: an object may have them as a name
    std::optional<std::size_t> index{};
  };

  static constexpr std::size_t max_source_bytes = 1024;
  static constexpr std::size_t max_steps = 32;            // names and indexes behind the root
  static constexpr std::size_t max_array_items = 10'000;  // how far an index may make an array grow

  // At least one name must stand behind the root. invalid_argument says where and why
  // ("column 9: expected a name after '.'"), too_large if it is past a limit.
  [[nodiscard]] static model::Result<Path> compile(std::string_view source);

  [[nodiscard]] Root root() const { return root_; }
  [[nodiscard]] const std::string& text() const { return text_; }  // as it was written

  // Puts the value at the place within `root`, the JSON that root() names. A missing or null value
  // on the way becomes an object, or an array where an index follows, filled up with nulls.
  // invalid_argument, and nothing is changed, if there is a scalar on the way or a name meets an
  // array.
  [[nodiscard]] model::Result<void> assign(nlohmann::json& root, nlohmann::json value) const;

  // Takes the place away, closing the gap in an array; false if it was not there.
  bool erase(nlohmann::json& root) const;

 private:
  Path() = default;
  [[nodiscard]] model::Result<void> check(const nlohmann::json& root) const;

  Root root_ = Root::context;
  std::string text_;
  std::vector<Step> steps_;
};

}  // namespace conversed::flows::expression
