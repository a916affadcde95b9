// Runs a Turn (see turn.h). turn_runner.cc walks through the Nodes, turn_state.cc reads and writes
// the stored state. Invalid stored state is an Error, never a crash.
// Kept by: Turn.TakesBadStoredStateForAnError, Turn.TakesABadStoredExecutionForAnError.
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

// Whether the list has the shape of entries of `Turn::untaken_events`.
[[nodiscard]] bool are_events(const nlohmann::json& list);

// Empties the session for a conversation that begins at `now`.
void reset_session(model::Session& session, model::Timestamp now);

// Ends the execution or the wait that the event of a failed Turn should have continued. Returns the
// execution, if there is one.
[[nodiscard]] std::optional<model::Execution> end_failed(model::Session& session,
                                                         const model::Endpoint& endpoint,
                                                         const model::Event& event);

// Records the input in its session, even if its Turn fails.
void note_input(model::Session& session, const model::Event& event);

// The Flow state after a reset: the journey's counts of the day, which outlast sessions.
[[nodiscard]] nlohmann::json state_after_reset(const nlohmann::json& flow_state);

// Runs one Turn from its beginning to its Effects. One use.
class TurnRunner : public Turn {
 public:
  using Turn::Turn;

  Result<model::Effects> run();
  Result<bool> takes_inject();

 private:
  // turn_runner.cc
  Result<model::Effects> run_nodes();
  void note_failure();
  Result<Step> first_step();
  Result<Step> begin();
  Result<Step> resume();
  Result<Step> begin_after_failure();
  void begin_execution();
  void keep_inject();
  bool may_wait_for_event();
  Result<Step> enter_waiting_node();
  void give_back(const std::string& flow_name, const std::string& address);
  Result<Step> enter_time_out();
  void wait_for_input(const Wait& wait);
  void recall(const nlohmann::json& waiting);
  void start_over();
  [[nodiscard]] std::optional<model::PendingCall> awaited_by(Step& step) const;
  Result<void> advance(Step step);
  // Continues at `next`, or returns from Flows that end there. False if the execution ends.
  Result<bool> go_on(NodeIndex next);
  // A Flow, the same for the whole Turn. Version 0 is the newest. `not_found` if it is missing.
  Result<Frame> look_up(const std::string& name, std::int64_t version);
  Result<NodeIndex> enter(Enter step);
  Result<void> count_visit();
  [[nodiscard]] NodeIndex noted_way(NodeIndex to) const;
  // Ends the Turn with a call; one of its `http`, `search`, `code` and `due_at` is set.
  Result<void> suspend(model::PendingCall call);
  void count_follow_up();
  void arm_journey();

  // turn_state.cc
  Result<void> restore_flow_state();
  Result<void> restore_memories(nlohmann::json& state);
  Result<void> restore_waiting(nlohmann::json& state);
  // Restores the frames of a stored state. False if one of its Flows or Nodes no longer exists.
  // `pinned`: in the state's versions. Otherwise, for an input, in the newest versions.
  Result<bool> restore_frames(const nlohmann::json& state, bool pinned);
  // Restores the loops around the frame's Node, and the arguments. False if their shape is wrong.
  [[nodiscard]] static bool restore_loops(const nlohmann::json& stored, Frame& frame);
  [[nodiscard]] static bool restore_arguments(const nlohmann::json& stored, Frame& frame);
  Result<void> restore_execution();
  // The input and the numbers of the execution. False if their shape is wrong.
  [[nodiscard]] bool restore_progress(nlohmann::json& state);
  void note_locale();
  [[nodiscard]] nlohmann::json frames(bool pinned) const;
  [[nodiscard]] nlohmann::json execution_state();
  // The entered Flows of the execution, except the Endpoint's.
  [[nodiscard]] std::vector<model::PinnedFlow> pinned_flows() const;
  void bound_untaken();
  void save_flow_state();

  [[nodiscard]] const model::Event& event() const { return input_.event; }
  [[nodiscard]] model::Session& session() { return effects_.session; }

  // The stored wait, until its Node is entered. If it remains, the Flow keeps waiting there.
  nlohmann::json waiting_;
  // The timer of the question that waits after this Turn. Empty: it has no time-out.
  std::string time_out_;
  // When the time of the wait for an event is over. Empty: none waits after this Turn.
  std::optional<model::Timestamp> until_;
  // The timer of the question that got an inject. It stays unless the Flow continues.
  std::string kept_time_out_;
  // Flows by name and version, kept for the whole Turn.
  std::map<std::pair<std::string, std::int64_t>, Library::FoundFlow> held_;
  std::size_t nodes_run_ = 0;
  std::unordered_map<const Flow*, std::vector<std::uint32_t>> visits_;  // for each Node
};

}  // namespace conversed::flows
