#pragma once

#include <cstdint>
#include <optional>
#include <string_view>

// How events are found by trace ids and Idempotency-Keys. Pure.
namespace conversed::store {

// The first 60 bits of a trace id or of the hash of an Idempotency-Key, both of 32 hexadecimal
// digits: an index of numbers is a third as large. None: the text is something else.
[[nodiscard]] std::optional<std::int64_t> key_number(std::string_view digits);

// The numbers (model::id_number) of all events of the second in which a trace began. Ids of events
// begin with the time, and so do ids of traces that the daemon has begun. `to` is past the end.
struct EventRange {
  std::int64_t from = 0;
  std::int64_t to = 0;
};
// None: the trace id does not begin with a time.
[[nodiscard]] std::optional<EventRange> first_second(std::string_view trace_id);

// The number of an event's trace in `receipt_numbers`. None: the event lies in its trace's first
// second. A read finds such an event without the table; a row would cost the event 5 % of its CPU.
[[nodiscard]] std::optional<std::int64_t> trace_number(std::string_view trace_id,
                                                       std::string_view event_id);

}  // namespace conversed::store
