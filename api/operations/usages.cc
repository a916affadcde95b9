#include "api/operations/usages.h"

#include <nlohmann/json.hpp>

#include "api/http/error_reply.h"
#include "api/openapi/description.h"
#include "flows/flow.h"
#include "flows/turn/standing.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using store::PartUsage;

// The uses of the part, and how to end them.
std::string usage_text(const PartUsage& usage) {
  const std::string number = std::to_string(usage.count);
  switch (usage.kind) {
    case PartUsage::Kind::endpoint:
      return "the Endpoint " + usage.by +
             " runs it; give the Endpoint another Flow, or delete the Endpoint";
    case PartUsage::Kind::follow_up_flow:
      return "it follows up silent users of the Endpoint " + usage.by +
             "; name another Flow in the journey";
    case PartUsage::Kind::flow:
      return "the Flow " + usage.by + " enters it; change that Flow";
    case PartUsage::Kind::journey:
      return "the project's journey names it; change the journey";
    case PartUsage::Kind::sessions:
      return "sessions that wait " + std::string(usage.part == "Endpoint" ? "at" : "in") +
             " it: " + number + "; reset them, or wait until they expire";
    case PartUsage::Kind::follow_ups:
      return "follow-ups that wait for their time: " + number +
             "; cancel them with the timers, or wait";
    case PartUsage::Kind::outputs:
      return "outputs that wait for its webhook: " + number + "; drop them, or wait";
    case PartUsage::Kind::schedules:
      return "scheduled injects: " + number + "; cancel them";
  }
  return "";
}

std::vector<std::string> standing_flows(const json& flow_state,
                                        const std::optional<model::Execution>& execution) {
  std::vector<std::string> names;
  for (const auto& standing : flows::standings(flow_state, execution)) {
    names.push_back(standing.flow);
  }
  for (const auto& standing : flows::standings_behind(flow_state)) names.push_back(standing.flow);
  return names;
}

// Each text of a definition that this program can't run may name a Flow.
std::vector<std::string> entered_flows(const std::string& definition) {
  std::vector<std::string> names;
  const auto flow = flows::Flow::compile_text(definition);
  if (!flow) {
    for (const auto& value : json::parse(definition, nullptr, false).flatten()) {
      if (value.is_string()) names.push_back(value.get<std::string>());
    }
    return names;
  }
  for (const auto& slot : (*flow)->slots()) {
    for (const auto& use : slot.outline.uses) {
      if (use.kind == flows::Flow::Use::Kind::flow) names.push_back(use.name);
    }
  }
  return names;
}

}  // namespace

const openapi::Shape<PartUsage>& usage_shape() {
  using namespace openapi;
  static const Shape<PartUsage> shape(
      "PartUsage",
      {{"part", one_of({"Flow", "Endpoint"}), &PartUsage::part},
       {"name", text(1), &PartUsage::name},
       {"kind",
        described("What uses it.", one_of({"endpoint", "followUpFlow", "flow", "journey",
                                           "sessions", "followUps", "outputs", "schedules"})),
        [](const PartUsage& usage) { return to_string(usage.kind); }},
       {"by", described("The name of the Endpoint or Flow that uses it.", nullable(text(1))),
        null_if_empty(&PartUsage::by)},
       {"count", described("Of sessions, follow-ups, outputs or schedules.", integer(0)),
        &PartUsage::count},
       {"text", described("What uses it, and what to do about it.", text(1)), usage_text}});
  return shape;
}

const store::FlowReader& flow_reader() {
  static const store::FlowReader reader{.standing = standing_flows, .entered = entered_flows};
  return reader;
}

Response still_used(std::string_view refused, const std::vector<PartUsage>& usages,
                    const ExchangeContext& exchange, model::Timestamp now) {
  const json details{{"usages", usage_shape()(usages)}};
  return error_response(409, std::string(refused) + ": parts to delete are still in use", exchange,
                        now, ErrorShape::problem, &details);
}

}  // namespace conversed::api
