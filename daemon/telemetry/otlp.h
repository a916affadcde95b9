#pragma once

#include <span>
#include <string>

#include "daemon/telemetry/spans.h"

namespace conversed::daemon {

// The body of an OTLP/HTTP request in JSON, an ExportTraceServiceRequest: trace ids and span ids as
// hex, times in nanoseconds. `instance`: this daemon's name.
[[nodiscard]] std::string otlp_body(std::span<const Span> spans, const std::string& instance);

}  // namespace conversed::daemon
