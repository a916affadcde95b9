#include "flows/nodes/assign_node.h"

namespace conversed::flows {

Result<Step> AssignNode::run(Turn& turn) const {
  std::vector<nlohmann::json> values;
  values.reserve(assignments_.size());
  for (const auto& [path, value] : assignments_) values.push_back(value.value(turn.scope()));
  for (std::size_t i = 0; i < values.size(); ++i) {
    if (auto done = turn.assign(assignments_[i].first, std::move(values[i])); !done) {
      return model::fail(done.error());
    }
  }
  return Continue{};
}

}  // namespace conversed::flows
