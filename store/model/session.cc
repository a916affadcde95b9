#include "store/model/session.h"

namespace conversed::model {

nlohmann::json to_json(const Execution& execution) {
  nlohmann::json value{{"inputId", execution.input_id},
                       {"source", to_string(execution.source)},
                       {"beganAt", to_unix_ms(execution.began_at)},
                       {"traceId", execution.trace_id},
                       {"pendingCallId", execution.pending_call_id},
                       {"flowId", execution.flow_id},
                       {"flowVersion", execution.flow_version},
                       {"keyed", execution.keyed},
                       {"state", execution.state}};
  if (!execution.tracestate.empty()) value["tracestate"] = execution.tracestate;
  if (execution.answer_until) value["answerUntil"] = to_unix_ms(*execution.answer_until);
  for (const PinnedFlow& flow : execution.entered) {
    value["entered"].push_back({{"flow", flow.name}, {"version", flow.version}});
  }
  return value;
}

Result<Execution> execution_from(const nlohmann::json& value) {
  try {
    Execution execution;
    execution.input_id = value.at("inputId").get<std::string>();
    const auto source = event_type_from(value.at("source").get_ref<const std::string&>());
    if (!source) return fail(Errc::internal, "a stored execution has an unknown source");
    execution.source = *source;
    execution.began_at = from_unix_ms(value.at("beganAt").get<std::int64_t>());
    execution.trace_id = value.at("traceId").get<std::string>();
    execution.tracestate = value.value("tracestate", "");
    execution.pending_call_id = value.at("pendingCallId").get<std::string>();
    execution.flow_id = value.at("flowId").get<std::string>();
    execution.flow_version = value.at("flowVersion").get<std::int64_t>();
    execution.keyed = value.at("keyed").get<bool>();
    execution.state = value.at("state");
    if (const auto entered = value.find("entered"); entered != value.end()) {
      for (const auto& flow : *entered) {
        execution.entered.push_back(
            {flow.at("flow").get<std::string>(), flow.at("version").get<std::int64_t>()});
      }
    }
    if (const auto until = value.find("answerUntil"); until != value.end()) {
      execution.answer_until = from_unix_ms(until->get<std::int64_t>());
    }
    return execution;
  } catch (const nlohmann::json::exception&) {
    return fail(Errc::internal, "a stored execution can't be read");
  }
}

}  // namespace conversed::model
