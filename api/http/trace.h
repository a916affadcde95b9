// W3C Trace Context: which trace a request belongs to.
#pragma once

#include <optional>
#include <string>
#include <string_view>

namespace conversed::api {

struct Trace {
  std::string trace_id;  // 32 lower-case hex digits, not all zero
  bool sampled = false;
};

// A `traceparent` header, or nothing when it is not valid (W3C Trace Context §3.2.2): the caller
// then starts a trace of its own. Versions above 00 are read by their first four fields, as §4.3
// asks for.
[[nodiscard]] std::optional<Trace> parse_traceparent(std::string_view header);

// The `traceparent` of our own part in a trace: version 00 with a new span id.
[[nodiscard]] std::string make_traceparent(std::string_view trace_id, bool sampled);

}  // namespace conversed::api
