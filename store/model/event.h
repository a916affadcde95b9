#pragma once

#include <compare>
#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>

#include "store/model/clock.h"
#include "store/model/result.h"

namespace conversed::model {

// Names one conversation. Two sessions with the same ids on different Endpoints are different.
// `user_id` and `session_id` are 1 to 512 bytes of UTF-8 without control characters.
struct SessionKey {
  static constexpr char separator = '\x1f';

  std::string project_id;
  std::string endpoint_id;
  std::string user_id;
  std::string session_id;

  // The key of its events in the log and of its row in the store: project, user, Endpoint and
  // session, joined by U+001F, which no part can hold. All sessions of a user have one beginning:
  // they share a partition of the log (queue::partition_of), and their rows lie side by side.
  [[nodiscard]] std::string encode() const;
  [[nodiscard]] static Result<SessionKey> decode(std::string_view text);

  auto operator<=>(const SessionKey&) const = default;  // NOLINT(modernize-use-nullptr)
};

// Where a record stands in the log. Offsets are comparable within one epoch and one partition only.
struct Position {
  std::int64_t epoch = 0;  // 0: no position yet
  std::int32_t partition = 0;
  std::int64_t offset = -1;

  bool operator==(const Position&) const = default;
};

enum class EventType : std::uint8_t {
  user_message,  // a user's own message
  inject,        // sent by another system
  follow_up,     // a due follow-up
  call_result,   // the result of a Node's call
  timer,         // a due timer of an execution
  notify,        // a message to the user that no Flow handles
  time_out,      // a question's wait for its answer has ended
};
[[nodiscard]] std::string_view to_string(EventType type);
[[nodiscard]] std::optional<EventType> event_type_from(std::string_view text);

// Whether an event of the type begins an execution. It waits while another execution runs.
[[nodiscard]] constexpr bool is_input(EventType type) {
  return type == EventType::user_message || type == EventType::inject ||
         type == EventType::follow_up || type == EventType::time_out;
}

// Whether silence causes an event of the type. It belongs to the silent conversation, even if that
// has expired.
[[nodiscard]] constexpr bool comes_of_silence(EventType type) {
  return type == EventType::follow_up || type == EventType::time_out;
}

// A right to have effects once. An event that can be appended twice carries a claim. The
// transaction of its effects consumes the claim; without the claim it has no effects.
// Kept by: CommitterTest.ClaimOfACallIsConsumedOnce, CommitterTest.KeyedEventHasItsEffectsOnce.
struct Claim {
  enum class Kind : std::uint8_t {
    keyed_event,   // `id` is the event's own; consumed by inserting a row
    pending_call,  // consumed by deleting the call's row
    timer,         // of an execution or a question; consumed by deleting the timer's row
    dead_letter,   // a replay; consumed by setting the dead letter to `replayed`
    follow_up,     // consumed by deleting the follow-up's row when it runs, not before
    schedule,      // of a scheduled inject; its row goes on to its next time, or is deleted
  };
  Kind kind = Kind::keyed_event;
  std::string id;

  bool operator==(const Claim&) const = default;
};

// The result of a Node's call. An empty `error_code`: the upstream answered with a status below
// 400.
struct CallResult {
  std::string call_id;
  int status = 0;             // HTTP status, 0 when there was no answer
  nlohmann::json body;        // parsed when it is JSON, else its text
  std::string error_code;     // of the tables in docs/flows: concepts.md, nodes.md (scripts)
  std::string error_message;  // for people; holds no secret
  // The tokens that a language model reports for the question and its answer; 0: it reports none.
  std::int64_t model_tokens = 0;
};

// The part of a waiting follow-up beside the text and data of its event.
struct FollowUpPlan {
  std::string flow_id;                  // the Flow that runs; empty: the text is sent unchanged
  std::optional<Timestamp> expires_at;  // from this time on it is dropped
  bool of_journey = false;              // else of a Node; only the journey's are counted

  bool operator==(const FollowUpPlan&) const = default;
};

[[nodiscard]] nlohmann::json to_json(const FollowUpPlan& plan);
// Reads the JSON of `to_json`. Other JSON is `internal`: bad stored data.
[[nodiscard]] Result<FollowUpPlan> follow_up_plan_from(const nlohmann::json& value);

// Where an event comes from. Empty texts: it is not known.
struct Origin {
  std::string daemon;   // that took it
  std::string user_id;  // the user of the API that sent it
  std::string key;      // of its Idempotency-Key: a hash with the organisation
  // Of an inject: the organisation whose quota accepted it. It stays known without the Endpoint.
  std::string organisation_id{};

  bool operator==(const Origin&) const = default;
};

// An event of a conversation: one record of the log.
struct Event {
  std::string id;  // fixed before the append; 24 characters, or derived from such an id
  EventType type = EventType::inject;
  SessionKey session;
  Timestamp accepted_at{};
  std::string trace_id;             // 32 hex digits
  std::string tracestate{};         // of other systems, passed on with the trace; may be empty
  std::optional<std::string> text;  // of user_message, inject, follow_up, notify
  nlohmann::json data;              // null when none was sent
  std::optional<Claim> claim;
  std::optional<CallResult> result;                      // of call_result
  std::optional<FollowUpPlan> follow_up = std::nullopt;  // of follow_up
  // Of user_message: its client's deadline, by the clock of timers. The execution's outputs before
  // it are the answer; later ones are deliveries. Empty: all outputs are deliveries.
  std::optional<Timestamp> answer_until = std::nullopt;
  Origin origin{};
  // Set by `decode_event`: a daemon has written the record, not another program that appends to the
  // topic.
  bool is_own = false;
};

// The value of the event's log record: JSON, format version 1. Id, type, trace and key travel
// beside it.
[[nodiscard]] std::string encode_value(const Event& event);

// Rebuilds an event from the parts of its record. Bad bytes or an unknown version are
// `invalid_argument`.
[[nodiscard]] Result<Event> decode_event(std::string_view key, std::string_view id,
                                         std::string_view type, std::string_view trace_id,
                                         std::string_view value);

}  // namespace conversed::model
