#pragma once

#include <utility>
#include <vector>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

// What `removeFromContext` and `removeFromProfile` have in common. What is not there is no error.
class RemoveNode final : public Node {
 public:
  explicit RemoveNode(std::vector<expression::Path> places) : places_(std::move(places)) {}

  [[nodiscard]] Result<Step> run(Turn& turn) const override {
    for (const auto& place : places_) turn.erase(place);
    return Continue{};
  }

 private:
  const std::vector<expression::Path> places_;
};

}  // namespace conversed::flows
