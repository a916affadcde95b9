#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/model/clock.h"
#include "store/model/event.h"

namespace conversed::model {

// A version of a Flow, by its name in the project.
struct PinnedFlow {
  std::string name;
  std::int64_t version = 0;

  bool operator==(const PinnedFlow&) const = default;
};

// A run of a Flow from an input until it waits or ends, pinned to one Flow version. While its call
// or timer is pending, the session is busy and other events go to the session's inbox.
struct Execution {
  std::string input_id;  // the event that began it; outputs are grouped by it
  EventType source = EventType::inject;
  Timestamp began_at{};  // the input's accept time
  std::string trace_id;
  std::string tracestate{};     // passed on with the trace; may be empty
  std::string pending_call_id;  // the call or timer it waits for; never empty in a session
  std::string flow_id;          // with `flow_version`: the pinned version
  std::int64_t flow_version = 0;
  // Further pinned versions: Flows entered from that one that have not returned.
  std::vector<PinnedFlow> entered;
  bool keyed = false;  // its input carried an Idempotency-Key: the answer is kept
  // Outputs before this time are the answer to its input's client (Event::answer_until). Empty: its
  // outputs are deliveries.
  std::optional<Timestamp> answer_until{};
  nlohmann::json state;  // written and read by flows only

  bool operator==(const Execution&) const = default;
};

[[nodiscard]] nlohmann::json to_json(const Execution& execution);
// Reads the JSON of `to_json`. Other JSON is `internal`: bad stored data.
[[nodiscard]] Result<Execution> execution_from(const nlohmann::json& value);

// One conversation as the store keeps it.
struct Session {
  SessionKey key;
  std::int64_t version = 0;  // of the row, counted up by every commit; 0: not stored
  Position position;         // of the newest record that has had its effects or is in the inbox
  Timestamp started_at{};
  Timestamp last_activity_at{};  // accept time of the newest input; expiry counts from it
  nlohmann::json context = nlohmann::json::object();
  nlohmann::json
      flow_state;  // where the Flow waits, once-marks ...; written and read by flows only
  std::optional<Execution> execution;  // set while a call or a timer is pending
  std::int64_t last_output_seq = 0;    // outputs are numbered from 1
  std::int64_t inbox_size = 0;         // its events run, oldest first, when the execution ends
  // The newest event with a receipt, which names the one before it (store/conversation/receipts.h).
  // Empty: there is none.
  std::string last_receipt;

  [[nodiscard]] bool busy() const { return execution.has_value(); }
};

// A user's profile in a project, shared by all of the user's sessions.
struct Profile {
  std::string project_id;
  std::string user_id;
  std::int64_t version = 0;  // 0: not stored
  nlohmann::json data = nlohmann::json::object();
};

}  // namespace conversed::model
