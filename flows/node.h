#pragma once

#include <chrono>
#include <cstdint>
#include <limits>
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

// What comes after a Node has run.
struct Continue {};  // the Node that follows
struct Jump {        // the Node at `to`; `end_of_flow` ends the execution
  NodeIndex to = end_of_flow;
};
struct Wait {  // the execution ends; the next input goes to this Node's `on_input`, or, if
  // none comes in time, `on_time_out` runs. What is no message of the user (an inject) and leaves
  // the Node waiting does not give it more time.
  std::optional<std::chrono::milliseconds> time_out = std::nullopt;
};
struct Stop {};          // the execution ends; the next input starts the Flow at its beginning
struct CallUpstream {    // the Turn ends; the answer goes to this Node's `on_call_result`. The Turn
  model::HttpCall http;  // sets `idempotency_key`.
};
struct AskKnowledge {  // likewise
  model::KnowledgeQuery query;
};
struct Enter {  // the first Node of another Flow of the project
  std::string flow;
  bool comes_back = true;  // after that Flow's end comes what follows this Node; else nothing
};
struct Restart {};  // the first Node of the Endpoint's Flow; whatever Flows were entered are left
struct Sleep {      // the Turn ends; this Node's `on_timer` runs after `duration`
  std::chrono::milliseconds duration{};
};
using Step =
    std::variant<Continue, Jump, Wait, Stop, CallUpstream, AskKnowledge, Enter, Restart, Sleep>;

// One compiled Node of a Flow. Immutable: threads run it side by side, what changes is in the Turn.
// Each function does no I/O, reads no clock and blocks on nothing. An Error fails the whole Turn,
// which then has no effects: a Node that can go on after a failure says so with a Step.
class Node {
 public:
  Node() = default;
  Node(const Node&) = delete;
  Node& operator=(const Node&) = delete;
  virtual ~Node() = default;

  [[nodiscard]] virtual Result<Step> run(Turn& turn) const = 0;

  // The input that came after `Wait`; `input` in the Turn's scope is it.
  [[nodiscard]] virtual Result<Step> on_input(Turn& turn) const;
  // What came of `CallUpstream` or `AskKnowledge`.
  [[nodiscard]] virtual Result<Step> on_call_result(Turn& turn,
                                                    const model::CallResult& result) const;
  // The time of `Sleep` is over.
  [[nodiscard]] virtual Result<Step> on_timer(Turn& turn) const;

  // No answer has come in the time of `Wait`; asked of Nodes only that say they take it.
  [[nodiscard]] virtual Result<Step> on_time_out(Turn& turn) const;
  [[nodiscard]] virtual bool takes_time_out() const { return false; }

  // Which of the first three this Node takes. An execution that stands at a Node that does not take
  // what arrived is bad stored data.
  enum class Awaits : std::uint8_t { nothing, input, call_result, timer };
  [[nodiscard]] virtual Awaits awaits() const { return Awaits::nothing; }
};

}  // namespace conversed::flows
