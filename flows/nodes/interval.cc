#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {
namespace {

constexpr std::chrono::milliseconds longest_interval = std::chrono::hours(24 * 366);

struct Rhythm {
  std::int64_t passes = 0;  // 0: by time
  std::chrono::milliseconds time{};
};

class IntervalNode final : public Node {
 public:
  IntervalNode(Rhythm rhythm, NodeIndex on_interval, NodeIndex otherwise)
      : rhythm_(rhythm), do_(on_interval), else_(otherwise) {}

  // The memory is the passes since `do` last ran or, by time, when it ran: Unix milliseconds.
  Result<Step> run(Turn& turn) const override {
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    nlohmann::json& last = **memory;
    constexpr std::int64_t most = std::int64_t{1}
                                  << 53;  // larger numbers were not stored by this Node
    const bool known = last.is_number_integer() && last.get<std::int64_t>() >= 0 &&
                       last.get<std::int64_t>() <= most;
    bool due = false;
    if (rhythm_.passes > 0) {
      const std::int64_t passes = (known ? last.get<std::int64_t>() : 0) + 1;
      due = passes >= rhythm_.passes;
      last = due ? 0 : passes;
    } else {
      const std::int64_t now = model::to_unix_ms(turn.scope().now);
      due = !known || now - last.get<std::int64_t>() >= rhythm_.time.count();
      if (due) last = now;
    }
    return Jump{due ? do_ : else_};
  }

 private:
  const Rhythm rhythm_;
  const NodeIndex do_;
  const NodeIndex else_;
};

Rhythm rhythm_of(NodeConfig& config) {
  Rhythm rhythm;
  const auto every = config.require("every");
  if (!every) return rhythm;
  if (every->value().scalar().is_number()) {
    rhythm.passes = every->integer(1, 1'000'000).value_or(1);
  } else {
    rhythm.time =
        every->duration(std::chrono::milliseconds(1), longest_interval).value_or(longest_interval);
  }
  return rhythm;
}

NodePtr create_interval(NodeConfig& config) {
  config.never_continues();
  const Rhythm rhythm = rhythm_of(config);
  (void)config.require("do");
  const NodeIndex on_interval = config.branch("do");
  return std::make_unique<const IntervalNode>(rhythm, on_interval, config.branch("else"));
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
