#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::chrono::milliseconds longest_interval = std::chrono::hours(24 * 366);

struct Interval {
  std::int64_t passes = 0;  // 0: by time
  std::chrono::milliseconds time{};
  NodeIndex due = end_of_flow;
  NodeIndex otherwise = end_of_flow;

  // The memory is the passes since `do` last ran or, by time, when it ran: Unix milliseconds.
  Result<Step> operator()(Turn& turn) const {
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    nlohmann::json& last = **memory;
    constexpr std::int64_t most = std::int64_t{1} << 53;  // this Node stores no larger numbers
    const bool known = last.is_number_integer() && last.get<std::int64_t>() >= 0 &&
                       last.get<std::int64_t>() <= most;
    bool is_due = false;
    if (passes > 0) {
      const std::int64_t passed = (known ? last.get<std::int64_t>() : 0) + 1;
      is_due = passed >= passes;
      last = is_due ? 0 : passed;
    } else {
      const std::int64_t now = model::to_unix_ms(turn.scope().now);
      is_due = !known || now - last.get<std::int64_t>() >= time.count();
      if (is_due) last = now;
    }
    return Jump{is_due ? due : otherwise};
  }
};

NodePtr create_interval(NodeConfig& config) {
  config.never_continues();
  Interval interval;
  const auto every = config.require("every");
  if (every && every->value().scalar().is_number()) {
    interval.passes = every->integer(1, 1'000'000).value_or(1);
  } else if (every) {
    interval.time =
        every->duration(std::chrono::milliseconds(1), longest_interval).value_or(longest_interval);
  }
  (void)config.require("do");
  interval.due = config.branch("do");
  interval.otherwise = config.branch("else");
  return node_of(interval);
}

constexpr NodeField interval_fields[]{
    {"every", "number or duration",
     "A number n: at each n-th pass in the session. A duration: at the first pass, and then when "
     "that time has passed since the last run. Required."},
    {"do", "nodes", "Run then. Required."},
    {"else", "nodes", "Run at every other pass."}};

}  // namespace

constinit const NodeType interval_node{
    .name = "interval",
    .summary = "Runs some Nodes at every n-th pass, or at most once in a time.",
    .fields = interval_fields,
    .example = "- interval: {every: 3, do: [{say: \"By the way: say `help` for help.\"}]}\n",
    .create = create_interval};

}  // namespace conversed::flows
