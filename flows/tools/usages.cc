#include "flows/tools/usages.h"

#include <algorithm>
#include <utility>

#include "flows/tools/ways.h"

namespace conversed::flows::tools {
namespace {

using Kind = Flow::Use::Kind;

bool uses(const Flow::Slot& slot, std::string_view connection) {
  return std::any_of(slot.outline.uses.begin(), slot.outline.uses.end(), [&](const auto& use) {
    return use.kind == Kind::connection && use.name == connection;
  });
}

}  // namespace

std::vector<const Flow::Slot*> nodes_using(const Flow& flow, std::string_view connection) {
  std::vector<const Flow::Slot*> found;
  for (const auto& slot : flow.slots()) {
    if (uses(slot, connection)) found.push_back(&slot);
  }
  return found;
}

WaysToConnection::WaysToConnection(std::string connection,
                                   std::vector<std::shared_ptr<const Flow>> newest)
    : connection_(std::move(connection)) {
  // Repeats until no Flow is added: each found Flow may make another one lead there.
  for (bool more = true; more;) {
    more = false;
    for (const auto& flow : newest) {
      if (flow->start() == end_of_flow || starts_.contains(flow->name())) continue;
      if (!marks_of(*flow)[static_cast<std::size_t>(flow->start())]) continue;
      starts_.insert(flow->name());
      more = true;
    }
  }
}

// Searches backwards from the Nodes that use the Connection or enter a Flow that leads to it.
std::vector<bool> WaysToConnection::marks_of(const Flow& flow) const {
  const auto& slots = flow.slots();
  Backwards marks(slots.size());
  for (std::size_t i = 0; i < slots.size(); ++i) {
    for (const NodeIndex to : successors(slots[i])) {
      if (to != end_of_flow) marks.add_way(i, static_cast<std::size_t>(to));
    }
    const auto enters_such_a_flow = [&](const Flow::Use& use) {
      return use.kind == Kind::flow && starts_.contains(use.name);
    };
    if (uses(slots[i], connection_) ||
        std::ranges::any_of(slots[i].outline.uses, enters_such_a_flow)) {
      marks.mark(i);
    }
  }
  return marks.marked();
}

bool WaysToConnection::from(const std::shared_ptr<const Flow>& flow, NodeIndex at) {
  if (at == end_of_flow) return false;
  auto known = marks_.find(flow);
  if (known == marks_.end()) known = marks_.emplace(flow, marks_of(*flow)).first;
  return known->second[static_cast<std::size_t>(at)];
}

bool WaysToConnection::after(const std::shared_ptr<const Flow>& flow, NodeIndex at) {
  return at != end_of_flow && flow->slot(at).outline.continues && from(flow, flow->slot(at).next);
}

}  // namespace conversed::flows::tools
