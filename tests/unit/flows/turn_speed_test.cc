// Measures a Turn of eight Nodes and prints the figure. The bound is wide, because tests run in
// debug builds and beside others.
#include <algorithm>
#include <chrono>
#include <iostream>

#include "tests/unit/flows/conversation.h"

namespace conversed::flows {
namespace {

TEST(TurnSpeed, ATurnOfEightNodesTakesMicroseconds) {
  Conversation talk(
      "- addToContext: {count: \"{{(context.count || 0) + 1}}\", last: \"{{input.text}}\"}\n"
      "- if: input.source == \"inject\" && input.data.event == \"shipped\"\n"
      "  then:\n"
      "    - say: \"Your order {{input.data.orderId}} is on its way.\"\n"
      "- if: context.count > 1000000000\n  then: [{say: many}]\n"
      "- switch: {on: input.data.event, cases: {shipped: [{addToContext: {state: gone}}]}}\n"
      "- once: [{addToContext: {seen: true}}]\n  else: [{removeFromContext: nothing}]\n"
      "- say: {text: \"{{context.count}}: {{input.userId}}\", data: {n: \"{{context.count}}\"}}\n");
  auto event = talk.event(model::EventType::inject);
  event.data = {{"event", "shipped"}, {"orderId", "A-1"}};
  constexpr int turns = 2000;
  std::vector<double> took;
  for (int i = 0; i < turns; ++i) {
    const auto begin = std::chrono::steady_clock::now();
    auto effects = run_turn({.flow = *talk.flow,
                             .assets = talk.assets,
                             .endpoint = talk.endpoint,
                             .session = std::move(talk.session),
                             .profile = talk.profile,
                             .event = event,
                             .now = talk.now,
                             .limits = talk.limits,
                             .flow_version = 1,
                             .library = &talk.library});
    const std::chrono::duration<double, std::micro> spent =
        std::chrono::steady_clock::now() - begin;
    ASSERT_TRUE(effects);
    ASSERT_EQ(effects->outputs.size(), 2U);
    talk.session = std::move(effects->session);
    took.push_back(spent.count());
  }
  std::nth_element(took.begin(), took.begin() + turns / 2, took.end());
  const double median = took[turns / 2];
  std::cout << "median of a Turn: " << median << " us\n";
  EXPECT_LT(median, 2000.0);
}

}  // namespace
}  // namespace conversed::flows
