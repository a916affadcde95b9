#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

// What `addToContext` and `updateProfile` have in common: values are written to places. All values
// are made before the first is written: a mapping has no order that an author could rely on.
class AssignNode final : public Node {
 public:
  using Assignments = std::vector<std::pair<expression::Path, expression::JsonTemplate>>;
  explicit AssignNode(Assignments assignments) : assignments_(std::move(assignments)) {}

  [[nodiscard]] Result<Step> run(Turn& turn) const override;

 private:
  const Assignments assignments_;
};

}  // namespace conversed::flows
