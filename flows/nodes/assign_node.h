#pragma once

#include <string_view>
#include <utility>
#include <vector>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

// `addToContext` and `updateProfile`. All values are made before the first is written, since a
// mapping has no order. Kept by: ContextNodes.MakeAllValuesBeforeTheFirstIsWritten.
class AssignNode final : public Node {
 public:
  using Assignments = std::vector<std::pair<expression::Path, expression::JsonTemplate>>;
  explicit AssignNode(Assignments assignments) : assignments_(std::move(assignments)) {}

  Result<Step> run(Turn& turn) const override {
    std::vector<nlohmann::json> values;
    for (const auto& [path, value] : assignments_) values.push_back(value.value(turn.scope()));
    for (std::size_t i = 0; i < values.size(); ++i) {
      auto done = turn.assign(assignments_[i].first, std::move(values[i]));
      if (!done) return model::fail(done.error());
    }
    return Continue{};
  }

 private:
  const Assignments assignments_;
};

// `removeFromContext` and `removeFromProfile`. A missing value is no error.
class RemoveNode final : public Node {
 public:
  explicit RemoveNode(std::vector<expression::Path> places) : places_(std::move(places)) {}

  Result<Step> run(Turn& turn) const override {
    for (const auto& place : places_) turn.erase(place);
    return Continue{};
  }

 private:
  const std::vector<expression::Path> places_;
};

}  // namespace conversed::flows
