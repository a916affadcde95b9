#pragma once

#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/model/session.h"

namespace conversed::flows {

// The output of an event without a Flow: the next one of the session.
[[nodiscard]] inline model::Output output_of(model::Session& session, const model::Event& event,
                                             model::Timestamp now) {
  model::Output output;
  output.id = event.id + "-1";
  output.seq = ++session.last_output_seq;
  output.input_id = event.id;
  output.text = event.text.value_or("");
  output.data = event.data;
  output.trace_id = event.trace_id;
  output.created_at = now;
  return output;
}

}  // namespace conversed::flows
