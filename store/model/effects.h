#pragma once

#include <cstdint>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <vector>

#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/session.h"

namespace conversed::model {

// The way of an output. `/outputs` has all of them.
enum class Delivery : std::uint8_t {
  none,     // an answer to `POST /{URLToken}`, or the Endpoint has no webhook
  pending,  // a delivery to the Endpoint's webhook
};

// Something said to the user.
struct Output {
  std::string id;        // constant over reruns and redeliveries: `webhook-id`
  std::int64_t seq = 0;  // within the session, from 1, without gaps
  std::string input_id;  // of the execution that said it
  std::string text;
  nlohmann::json data;  // null when there is none
  std::string trace_id;
  std::string tracestate{};  // passed on with the trace; may be empty
  std::string source = "bot";
  Timestamp created_at{};
  Delivery delivery = Delivery::none;
  // A follow-up's output whose delivery has not begun: the user's next message withdraws it.
  bool withdrawable = false;
};

// The approximate bytes of the output in memory.
[[nodiscard]] std::size_t size_of(const Output& output);

// An HTTP request that a Node asks for. Holds no secret: the Connection's fields are applied when
// it is sent.
struct HttpCall {
  std::string method;
  std::string url;
  std::vector<std::pair<std::string, std::string>> headers;
  std::string body;
  std::string connection_id;                 // empty: none
  std::chrono::milliseconds timeout{10000};  // of one attempt
  int retries = 0;                           // further attempts after the first
  std::string idempotency_key;               // constant over attempts and restarts
  // The Connection is one of type `llm`: `url` is a path below its base URL, it adds the model to a
  // JSON body that names none, and the tokens that the answer reports are counted.
  bool to_model = false;
};

// A question to a knowledge store of the session's project. The answer's body is `{"hits": [{"id",
// "source", "text", "data", "score"}]}`, the best one first, `score` above 0 and below 1.
struct KnowledgeQuery {
  std::string store;                 // its name
  std::vector<std::string> sources;  // names; empty: all of the store
  std::string text;                  // anything
  std::size_t limit = 5;             // hits at most
};

// A script that a Node runs, in a process of its own. Its result is the answer's body.
struct CodeCall {
  std::string script;                        // the body of a JavaScript function
  nlohmann::json values;                     // an object with the function's arguments by name
  std::chrono::milliseconds timeout{1'000};  // then the process is killed
};

// An execution waits for a call, a search, a script or a timer; a question waits for its time-out.
struct PendingCall {
  std::string id;  // constant over reruns; the claim of its result
  SessionKey session;
  std::string trace_id;
  std::string tracestate{};
  // Exactly one of these is set.
  std::optional<HttpCall> http{};
  std::optional<KnowledgeQuery> search{};
  std::optional<CodeCall> code{};
  std::optional<Timestamp> due_at;
  // With `due_at`: a question's time-out. Its session is not busy. The first of answer and time-out
  // ends the question; the other finds it gone.
  bool is_time_out = false;
};

// A message to a silent user. It waits in the store until it is due or the user writes.
struct FollowUp {
  std::string id;  // constant over reruns; the claim of its event
  SessionKey session;
  std::string trace_id;
  std::string tracestate{};
  Timestamp due_at{};
  std::string text;     // the message, or `input.text` of its Flow
  nlohmann::json data;  // null when there is none
  FollowUpPlan plan;
};

[[nodiscard]] nlohmann::json to_json(const HttpCall& call);
[[nodiscard]] nlohmann::json to_json(const KnowledgeQuery& query);
[[nodiscard]] nlohmann::json to_json(const CodeCall& code);
// Sets `http`, `search` or `code` from the JSON of `to_json`. Other JSON is `internal`: bad stored
// data.
[[nodiscard]] Result<void> read_request(const nlohmann::json& value, PendingCall& call);

// The course of a Turn, for the receipt of its event (store/conversation/receipts.h).
struct TurnNotes {
  static constexpr std::size_t most_nodes = 50;
  static constexpr std::size_t most_branches = 20;
  static constexpr std::size_t most_changes = 20;
  static constexpr std::size_t most_value_bytes = 200;

  struct Change {
    std::string path;                  // such as `context.cart.total`, or a root that was reset
    std::size_t bytes = 0;             // about; of the new value
    std::optional<std::string> value;  // the new value as JSON; none: it is removed, or too large
    bool removed = false;
    // About; of the value before the Turn. 0: there was none. None: an earlier write of the Turn
    // may have changed the value.
    std::optional<std::size_t> bytes_before{};
    std::optional<std::string> before{};  // that value as JSON; none: it is not known, or too large
  };
  // Addresses of the Nodes that ran, in order, each with a line feed; of another Flow with its name
  // before. The last is where the Turn ended. Nodes between the first ones and the last may be left
  // out.
  std::string nodes;
  std::size_t nodes_run = 0;
  std::vector<std::string> branches{};  // that Nodes chose: `nodes[0] = long`, each once
  std::vector<Change> changes;          // the last one of each path, in their order
  std::size_t left_out = 0;             // further changes
  bool keeps_event = false;             // a `collect` keeps the Turn's event for a later Turn
  std::vector<std::string> events{};    // ids of kept events that ran in this Turn
};

// The result of a Turn. The Committer makes it durable in one transaction.
struct Effects {
  Session session;  // as it is after the Turn; `version` and `position` are the caller's to set
  std::optional<Profile> profile;   // set if the Turn changed it
  std::vector<Output> outputs;      // `seq` is set, `delivery` is the caller's to set
  std::optional<PendingCall> call;  // set exactly if the session is busy after the Turn
  // The time-out of a new question; never set beside `call`. Time-outs of questions that have ended
  // are not named here: flows::time_outs_of reads them from the session's Flow state.
  std::optional<PendingCall> time_out;
  bool follow_ups_cancelled = false;  // all follow-ups that waited before this Turn
  std::vector<FollowUp> follow_ups;   // new ones
  bool execution_ended = false;  // the Flow waits for an input or has ended; the opposite of busy
  std::vector<std::string>
      log;  // lines for the daemon's log: a restarted Flow, texts of `log` Nodes
  TurnNotes notes;
};

}  // namespace conversed::model
