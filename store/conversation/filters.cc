#include "store/conversation/filters.h"

#include <utility>

namespace conversed::store {

using model::Errc;
using model::Result;
using nlohmann::json;
using OptionalTime = std::optional<model::Timestamp>;
using OptionalKey = std::optional<model::SessionKey>;

namespace {

// The members of both filters.
json common(const std::string& endpoint_id, const OptionalKey& session, const OptionalTime& from,
            const OptionalTime& before) {
  json value = json::object();
  if (!endpoint_id.empty()) value["endpointId"] = endpoint_id;
  if (session) {
    value["endpointId"] = session->endpoint_id;
    value["userId"] = session->user_id;
    value["sessionId"] = session->session_id;
  }
  if (from) value["createdFromMs"] = model::to_unix_ms(*from);
  if (before) value["createdBeforeMs"] = model::to_unix_ms(*before);
  return value;
}

OptionalKey session_in(const std::string& project_id, const json& value) {
  if (!value.contains("sessionId")) return std::nullopt;
  return model::SessionKey{project_id, value.at("endpointId"), value.at("userId"),
                           value.at("sessionId")};
}

OptionalTime time_in(const json& value, const char* name) {
  if (!value.contains(name)) return std::nullopt;
  return model::from_unix_ms(value.at(name).get<std::int64_t>());
}

// `read` may throw nlohmann's exceptions.
template <typename Read>
auto read_filter(const Read& read) -> Result<decltype(read())> {
  try {
    return read();
  } catch (const json::exception&) {
    return model::fail(Errc::internal, "the filter of the job can't be read");
  }
}

}  // namespace

json to_json(const DeadLetters::Filter& filter) {
  json value =
      common(filter.endpoint_id, filter.session, filter.created_from, filter.created_before);
  for (const auto& [name, text] :
       {std::pair("reason", &filter.reason), std::pair("flow", &filter.flow),
        std::pair("node", &filter.node)}) {
    if (!text->empty()) value[name] = *text;
  }
  if (filter.flow_version > 0) value["flowVersion"] = filter.flow_version;
  return value;
}

json to_json(const Deliveries::Filter& filter) {
  json value = common(filter.endpoint_id.value_or(""), filter.session, filter.created_from,
                      filter.created_before);
  if (filter.state) value["state"] = to_string(*filter.state);
  return value;
}

Result<DeadLetters::Filter> dead_letter_filter_from(const std::string& project_id,
                                                    const json& value) {
  return read_filter([&] {
    return DeadLetters::Filter{.project_id = project_id,
                               .state = DeadLetterState::fresh,
                               .reason = value.value("reason", ""),
                               .flow = value.value("flow", ""),
                               .flow_version = value.value("flowVersion", std::int64_t{0}),
                               .node = value.value("node", ""),
                               .endpoint_id = value.value("endpointId", ""),
                               .session = session_in(project_id, value),
                               .created_from = time_in(value, "createdFromMs"),
                               .created_before = time_in(value, "createdBeforeMs")};
  });
}

Result<Deliveries::Filter> delivery_filter_from(const std::string& project_id, const json& value) {
  return read_filter([&] {
    Deliveries::Filter filter{.project_id = project_id,
                              .session = session_in(project_id, value),
                              .state = delivery_state_from(value.value("state", "")),
                              .created_from = time_in(value, "createdFromMs"),
                              .created_before = time_in(value, "createdBeforeMs")};
    if (value.contains("endpointId")) filter.endpoint_id = value.at("endpointId");
    return filter;
  });
}

}  // namespace conversed::store
