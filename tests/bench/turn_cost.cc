#include "tests/bench/turn_cost.h"

#include <algorithm>
#include <ctime>
#include <iostream>
#include <nlohmann/json.hpp>
#include <utility>
#include <vector>

#include "flows/bundle/loader.h"
#include "flows/flow.h"
#include "flows/turn/turn.h"

namespace conversed::bench {
namespace {

constexpr const char* bundle_text = R"(conversed: 1
project: {name: Bench}
flows:
  - name: Main
    nodes:
      - addToContext: {count: "{{(context.count || 0) + 1}}", last: "{{input.text}}"}
      - if: input.source == "inject" && input.data.event == "shipped"
        then:
          - say: "Your order {{input.data.orderId}} is on its way."
      - switch: {on: input.data.event, cases: {shipped: [{addToContext: {state: gone}}]}}
      - once: [{addToContext: {seen: true}}]
        else: [{removeFromContext: nothing}]
      - say: {text: "{{context.count}}: {{input.userId}}", data: {n: "{{context.count}}"}}
)";
constexpr std::size_t nodes = 8;

double thread_cpu_us() {
  timespec now{};
  clock_gettime(CLOCK_THREAD_CPUTIME_ID, &now);
  return static_cast<double>(now.tv_sec) * 1e6 + static_cast<double>(now.tv_nsec) / 1e3;
}

model::Event shipped_event() {
  model::Event event;
  event.id = "event1";
  event.type = model::EventType::inject;
  event.session = {"project", "endpoint", "ann", "s1"};
  event.accepted_at = model::from_unix_ms(1'800'000'000'000);
  event.trace_id = std::string(32, 'b');
  event.text = "Where is my parcel?";
  event.data = {{"event", "shipped"}, {"orderId", "A-1017"}};
  return event;
}

model::Endpoint web_endpoint() {
  model::Endpoint endpoint;
  endpoint.id = "endpoint";
  endpoint.name = "web";
  endpoint.flow_id = "flow";
  endpoint.url_token = std::string(64, 'a');
  endpoint.session_expiry = std::chrono::minutes(30);
  return endpoint;
}

std::shared_ptr<const flows::Flow> compiled_flow() {
  const auto bundle = flows::load_bundle(bundle_text, "bench.yaml", {});
  if (!bundle) {
    std::cerr << flows::to_string(bundle.error()) << "\n";
    return nullptr;
  }
  auto flow = flows::Flow::compile(bundle->flows.front().definition);
  return flow ? *flow : nullptr;
}

}  // namespace

double turn_cost_us() {
  constexpr int batches = 41;
  constexpr int turns_a_batch = 1000;
  const auto flow = compiled_flow();
  if (flow == nullptr) return -1;
  const auto event = shipped_event();
  const auto endpoint = web_endpoint();
  const model::ProjectAssets assets;
  model::Profile profile;
  profile.project_id = "project";
  profile.user_id = "ann";
  flows::Limits limits;
  limits.nodes_per_turn = nodes;
  model::Session session;
  std::vector<double> costs;
  for (int batch = 0; batch < batches; ++batch) {
    const double began = thread_cpu_us();
    for (int i = 0; i < turns_a_batch; ++i) {
      auto effects = flows::run_turn({.flow = *flow,
                                      .assets = assets,
                                      .endpoint = endpoint,
                                      .session = std::move(session),
                                      .profile = profile,
                                      .event = event,
                                      .now = event.accepted_at,
                                      .limits = limits,
                                      .flow_version = 1});
      if (!effects || effects->outputs.size() != 2) {
        std::cerr << (effects ? "not what was to be said" : effects.error().message) << "\n";
        return -1;
      }
      session = std::move(effects->session);
    }
    costs.push_back((thread_cpu_us() - began) / turns_a_batch);
  }
  std::nth_element(costs.begin(), costs.begin() + batches / 2, costs.end());
  return costs[batches / 2];
}

}  // namespace conversed::bench
