#pragma once

#include <optional>
#include <string>
#include <string_view>

#include "store/model/clock.h"

// W3C Trace Context: the trace that a request belongs to.
namespace conversed::model {

// Whether it is a W3C trace id: 32 lower-case hex digits, not all zero.
[[nodiscard]] bool is_trace_id(std::string_view text);

// The text if it is a trace id, else a new one: a foreign producer's mistake costs only its trace.
[[nodiscard]] std::string trace_id_of(std::string_view text);

struct Trace {
  std::string trace_id;   // 32 lower-case hex digits, not all zero
  std::string parent_id;  // the caller's span: 16 lower-case hex digits, not all zero
  bool sampled = false;
};

// A `traceparent` header, or nothing when it is not valid (W3C Trace Context §3.2.2): the caller
// then starts a trace of its own. Versions above 00 are read by their first four fields, as §4.3
// asks for.
[[nodiscard]] std::optional<Trace> parse_traceparent(std::string_view header);

// A `traceparent` header of version 00.
[[nodiscard]] std::string make_traceparent(std::string_view trace_id, std::string_view span_id,
                                           bool sampled);

// Whether it is a `tracestate` (W3C Trace Context §3.3.1) that is passed on: at most 512 characters
// and 32 members. The daemon adds no member of its own.
[[nodiscard]] bool is_tracestate(std::string_view text);

// Whether a trace that begins here is sampled, of which this share is: 0 none, 1 all. The same for
// all daemons.
[[nodiscard]] bool in_sample(std::string_view trace_id, double share);

// A random span id.
[[nodiscard]] std::string new_span_id();

// A new event's id (store/model/ids.h). Its last character tells whether the event's trace is
// sampled, so each part of each daemon that has the event, its outputs or its calls knows it.
[[nodiscard]] std::string new_event_id(Timestamp now, bool sampled);

// Whether the trace of this event is sampled. The ids of an event's outputs, calls and follow-ups
// begin with the event's id, and give the same answer.
[[nodiscard]] bool is_sampled(std::string_view event_id);

// The span of the request that began the event, the parent of all other spans of the event. It is
// derived from the event's id, so threads and daemons need not hand it on.
[[nodiscard]] std::string span_of_event(std::string_view event_id);

}  // namespace conversed::model
