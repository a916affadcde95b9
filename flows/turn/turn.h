#pragma once

#include <chrono>
#include <cstddef>
#include <cstdint>
#include <functional>
#include <map>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "flows/expression/path.h"
#include "flows/expression/scope.h"
#include "flows/expression/turn_budget.h"
#include "flows/flow.h"
#include "flows/local_text.h"
#include "flows/turn/follow_up.h"
#include "store/model/assets.h"
#include "store/model/effects.h"

namespace conversed::flows {

namespace lexicon {
class Lexicon;
}

// Finds other Flows and lexicons of a Turn's project by name: compiled, immutable and shared. The
// daemon's implementation reads a cache, so a miss can block on the disk. Store failures are
// `unavailable` or `timed_out`. Thread-safe.
class Library {
 public:
  Library() = default;
  Library(const Library&) = delete;
  Library& operator=(const Library&) = delete;
  virtual ~Library() = default;

  struct FoundFlow {
    std::shared_ptr<const Flow> flow;  // never null
    std::int64_t version = 0;
  };
  // The Flow of that name. Version 0 is the newest. `not_found` if it does not exist.
  [[nodiscard]] virtual model::Result<FoundFlow> flow(const std::string& name,
                                                      std::int64_t version) const = 0;
  // The newest lexicon of that name. `not_found` if it does not exist.
  [[nodiscard]] virtual model::Result<std::shared_ptr<const lexicon::Lexicon>> find_lexicon(
      const std::string& name) const = 0;
};

// `input.state` until a Node sets it.
inline constexpr const char* default_state = "default";

// Limits of Flows. A Turn that exceeds one fails and has no effects. The limits of `input.slots`
// fail no Turn, because users fill the slots: further hits are left out, and the log says so.
struct Limits {
  // Of a whole Turn (expression::TurnBudget): about a second. A message takes some hundred steps.
  std::size_t turn_steps = 8'000'000;
  std::size_t turn_bytes = std::size_t{64} << 20;
  std::size_t nodes_per_turn = 1000;
  std::size_t visits_per_node = 100;  // of one Node in one Turn
  std::size_t outputs_per_turn = 100;
  std::size_t output_bytes = std::size_t{64} << 10;    // text and data of one output
  std::size_t context_bytes = std::size_t{256} << 10;  // as JSON text, roughly
  std::size_t profile_bytes = std::size_t{64} << 10;   // as JSON text, roughly
  std::size_t call_bytes = std::size_t{256} << 10;     // body, URL and headers of one call
  std::chrono::milliseconds call_timeout{10'000};      // for a call whose Node sets none
  // The depth of a value in a context or profile, with its path, so that stored rows can be parsed.
  // Kept by: TurnLimits.BoundTheContextsSizeAndDepth.
  std::size_t value_depth = 48;
  std::size_t turns_per_execution = 1000;
  std::size_t flow_depth = 20;   // entered Flows that have not returned, including the first
  std::size_t keyphrases = 100;  // added to lexicons by a session's Nodes
  std::size_t slot_hits = 200;   // all hits in `input.slots`
  std::size_t slot_bytes = std::size_t{256} << 10;   // of `input.slots`, as JSON text, roughly
  std::size_t frame_bytes = std::size_t{256} << 10;  // of loops and arguments, as JSON text
  std::size_t memory_keys = 2000;  // Nodes with a memory in a session, such as `once`
  // Injects that no Node has taken, kept for `waitForEvent` and `collect`. The oldest are dropped.
  std::size_t untaken_events = 20;
  std::size_t untaken_event_bytes = std::size_t{64} << 10;  // together, as JSON text, roughly
};

// Where a Turn failed.
struct TurnPlace {
  std::string flow{};
  std::int64_t version = 0;
  std::string node{};  // its address; empty: before the first Node
};

// The names of branches by the addresses of their Nodes.
using SetBranches = std::map<std::string, std::string, std::less<>>;

// Sees the steps of a Turn, for tools. One thread at a time.
class TurnObserver : public expression::Observer {
 public:
  // A Node begins to run, or gets what it waited for. `scope` has the values before.
  virtual void runs(const Flow& flow, const Flow::Slot& node, const expression::Scope& scope) = 0;
  // The Node that ran last leads to another one of its Flow, or to the Flow's end.
  virtual void leads(const Flow& flow, const Flow::Slot& node, NodeIndex to) = 0;
};

// All inputs of a Turn. The referenced objects must outlive the call of `run_turn`.
struct TurnInput {
  // For an input the version that `version_for` (share.h) gives, else the pinned one.
  const Flow& flow;
  const model::ProjectAssets& assets;
  const model::Endpoint& endpoint;
  model::Session session;  // as the last Turn left it, or new and empty; move it in
  const model::Profile& profile;
  const model::Event& event;
  model::Timestamp now{};
  const Limits& limits;
  std::int64_t flow_version = 0;     // the version of `flow`; a new execution is pinned to it
  const Library* library = nullptr;  // null: the project has no other Flows and no lexicons
  // Whether `flow` belongs to a follow-up or handles an error, and is not the Endpoint's.
  bool is_follow_up_flow = false;
  // Why the Turn of `event` has failed for good: `flow`, which is the Endpoint's for errors, begins
  // instead. Null: it has not failed.
  const std::string* failure = nullptr;
  // Whether the Turn takes far longer than its budget allows, which only a defect can cause. The
  // Turn then fails as with any other limit. Null: never.
  std::function<bool()> is_overdue{};
  // Set if the Turn fails or throws an exception. Null: not asked for.
  TurnPlace* failed_at = nullptr;
  // Gets the Flows whose Nodes run, in the order of their first Nodes, also if the Turn fails.
  // Null: not asked for.
  std::vector<model::PinnedFlow>* flows_run = nullptr;
  // For tests: branches of `split` Nodes by the Nodes' addresses. Null: none.
  const SetBranches* branches = nullptr;
  TurnObserver* observer = nullptr;  // may be null
};

// Runs a Flow until it waits, ends or needs a result from outside.
//
// - `user_message`, `inject` and `follow_up` begin an execution. A new session starts afresh, and
//   so does a session whose last activity is longer ago than the Endpoint's `session_expiry` (by
//   accept times): context and Flow state are empty, and the numbers of outputs continue. If the
//   Flow waits at a Node, that Node gets the input, otherwise the Flow starts at its beginning.
// - `follow_up` uses the session unchanged, expired or not. The Endpoint's Flow keeps waiting at
//   its place.
// - `call_result` and `timer` continue the session's execution.
// - If `failure` is set, the execution that failed is over, and its input goes to `flow` with the
//   failure as `input.error`. The Endpoint's Flow keeps waiting at its place.
//   Kept by: ErrorFlow.BeginsWithTheInputThatFailed, ErrorFlow.ContinuesTheNumbersOfItsExecution.
// - The last Turn of a user's message arms the project's journey, unless a `followUp` or
//   `cancelFollowUp` Node ran.
//
// A pure function: equal inputs give equal Effects, unless the Turn is overdue. The event's id is
// the only source of randomness. Ids are `<input id>-<n>` of outputs, `<input id>-c<n>` of calls
// and timers, and `<input id>-f<n>` of follow-ups, counted over all Turns of an execution. The
// time-out of the wait at which the execution ends has the id `<input id>-w` for a question, `-e`
// for an event, `-b` for more events. So a rerun makes the same ids.
// Kept by: TurnProperty.TheSameInputGivesEqualEffectsAndNumbersHaveNoGaps,
// TimeOuts.EachHasTheIdOfTheInputThatLedToIt.
//
// Errors: `conflict` (an input for a busy session, or a result that the session does not wait for),
// `invalid_argument` and `too_large` (the Flow's own failure or a limit; the message names the
// Node), `bad_upstream` (a failed call without `onError`), `internal` (stored state that can't be
// read). A Turn with an error has no effects. `unavailable` and `timed_out` come from the Library:
// the Turn can run again later. Thread-safe.
[[nodiscard]] Result<model::Effects> run_turn(TurnInput input);

// Whether the Endpoint's Flow, which waits for an event behind a follow-up's Flow, continues with
// the inject. If so, it runs, otherwise the follow-up's Flow does. `input.flow` is the Endpoint's.
// The session is not busy and not expired. Errors are those of `run_turn`. Thread-safe.
// Kept by: WaitForEventNode.BehindAFollowUpsFlowLeavesItWhatDoesNotFit.
[[nodiscard]] Result<bool> takes_inject(TurnInput input);

// Whether an input accepted at `accepted_at` finds a session without any input yet (its last
// activity is the epoch), or an expired one. An expiry of 0 or less means never.
// A wait for an event is activity until its time is over, even if its timer was canceled.
[[nodiscard]] bool starts_afresh(const model::Session& session, const model::Endpoint& endpoint,
                                 model::Timestamp accepted_at);

// The Effects of a Turn that has failed for good: the execution ends, an input counts as activity,
// and the user gets the Endpoint's `error_text` if it has one. A Flow that waited for the input
// keeps waiting. Pure. Thread-safe.
// Kept by: FailureEffects.LeaveNoExecutionAndSayTheErrorText.
[[nodiscard]] model::Effects failure_effects(model::Session session,
                                             const model::Endpoint& endpoint,
                                             const model::Event& event, model::Timestamp now);

// The Effects of EventType::notify: one more output. No Flow runs, and a waiting execution keeps
// waiting. A notify is no input: it is no activity and does not begin a conversation. Pure.
// Thread-safe.
[[nodiscard]] model::Effects notify_effects(model::Session session, const model::Event& event,
                                            model::Timestamp now);

// A message to the user if the user stays silent.
struct FollowUpWish {
  std::chrono::milliseconds after{};
  std::optional<std::chrono::milliseconds> expires_after;  // both from the event's accept time
  std::string text{};
  std::string flow_id{};  // empty: the text is said unchanged
  nlohmann::json data{};
};

// The interface of a running Turn for its Nodes. One thread.
class Turn {
 public:
  explicit Turn(TurnInput input);
  Turn(const Turn&) = delete;
  Turn& operator=(const Turn&) = delete;

  // The names of expressions. Valid until the Turn ends. Shows every change at once.
  [[nodiscard]] const expression::Scope& scope() const { return scope_; }
  // `input.text`. Empty if the input has only data.
  [[nodiscard]] const std::string& input_text() const;
  // The Flow of the current Node. It is not the Endpoint's while another one is entered.
  [[nodiscard]] const Flow& flow() const { return *top().flow; }
  [[nodiscard]] const model::ProjectAssets& assets() const { return input_.assets; }
  [[nodiscard]] const Limits& limits() const { return input_.limits; }
  // Pays for all work of the Turn. Work of more than a step or two pays before it starts. When the
  // budget is spent, the Turn fails after the current Node.
  [[nodiscard]] expression::TurnBudget& budget() { return budget_; }
  [[nodiscard]] const Flow::Slot& here() const { return flow().slot(top().at); }
  // The Node of the same Flow that ran before this one in this Turn. `end_of_flow`: the Flow begins
  // here, or another Flow led here.
  [[nodiscard]] NodeIndex came_from() const { return came_from_; }
  // The session's locale among those of its project: that of the profile, otherwise the last one of
  // an input, otherwise the primary one. `input.locale` has it.
  [[nodiscard]] std::string_view locale() const { return wording_.locale; }
  [[nodiscard]] const Wording& wording() const { return wording_; }
  // The text in the session's locale, with its values.
  [[nodiscard]] std::string worded(const LocalText& text) const {
    return text.in(wording_).render(scope_);
  }
  // `input`, for Nodes that change it.
  [[nodiscard]] nlohmann::json& input_object();
  // Makes the member of `input` with this name, or all members if the name is empty. Members that
  // are there stay.
  void complete_input(std::string_view name = {});

  // Says something to the user. `data` is null when there is none.
  [[nodiscard]] Result<void> output(std::string text, nlohmann::json data);
  // Writes to `context` or `profile`, depending on the path.
  [[nodiscard]] Result<void> assign(const expression::Path& path, nlohmann::json value);
  // Whether `assign` would succeed. Changes nothing.
  [[nodiscard]] Result<void> check_assign(const expression::Path& path, nlohmann::json value);
  void erase(const expression::Path& path);
  void reset_context();
  void reset_profile();
  // Sets `input.error` for an error branch.
  void set_input_error(std::string_view code, std::string_view message, int status);
  // Replaces text and data of the input. Then searches them by the lexicons of the Endpoint's Flow.
  [[nodiscard]] Result<void> replace_input(std::string text, nlohmann::json data);
  // The injects that no Node has taken, the oldest first: `{n, at, event}`. `n` is the number of
  // the execution that the inject began, `at` that Turn's time, and `event` is `{id, text, data}`.
  // None if the session can reach no Node that keeps injects. `input_event` is their place in
  // `input`.
  static constexpr const char* input_event = "event";
  [[nodiscard]] nlohmann::json& untaken_events() { return untaken_; }
  // The current Node takes the input, so no `waitForEvent` gets it later.
  void take_input();
  // The approximate bytes of the value as JSON text, up to `enough`. Pays for the walk through it.
  [[nodiscard]] std::size_t measure(const nlohmann::json& value, std::size_t enough);
  // For receipts: a Node keeps the Turn's event for a later Turn; a kept event runs in this Turn.
  void note_kept() { effects_.notes.keeps_event = true; }
  void note_run(std::string event_id) { effects_.notes.events.push_back(std::move(event_id)); }
  // `input.execution`: the number of the execution in its session.
  [[nodiscard]] std::int64_t execution() const { return executions_; }
  // The memory of the current Node for the life of the session. Null at first.
  [[nodiscard]] Result<nlohmann::json*> memory();
  // Sets `input.state`. An empty name means the default state.
  void set_state(std::string name);
  void reset_state() { set_state(""); }
  // Adds a keyphrase to a lexicon for this session, from its next input on. It replaces a keyphrase
  // with the same main phrase.
  [[nodiscard]] Result<void> add_keyphrase(const std::string& lexicon, nlohmann::json entry);
  // Adds a hit to `input.slots`, unless they are full.
  void add_slot(const std::string& slot, nlohmann::json hit);
  // An evenly distributed number below `bound` (at least 1), the same in every rerun.
  [[nodiscard]] std::size_t random_below(std::size_t bound);
  // An even draw from [0, 1), the same for the same session, current Node and `name`.
  // Kept by: SplitNode.TakesTheSameBranchAtEachVisit.
  [[nodiscard]] double fixed_draw(const std::string& name) const;
  // The branch that a test has set for the current Node. Empty: none.
  [[nodiscard]] std::string_view set_branch() const;
  // Notes the branch that the current Node has chosen, for the event's receipt and for tools.
  void note_branch(const std::string& name);
  // Plans a follow-up, which replaces the journey. `too_large` if the execution plans too many.
  [[nodiscard]] Result<void> follow_up(FollowUpWish wish);
  // Cancels pending follow-ups, and the journey of this execution.
  void cancel_follow_ups();
  void log(std::string line);

  // The pass through a list by the current Node, in the current run of its Flow. The stored state
  // has it while a Node that it repeats waits.
  // Kept by: ForEachNode.AsksAndCallsForEachItem, ForEachNode.GoesOnInANewVersionOfItsFlow.
  struct Loop {
    NodeIndex node = end_of_flow;
    std::size_t next = 0;  // the item of the next pass
    nlohmann::json list{};
  };
  // Null: it has none.
  [[nodiscard]] Loop* loop();
  // Begins one. It ends when the Flow continues at a Node that it does not repeat.
  [[nodiscard]] Result<void> begin_loop(nlohmann::json list);

  // The memory of a Node between its Waits. It is gone when the Flow continues. Null at first.
  [[nodiscard]] nlohmann::json& node_state() { return node_state_; }

  // A failure of the current Node. The message gets the Node's address.
  [[nodiscard]] tl::unexpected<model::Error> failure(model::Errc code,
                                                     std::string_view message) const;
  // `too_large` for an exceeded limit. The message joins the three arguments.
  [[nodiscard]] tl::unexpected<model::Error> exceeded(std::string_view before, std::size_t limit,
                                                      std::string_view after) const;
  // An error once the budget is spent.
  [[nodiscard]] Result<void> check_budget() const;

 protected:
  // A root that a Flow writes to, and its size.
  struct Root {
    nlohmann::json* value = nullptr;
    std::size_t limit = 0;
    std::size_t measured = 0;  // bytes at the last measurement
    std::size_t grown = 0;     // bytes written since then; the actual growth may be smaller
    bool is_measured = false;
  };
  [[nodiscard]] Root& root(expression::Path::Root which);
  [[nodiscard]] Result<void> check_size(Root& root, std::string_view name, std::size_t added);
  // The key of a Node's memory.
  [[nodiscard]] std::string memory_key(const std::string& flow_name,
                                       const std::string& address) const;
  // The current Flow, then the Flows that entered it, from the inside out.
  [[nodiscard]] std::vector<const Flow*> entered_flows() const;
  // Walking through some bytes of a value takes a few ns, and copying them ten times that.
  static constexpr std::size_t json_bytes_a_step = 16;

  [[nodiscard]] nlohmann::json event_data() const;
  [[nodiscard]] nlohmann::json& input_slots();
  [[nodiscard]] std::string_view state_name() const {
    return state_.empty() ? std::string_view(default_state) : state_;
  }
  // Chooses the session's locale. Called whenever the profile or the input changes it.
  void choose_locale();
  // Searches the text by the lexicons of the Flows, each once. Appends the hits to `input.slots`:
  // first the first Flow's, then the others'. Skips lexicons that have hits there.
  [[nodiscard]] Result<void> find_slots(const std::vector<const Flow*>& flows);
  // The lexicon, and the entries that this session has added to it. Empty if there is none.
  [[nodiscard]] Result<std::vector<std::shared_ptr<const lexicon::Lexicon>>> lexicon_of(
      const std::string& name);
  // Whether `input.slots` takes another hit of that many bytes. If so, counts it.
  [[nodiscard]] bool takes_hit(std::size_t bytes);
  // Appends the current Node to the Nodes of the event's receipt. Of many only the first ones and
  // the last are kept.
  void note_node();
  // Notes a write for the event's receipt, before it is made. `value` null: it is removed. A write
  // of the same value is no change.
  void note_write(const expression::Path& path, std::size_t bytes, const nlohmann::json* value);
  // The same for a whole root that is emptied.
  void note_reset(expression::Path::Root which);
  // Appends the current Node's address, with the Flow's name before it unless it is the Endpoint's.
  void append_here(std::string& text) const;
  // The new note of a change. Null: the place has one already, or the list is full.
  [[nodiscard]] model::TurnNotes::Change* note_change(std::string_view path, std::size_t bytes,
                                                      const nlohmann::json* value);
  // `before` null: there was no value.
  void note_before(model::TurnNotes::Change& change, const Root& root,
                   const nlohmann::json* before);

  // The place of a Flow.
  struct Frame {
    const Flow* flow = nullptr;  // the input owns the Endpoint's, the runner all others
    std::int64_t version = 0;
    NodeIndex at = end_of_flow;
    std::vector<Loop> loops{};  // the outermost first
    nlohmann::json arguments = nlohmann::json::object();
  };
  // `too_large` if the value is nested too deeply, or too large beside all that the frames keep.
  [[nodiscard]] Result<void> check_kept(const nlohmann::json& value);
  // Gives the last frame's arguments to expressions. Called whenever the last frame changes.
  void show_arguments() { scope_.arguments = &frames_.back().arguments; }
  [[nodiscard]] const Frame& top() const { return frames_.back(); }

  TurnInput input_;
  expression::TurnBudget budget_;
  model::Effects effects_;
  expression::Scope scope_;
  Wording wording_;  // borrows the names of the project's locales
  Root context_;
  Root profile_;

  // Values of the execution. They go into its state if the Turn ends before the execution.
  model::Execution execution_;
  nlohmann::json input_object_;
  bool input_is_complete_ = false;  // it has all members that `complete_input` makes
  struct Filled {
    std::size_t hits = 0;
    std::size_t bytes = 0;
  };
  std::optional<Filled> slots_filled_;  // empty: `input.slots` is not counted yet
  bool slots_full_ = false;             // the log says so
  std::int64_t outputs_made_ = 0;
  std::int64_t calls_made_ = 0;
  std::int64_t turns_ = 1;
  std::int64_t follow_ups_made_ = 0;
  bool follow_ups_settled_ = false;  // by a Node, which replaces the journey

  // Values of the session. They go into its Flow state.
  std::int64_t executions_ = 0;
  nlohmann::json memory_;      // by Node; null: none yet
  nlohmann::json untaken_;     // the injects that no Node has taken; null: none yet
  nlohmann::json keyphrases_;  // added ones by lexicon; null: none yet
  std::string state_;          // empty: the default state
  std::string locale_;         // the last one of an input; empty: none yet
  bool waits_ = false;         // at the frames below; otherwise the Flow starts at its beginning
  nlohmann::json node_state_;
  FollowUpCounts follow_up_counts_;
  // The place where the Endpoint's Flow waits while the follow-up's Flow runs or waits. Null: none.
  nlohmann::json behind_;

  // Never empty. The Node that runs is in the last frame. The others entered it, the Endpoint's
  // Flow first, and get control back.
  std::vector<Frame> frames_;
  nlohmann::json returned_;                // by the Flow that ends
  std::vector<expression::Path> written_;  // the places of the noted changes
  NodeIndex came_from_ = end_of_flow;
};

}  // namespace conversed::flows
