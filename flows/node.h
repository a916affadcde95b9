#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <variant>

#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::flows {

class Turn;

using model::Result;

// A Node's place in its Flow's array.
enum class NodeIndex : std::uint32_t {};
inline constexpr NodeIndex end_of_flow{std::numeric_limits<std::uint32_t>::max()};

// The next step after a Node has run.
struct Continue {};  // the Node that follows
struct Jump {        // the Node at `to`; `end_of_flow` ends the execution
  NodeIndex to = end_of_flow;
};
// The execution ends. This Node's `on_input` gets the next input. If none comes in time,
// `on_time_out` runs. An inject that leaves the Node waiting does not extend the time.
struct Wait {
  // `event` and `burst` need a time-out. No input that leaves the Node waiting extends the time,
  // and the session does not expire meanwhile. `burst`: the Node has events and waits for more.
  enum class For : std::uint8_t { input, event, burst };
  std::optional<std::chrono::milliseconds> time_out = std::nullopt;
  For what = For::input;
  bool renews = false;  // the time-out replaces the one that the Node has
};
struct Stop {};  // the execution ends; the next input starts the Flow at its beginning
// The Turn ends. This Node's `on_call_result` gets the answer. The Turn sets `idempotency_key`.
struct CallUpstream {
  model::HttpCall http;
};
struct AskKnowledge {  // like CallUpstream, for a search in knowledge
  model::KnowledgeQuery query;
};
struct RunCode {  // like CallUpstream, for a script
  model::CodeCall code;
};
struct Enter {  // the first Node of another Flow of the project
  std::string flow;
  bool comes_back = true;  // the Node after this one runs after that Flow's end
  nlohmann::json arguments = nlohmann::json::object();
};
struct Return {  // the current Flow ends; the Node that entered it gets the value
  nlohmann::json value;
};
struct Restart {};  // the first Node of the Endpoint's Flow; leaves all entered Flows
struct Sleep {      // the Turn ends; this Node's `on_timer` runs after `duration`
  std::chrono::milliseconds duration{};
};
using Step = std::variant<Continue, Jump, Wait, Stop, CallUpstream, AskKnowledge, RunCode, Enter,
                          Return, Restart, Sleep>;

// `step`, or the error of `done`.
[[nodiscard]] inline Result<Step> step_after(Result<void> done, Step step = Continue{}) {
  if (!done) return model::fail(std::move(done.error()));
  return step;
}

// One compiled Node of a Flow. Immutable and shared by threads; the Turn holds all mutable state.
// The functions do no I/O, read no clock and never block. An Error fails the whole Turn, which then
// has no effects. A Node that can continue after a failure returns a Step instead.
class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  [[nodiscard]] virtual Result<Step> run(Turn& turn) const = 0;

  // The next input after `Wait`. It is `input` in the Turn's scope.
  [[nodiscard]] virtual Result<Step> on_input(Turn& turn) const;
  // Whether this Node, which waits behind a follow-up's Flow, continues with the inject of this
  // Turn. The Turn has no effects.
  [[nodiscard]] virtual Result<bool> takes_inject(Turn&) const { return false; }
  // The result of `CallUpstream`, `AskKnowledge` or `RunCode`.
  [[nodiscard]] virtual Result<Step> on_call_result(Turn& turn,
                                                    const model::CallResult& result) const;
  // The time of `Sleep` is over.
  [[nodiscard]] virtual Result<Step> on_timer(Turn& turn) const;

  // No answer has come within the time of `Wait`. Called only if `takes_time_out`.
  [[nodiscard]] virtual Result<Step> on_time_out(Turn& turn) const;
  [[nodiscard]] virtual bool takes_time_out() const { return false; }

  // Whether this Node keeps injects until it continues. Another Node at its place gives them back.
  [[nodiscard]] virtual bool keeps_injects() const { return false; }

  // Whether the Node at `index` of the same Flow is one that this Node repeats.
  [[nodiscard]] virtual bool repeats(NodeIndex) const { return false; }

  // The Flow that this Node entered has ended. `value` is null if it has returned none.
  [[nodiscard]] virtual Result<void> on_return(Turn& turn, nlohmann::json value) const;

  // Which of the first three functions this Node has. Stored state that awaits another is invalid.
  enum class Awaits : std::uint8_t { nothing, input, call_result, timer };
  [[nodiscard]] virtual Awaits awaits() const { return Awaits::nothing; }
};

}  // namespace conversed::flows
