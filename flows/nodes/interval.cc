#include <algorithm>

#include "flows/json_members.h"
#include "flows/node_types.h"
#include "flows/turn/turn.h"
#include "store/text/ascii.h"

namespace conversed::flows {
namespace {

constexpr std::int64_t most_passes = 1'000'000;

bool is_whole(std::string_view text) {
  return !text.empty() && std::ranges::all_of(text, text::is_digit);
}

struct IntervalNode final : Node {
  std::int64_t passes = 0;  // 0: the interval is a time
  std::chrono::milliseconds time{};
  NodeIndex due = end_of_flow;
  NodeIndex otherwise = end_of_flow;

  void check(NodeConfig& config) {
    constexpr std::chrono::milliseconds longest = std::chrono::hours(24 * 366);
    const auto every = config.find("every");
    if (every && every->value().scalar().is_number()) {
      passes = every->integer(1, most_passes).value_or(1);
    } else if (every && every->value().is_text() && is_whole(every->value().text())) {
      every->problem("a number of passes has no quotes; write `every: " + every->value().text() +
                     "`");
    } else if (every) {
      time = every->duration(std::chrono::milliseconds(1), longest).value_or(longest);
    }
  }

  // The memory: the passes since `do` last ran, or the time when it ran in Unix milliseconds.
  Result<Step> run(Turn& turn) const override {
    auto memory = turn.memory();
    if (!memory) return model::fail(memory.error());
    nlohmann::json& last = **memory;
    const auto stored = count_in(last);
    bool is_due = false;
    if (passes > 0) {
      const std::int64_t passed = stored.value_or(0) + 1;
      is_due = passed >= passes;
      last = is_due ? 0 : passed;
    } else {
      const std::int64_t now = model::to_unix_ms(turn.scope().now);
      is_due = !stored || now - *stored >= time.count();
      if (is_due) last = now;
    }
    return Jump{is_due ? due : otherwise};
  }
};

constexpr NodeField interval_fields[]{
    required("every").as(Form::number_or_duration).within(1, most_passes),
    required<&IntervalNode::due>("do"), optional<&IntervalNode::otherwise>("else")};

}  // namespace

constinit const NodeType interval_node{.name = "interval",
                                       .continues = false,
                                       .fields = interval_fields,
                                       .create = create<IntervalNode>};

}  // namespace conversed::flows
