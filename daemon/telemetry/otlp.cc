#include "daemon/telemetry/otlp.h"

#include <nlohmann/json.hpp>

#include "daemon/ops/version.h"
#include "store/model/json.h"

namespace conversed::daemon {
namespace {

using nlohmann::json;

constexpr int status_error = 2;

json attribute(std::string_view name, const std::string& value) {
  return {{"key", name}, {"value", {{"stringValue", value}}}};
}
// 64-bit integers are texts in protobuf's JSON.
json attribute(std::string_view name, std::int64_t value) {
  return {{"key", name}, {"value", {{"intValue", std::to_string(value)}}}};
}

std::string nanoseconds(Span::Time time) {
  const auto since = time.time_since_epoch();
  return std::to_string(std::chrono::duration_cast<std::chrono::nanoseconds>(since).count());
}

json to_json(const Span& span) {
  json attributes = json::array();
  for (const auto& [name, value] : span.attributes) {
    attributes.push_back(
        std::visit([name = name](const auto& each) { return attribute(name, each); }, value));
  }
  json shown{{"traceId", span.trace_id},
             {"spanId", span.span_id},
             {"name", span.name},
             {"kind", static_cast<int>(span.kind)},
             {"startTimeUnixNano", nanoseconds(span.begin)},
             {"endTimeUnixNano", nanoseconds(span.begin + span.took)}};
  if (!span.parent_id.empty()) shown["parentSpanId"] = span.parent_id;
  if (!span.error.empty()) {
    attributes.push_back(attribute("error.type", span.error));
    shown["status"] = {{"code", status_error}};
  }
  shown["attributes"] = std::move(attributes);
  return shown;
}

}  // namespace

std::string otlp_body(std::span<const Span> spans, const std::string& instance) {
  json list = json::array();
  for (const auto& span : spans) list.push_back(to_json(span));
  json resource{{"attributes",
                 {attribute("service.name", std::string("conversed")),
                  attribute("service.version", std::string(version)),
                  attribute("service.instance.id", instance)}}};
  json scope{{"scope", {{"name", "conversed"}}}, {"spans", std::move(list)}};
  const json traces{{"resource", std::move(resource)},
                    {"scopeSpans", json::array({std::move(scope)})}};
  const json body{{"resourceSpans", json::array({traces})}};
  return model::json_text(body);
}

}  // namespace conversed::daemon
