// Divides the sessions among branches, for example to find the better one of two texts.
#include <algorithm>
#include <cmath>
#include <limits>
#include <set>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::size_t least_branches = 2;
constexpr std::size_t most_branches = 20;
constexpr std::int64_t all_sessions = 100;  // percent

constexpr Key split_branch_keys[]{must_have("name", Form::name),
                                  must_have("share", Form::number).within(0, all_sessions),
                                  may_have("do", Form::nodes)};

struct SplitNode final : Node {
  struct Branch {
    std::string name;
    std::int64_t share = 0;  // of the sessions, in percent
    NodeIndex first = end_of_flow;
  };
  std::vector<Branch> branches;
  std::optional<expression::Path> store_in;

  static void read_branches(NodeConfig& config, const View& at, std::vector<Branch>& into);

  Result<Step> run(Turn& turn) const override {
    const Branch& taken = branch_of(turn);
    turn.note_branch(taken.name);
    auto stored = store_in ? turn.assign(*store_in, taken.name) : Result<void>();
    return step_after(std::move(stored), Jump{taken.first});
  }

 private:
  // Weighted rendezvous hashing: a new share moves few sessions, and the order moves none.
  // Kept by: SplitNode.NewSharesMoveFewSessions.
  const Branch& branch_of(const Turn& turn) const {
    const auto set = std::ranges::find(branches, turn.set_branch(), &Branch::name);
    if (set != branches.end()) return *set;
    const auto distance = [&](const Branch& branch) {
      if (branch.share == 0) return std::numeric_limits<double>::infinity();
      return -std::log1p(-turn.fixed_draw(branch.name)) / static_cast<double>(branch.share);
    };
    return *std::ranges::min_element(branches, {}, distance);
  }
};

void SplitNode::read_branches(NodeConfig& config, const View& at, std::vector<Branch>& into) {
  if (!at.expect_list("a list of branches")) return;
  const auto items = at.items();
  if (items.size() < least_branches || items.size() > most_branches) {
    return at.problem("a split has " + std::to_string(least_branches) + " to " +
                      std::to_string(most_branches) + " branches, each {name, share, do}");
  }
  const std::size_t problems_before = at.report().size();
  std::set<std::string> names;
  std::int64_t sum = 0;
  for (const View& item : items) {
    const Fields fields(item, split_branch_keys);
    Branch branch{.name = fields.name("name"), .share = fields.integer("share").value_or(0)};
    sum += branch.share;
    if (!branch.name.empty() && !names.insert(branch.name).second) {
      item.problem("the branch '" + branch.name + "' is there twice; rename one");
    }
    const auto nodes = fields.find("do");
    branch.first = config.branch_at("branches[\"" + branch.name + "\"].do", branch.name,
                                    nodes ? &*nodes : nullptr);
    into.push_back(std::move(branch));
  }
  if (sum != all_sessions && at.report().size() == problems_before) {
    at.problem("the shares are percent of the sessions; their sum is " + std::to_string(sum) +
               " instead of " + std::to_string(all_sessions));
  }
}

constexpr NodeField split_fields[]{
    required<&SplitNode::branches, &SplitNode::read_branches>("branches")
        .as(Form::mappings)
        .of(split_branch_keys),
    optional<&SplitNode::store_in>("storeIn")};

}  // namespace

constinit const NodeType split_node{.name = "split",
                                    .shorthand = "branches",
                                    .continues = false,
                                    .fields = split_fields,
                                    .create = create<SplitNode>};

}  // namespace conversed::flows
