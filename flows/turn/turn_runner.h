// How a Turn is run (see turn.h): turn_runner.cc has the way through the Nodes, time_outs.cc that
// of unanswered questions, turn_state.cc what is read from the stored session and written back.
#pragma once

#include <cstdint>
#include <map>
#include <optional>
#include <string>
#include <unordered_map>
#include <utility>
#include <vector>

#include "flows/node_types.h"
#include "flows/turn/turn.h"

namespace conversed::flows {

using model::is_input;

// Empties the session for a conversation that begins at `now`.
void reset_session(model::Session& session, model::Timestamp now);

// What is left of a session's Flow state: how often the journey followed the user up that day,
// which is limited whatever becomes of sessions.
[[nodiscard]] nlohmann::json state_after_reset(const nlohmann::json& flow_state);

// Runs one Turn from its beginning to its Effects. One use.
class TurnRunner {
 public:
  explicit TurnRunner(TurnInput input) : turn_(std::move(input)) {}

  Result<model::Effects> run();

 private:
  // turn_runner.cc
  Result<Step> begin();
  Result<Step> resume();
  void begin_execution();
  Result<Step> enter_waiting_node();
  void recall(const nlohmann::json& waiting);
  void start_over();
  Result<void> advance(Step step);
  // What comes after `at_`'s Node is `next`; comes back from Flows that end. False: all has ended.
  Result<bool> go_on(NodeIndex next);
  // The Flow as it is for the whole Turn; version 0 is the newest. `not_found`: there is none.
  Result<Turn::Frame> look_up(const std::string& name, std::int64_t version);
  Result<NodeIndex> enter(const Enter& step);
  Result<void> count_visit();
  // Ends the Turn with what it asks for: one of `http`, `search` and `due_at` of `call` is set.
  Result<void> suspend(model::PendingCall call);
  Result<void> check_call(const model::HttpCall& call) const;
  void count_follow_up();
  void arm_journey();

  // time_outs.cc
  Result<Step> enter_time_out();
  void wait_for_input(const Wait& wait);

  // turn_state.cc
  Result<void> restore_flow_state();
  Result<void> restore_memories(nlohmann::json& state);
  Result<void> restore_waiting(nlohmann::json& state);
  // Takes the frames of a stored state up; false: one of its Flows or Nodes is not there. Versions
  // are those of the state, or, of an input, the newest.
  Result<bool> restore_frames(const nlohmann::json& state, bool pinned);
  Result<std::optional<Turn::Frame>> restore_frame(const nlohmann::json& stored, bool pinned);
  Result<void> restore_execution();
  void make_input_object();
  [[nodiscard]] nlohmann::json frames(bool pinned) const;
  [[nodiscard]] nlohmann::json execution_state();
  // Those in which the execution stands, but for the Endpoint's.
  [[nodiscard]] std::vector<model::PinnedFlow> entered_flows() const;
  void save_flow_state();

  [[nodiscard]] const model::Event& event() const { return turn_.input_.event; }
  [[nodiscard]] model::Session& session() { return turn_.effects_.session; }

  Turn turn_;
  // As the flow state has it, until its Node is entered; what is left is where the Flow waits on.
  nlohmann::json waiting_;
  // Of the question that waits from now on; empty: it waits as long as it takes.
  std::string time_out_;
  // Of the one that an inject came to: it stays, unless the Flow goes on.
  std::string kept_time_out_;
  // Flows looked up by name and version: the same for a whole Turn, and alive as long as it.
  std::map<std::pair<std::string, std::int64_t>, Library::FoundFlow> held_;
  std::size_t nodes_run_ = 0;
  std::unordered_map<const Flow*, std::vector<std::uint32_t>> visits_;  // of each Node
};

}  // namespace conversed::flows
