#pragma once

#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/model/session.h"

namespace conversed::flows {

// What an event says by itself, without a Node: the session's next output.
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
