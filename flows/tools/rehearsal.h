#pragma once

#include <algorithm>
#include <chrono>
#include <cstddef>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "flows/turn/turn.h"
#include "store/model/bundle.h"

namespace conversed::flows::tools {

// The parts of a bundle that conversations read. Immutable. Threads share it.
struct Stage {
  std::shared_ptr<const Library> library;
  std::shared_ptr<const Flow> flow;  // that inputs run
  model::ProjectAssets assets{};
  model::Endpoint endpoint{};
  Limits limits{};
  std::function<bool()> is_overdue{};  // of a Turn, as in TurnInput
};

// Limits of the Turns that one event causes, because their effects stay in memory.
struct RunLimits {
  static constexpr std::size_t none = std::numeric_limits<std::size_t>::max();
  std::size_t turns = none;
  std::size_t outputs = none;
  std::size_t log_lines = none;
  std::size_t bytes = none;  // of outputs, log and calls
};

// The stage of a bundle without problems. An empty `endpoint` is the first one, an empty `flow` the
// Endpoint's or the only one. `not_found` if the bundle lacks it.
[[nodiscard]] model::Result<Stage> stage_of(const model::Bundle& bundle,
                                            const std::string& endpoint, const std::string& flow);

// All Flows of the stage's bundle.
[[nodiscard]] std::vector<std::shared_ptr<const Flow>> flows_of(const model::Bundle& bundle,
                                                                const Stage& stage);

// A conversation of one user with a bundle, without a daemon. Turns run at once. Timers and
// follow-ups run when the time advances. One thread.
class Rehearsal {
 public:
  // The effects of the Turns since the last `take_done`.
  struct Done {
    std::vector<model::Output> outputs{};
    std::vector<std::string> log{};
    std::string error{};      // of the last Turn that failed, or exceeded the limits of its run
    std::string failed_at{};  // its Node
  };
  // Answers a call in place of the upstream. Nothing: the session is busy until `answer`.
  using Upstream = std::function<std::optional<model::CallResult>(const model::PendingCall&)>;

  // `stage` and `observer`, which may be null, must outlive this.
  Rehearsal(const Stage& stage, model::Timestamp now, Upstream upstream,
            TurnObserver* observer = nullptr, const RunLimits& limits = {});

  // Continues a stored session. Its key, if it has one, is that of all events.
  void start(model::Session session, model::Profile profile);
  // Sets the values at the beginning. With a context the conversation is under way.
  void prepare(const nlohmann::json& context, const nlohmann::json& profile);
  // Sets the branches of `split` Nodes. The session decides on the others.
  void choose(SetBranches branches) { branches_ = std::move(branches); }

  // Runs an input. `conflict` if the session is busy.
  [[nodiscard]] model::Result<void> take(model::EventType type, std::optional<std::string> text,
                                         nlohmann::json data);
  // Advances the time. Timers and follow-ups on the way run at their times. `too_large` if there
  // are too many of them; the time then stands at the last one.
  [[nodiscard]] model::Result<void> advance(std::chrono::milliseconds time);
  // Runs the event's Turn and the Turns of the calls that it causes. A Turn that fails or exceeds
  // a limit has the effects of a failure.
  // Kept by: Trial.EndsAtALimitAndSaysWhich.
  void run(model::Event event);
  // Gives the answer to `open_call`, which must exist.
  void answer(model::CallResult result);

  // ---- For replays, which know the events and their times

  // The time of the next events. It never goes back.
  void set_time(model::Timestamp now) { now_ = std::max(now_, now); }
  // A user's message comes: follow-ups no longer wait, and the execution of one ends.
  void make_way();
  // Runs a result as `run` does. `open_call` must exist.
  void resume(model::Event result);
  // The timers of the session, the earliest first. If the session sleeps, only the timer of the
  // sleep.
  struct Waiting {
    std::string id;
    model::EventType type = model::EventType::timer;
    model::Timestamp due_at{};
  };
  [[nodiscard]] std::vector<Waiting> waiting() const;
  // Runs it now, with id, trace and accept time of `as`. `id` must be in `waiting`.
  void run_waiting(const std::string& id, const model::Event& as);
  // Forgets the follow-up, if it waits.
  void drop_follow_up(const std::string& id);

  [[nodiscard]] const std::optional<model::PendingCall>& open_call() const { return open_call_; }
  [[nodiscard]] const model::Session& session() const { return session_; }
  [[nodiscard]] const model::Profile& profile() const { return profile_; }
  [[nodiscard]] model::Timestamp now() const { return now_; }
  // The time of the next timer or follow-up.
  [[nodiscard]] std::optional<model::Timestamp> next_due() const;
  // The address of the Node at which the Flow waits. Empty if it has ended.
  [[nodiscard]] std::string waits_at() const;
  [[nodiscard]] Done take_done() { return std::exchange(done_, {}); }

 private:
  [[nodiscard]] model::Event new_event(model::EventType type);
  // The next event up to that time, which `now_` then is. Nothing if there is none.
  [[nodiscard]] std::optional<model::Event> next_event(model::Timestamp until);
  [[nodiscard]] model::Event event_of(const model::PendingCall& timer);
  [[nodiscard]] model::Event event_of(model::FollowUp follow_up);
  void take_timer(model::Event event);
  void take_follow_up(model::Event event);
  // Whether the Endpoint's Flow takes the inject, behind the follow-up's Flow that waits.
  [[nodiscard]] bool is_taken_behind(const model::Event& event) const;
  [[nodiscard]] Library::FoundFlow flow_for(const model::Event& event) const;
  [[nodiscard]] model::Result<model::Effects> turn_of(const Library::FoundFlow& found,
                                                      const model::Event& event,
                                                      TurnPlace& failed_at,
                                                      const std::string* failure);
  [[nodiscard]] model::Effects after_failure(const model::Session& before,
                                             const model::Event& event, Library::FoundFlow& flow);
  // Why the Turn is too much for its run. Empty: it fits.
  [[nodiscard]] std::string excess(const model::Effects& effects, std::size_t turn,
                                   std::size_t bytes) const;
  void apply(model::Effects effects);
  void take_timers(model::Effects& effects);

  const Stage& stage_;
  model::Timestamp now_;
  const Upstream upstream_;
  TurnObserver* const observer_;
  const RunLimits limits_;
  SetBranches branches_;
  model::SessionKey key_{"project", "endpoint", "user", "session"};
  model::Session session_;
  model::Profile profile_;
  std::optional<model::PendingCall> open_call_;
  std::optional<model::PendingCall> sleep_;    // of the busy session
  std::vector<model::PendingCall> time_outs_;  // of questions
  std::vector<model::FollowUp> follow_ups_;
  std::size_t events_ = 0;
  Done done_;
};

}  // namespace conversed::flows::tools
