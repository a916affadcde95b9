#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

// Whether a Node that runs in intervals is due: by passes, or by time if `passes` is 0.
struct Every {
  std::int64_t passes = 0;
  std::chrono::milliseconds time{};

  static void read(NodeConfig&, const View& at, Every& into) {
    constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 366);
    if (at.value().scalar().is_number()) {
      into.passes = at.integer(1, 1'000'000).value_or(1);
    } else {
      into.time = at.duration(std::chrono::milliseconds(1), longest).value_or(longest);
    }
  }
};

struct IntervalNode final : Node {
  Every every;
  NodeIndex due = end_of_flow;
  NodeIndex otherwise = end_of_flow;

  // The memory is the passes since `do` last ran or, by time, when it ran: Unix milliseconds.
  Result<Step> run(Turn& turn) const override {
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    nlohmann::json& last = **memory;
    constexpr std::int64_t most = std::int64_t{1} << 53;  // this Node stores no larger numbers
    const bool known = last.is_number_integer() && last.get<std::int64_t>() >= 0 &&
                       last.get<std::int64_t>() <= most;
    bool is_due = false;
    if (every.passes > 0) {
      const std::int64_t passed = (known ? last.get<std::int64_t>() : 0) + 1;
      is_due = passed >= every.passes;
      last = is_due ? 0 : passed;
    } else {
      const std::int64_t now = model::to_unix_ms(turn.scope().now);
      is_due = !known || now - last.get<std::int64_t>() >= every.time.count();
      if (is_due) last = now;
    }
    return Jump{is_due ? due : otherwise};
  }
};

constexpr NodeField interval_fields[]{required<&IntervalNode::every, &Every::read>("every"),
                                      required<&IntervalNode::due>("do"),
                                      optional<&IntervalNode::otherwise>("else")};

}  // namespace

constinit const NodeType interval_node{.name = "interval",
                                       .continues = false,
                                       .fields = interval_fields,
                                       .create = create<IntervalNode>};

}  // namespace conversed::flows
