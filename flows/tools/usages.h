#pragma once

#include <map>
#include <memory>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "flows/flow.h"

namespace conversed::flows::tools {

// The Nodes of the Flow that name the Connection, in the Flow's order.
[[nodiscard]] std::vector<const Flow::Slot*> nodes_using(const Flow& flow,
                                                         std::string_view connection);

// The places in a project's Flows from which a way leads to a Node that uses a Connection. Every
// way counts as possible. One thread.
class WaysToConnection {
 public:
  // `newest`: all Flows of the project. `executeFlow` enters these versions.
  WaysToConnection(std::string connection, std::vector<std::shared_ptr<const Flow>> newest);

  // From the beginning of the newest version of the Flow. False for an unknown Flow.
  [[nodiscard]] bool from_start(std::string_view flow) const { return starts_.contains(flow); }
  // From a Node of a Flow of any version, that Node included. `end_of_flow` leads nowhere.
  [[nodiscard]] bool from(const std::shared_ptr<const Flow>& flow, NodeIndex at);
  // From the Node after this one, which has entered another Flow.
  [[nodiscard]] bool after(const std::shared_ptr<const Flow>& flow, NodeIndex at);

 private:
  [[nodiscard]] std::vector<bool> marks_of(const Flow& flow) const;

  const std::string connection_;
  std::set<std::string, std::less<>> starts_;
  std::map<std::shared_ptr<const Flow>, std::vector<bool>> marks_;
};

}  // namespace conversed::flows::tools
