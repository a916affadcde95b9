#pragma once

#include <optional>
#include <string>
#include <string_view>

// W3C Trace Context: the trace that a request belongs to.
namespace conversed::model {

// Whether it is a W3C trace id: 32 lower-case hex digits, not all zero.
[[nodiscard]] bool is_trace_id(std::string_view text);

// The text if it is a trace id, else a new one: a foreign producer's mistake costs only its trace.
[[nodiscard]] std::string trace_id_of(std::string_view text);

struct Trace {
  std::string trace_id;  // 32 lower-case hex digits, not all zero
  bool sampled = false;
};

// A `traceparent` header, or nothing when it is not valid (W3C Trace Context §3.2.2): the caller
// then starts a trace of its own. Versions above 00 are read by their first four fields, as §4.3
// asks for.
[[nodiscard]] std::optional<Trace> parse_traceparent(std::string_view header);

// The `traceparent` header of our own part in a trace: version 00 with a new span id.
[[nodiscard]] std::string make_traceparent(std::string_view trace_id, bool sampled = true);

}  // namespace conversed::model
