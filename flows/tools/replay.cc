#include "flows/tools/replay.h"

#include <algorithm>
#include <chrono>
#include <map>
#include <optional>
#include <string_view>
#include <utility>

#include "flows/turn/request_mark.h"
#include "store/model/json.h"
#include "store/model/url.h"

namespace conversed::flows::tools {
namespace {

using model::EventType;
using model::Timestamp;

constexpr std::size_t most_new_timers = 1000;  // of one conversation
constexpr std::size_t most_replayed_bytes = std::size_t{4} << 20;
// How late a timer's event may come in a daemon that is not busy.
constexpr std::chrono::milliseconds timer_delay{1000};

std::string_view kind_of_input(EventType type) {
  switch (type) {
    case EventType::user_message:
      return ">";
    case EventType::follow_up:
      return "(follow-up)";
    case EventType::time_out:
      return "(time-out)";
    case EventType::notify:
      return "(notify)";
    default:
      return "(inject)";
  }
}

std::string shown_input(const model::Event& event) {
  std::string shown(kind_of_input(event.type));
  if (event.text) shown += ' ' + *event.text;
  if (!event.data.is_null()) shown += ' ' + model::json_text(event.data);
  return shown;
}

std::string shown_call(const model::PendingCall& call, const std::string& node) {
  const auto what = call.http   ? call.http->method + ' ' + model::authority_of(call.http->url)
                    : call.code ? std::string("a script")
                                : "a search in " + call.search->store;
  return "a call that the recording lacks: " + what + ", at the Node " + node;
}

// One conversation. Used once.
class Replayer {
 public:
  // Both must outlive it. The recording has a Turn that begins the conversation.
  Replayer(const Stage& stage, const Recording& recording, std::size_t begin, Timestamp until)
      : turns_(recording.turns),
        begin_(begin),
        until_(until),
        used_(turns_.size(), false),
        rehearsal_(stage, turns_[begin].at, [](const auto&) { return std::nullopt; }) {
    for (std::size_t i = 0; i < turns_.size(); ++i) of_input_[turns_[i].input_id].push_back(i);
    model::Session session;
    session.key = recording.key;
    session.started_at = turns_[begin].at;
    session.flow_state = turns_[begin].state;
    model::Profile profile;
    profile.project_id = recording.key.project_id;
    profile.user_id = recording.key.user_id;
    profile.data = turns_[begin].profile;
    rehearsal_.start(std::move(session), std::move(profile));
  }

  Replay run() {
    for (std::size_t i = begin_; i < turns_.size() && !ended_; ++i) {
      at_ = i;
      const auto& turn = turns_[i];
      if (used_[i] || !turn.begins_execution()) continue;
      used_[i] = true;
      if (turn.missing.empty()) {
        take(turn);
      } else {
        end(turn.missing);
      }
    }
    at_ = turns_.size();
    run_new_timers(until_ - timer_delay);
    Replay done{.reason = std::move(reason_), .exchanges = std::move(exchanges_)};
    const auto first = std::ranges::find_if(done.exchanges, &Exchange::differs);
    done.first = static_cast<std::size_t>(first - done.exchanges.begin());
    if (first != done.exchanges.end()) {
      done.outcome = Replay::Outcome::different;
    } else if (!done.reason.empty()) {
      done.outcome = Replay::Outcome::not_comparable;
    }
    return done;
  }

 private:
  // Ends the replay where the recording lacks something. Of an unfinished exchange only the part
  // that was replayed is compared.
  void end(std::string reason) {
    ended_ = true;
    reason_ = std::move(reason);
    if (unfinished_ == nullptr) return;
    auto& recorded = unfinished_->recorded;
    recorded.resize(std::min(recorded.size(), unfinished_->replayed.size()));
    if (unfinished_->replayed_failure.empty()) unfinished_->recorded_failure.clear();
  }

  void take(const RecordedTurn& turn) {
    if (turn.event.type == EventType::notify) {
      begin_exchange(turn);
      exchanges_.back().replayed = exchanges_.back().recorded;
      return;
    }
    run_new_timers(turn.event.accepted_at - timer_delay);
    if (ended_ || is_over(turn)) return;
    if (turn.event.type == EventType::user_message) rehearsal_.make_way();
    finish_execution();
    if (ended_) return;
    rehearsal_.set_time(turn.at);
    const bool waits = model::comes_of_silence(turn.event.type);
    if (waits && !waits_for(turn)) return miss(turn);
    if (!waits && lacks_outputs(turn.input_id)) return end("its outputs are no longer kept");
    begin_exchange(turn);
    if (waits) {
      rehearsal_.run_waiting(turn.event.claim->id, turn.event);
    } else {
      rehearsal_.run(turn.event);
    }
    follow(turn.input_id);
  }

  // Whether nothing ran for the event, neither in the recording nor in the replay.
  bool is_over(const RecordedTurn& turn) {
    if (turn.ended.empty() || turn.event.type == EventType::time_out) return false;
    if (turn.event.type != EventType::follow_up || !turn.event.claim) return true;
    const auto& id = turn.event.claim->id;
    // A follow-up that was put off stays: it has another id since then.
    if (!is_claimed_later(id + "q")) rehearsal_.drop_follow_up(id);
    return !waits_for(turn);
  }

  [[nodiscard]] bool waits_for(const RecordedTurn& turn) const {
    const auto waiting = rehearsal_.waiting();
    return turn.event.claim && std::ranges::find(waiting, turn.event.claim->id,
                                                 &Rehearsal::Waiting::id) != waiting.end();
  }

  // The recorded timer or follow-up has no counterpart in the replay.
  void miss(const RecordedTurn& turn) {
    if (!turn.ended.empty() || (turn.output_count == 0 && !turn.failed && !turn.waits_for)) return;
    begin_exchange(turn);
    exchanges_.back().note = "nothing waits for this time";
  }

  // An input finds the session at rest. Only a sleep that the recording lacks may be under way.
  void finish_execution() {
    while (!ended_ && rehearsal_.session().busy()) {
      if (rehearsal_.open_call()) return end("the recording lacks the answer of a call");
      run_new(rehearsal_.waiting().front());
    }
  }

  // Runs timers that are due by then and that the recording lacks.
  void run_new_timers(Timestamp until) {
    while (!ended_) {
      const auto waiting = rehearsal_.waiting();
      const auto next = std::ranges::find_if(waiting, [&](const Rehearsal::Waiting& each) {
        return each.due_at <= until && !is_known(each);
      });
      if (next == waiting.end()) return;
      run_new(*next);
    }
  }

  void run_new(const Rehearsal::Waiting& timer) {
    if (++new_timers_ > most_new_timers) {
      return end("more than " + std::to_string(most_new_timers) + " timers fall due");
    }
    rehearsal_.set_time(timer.due_at);
    model::Event as;
    as.id = timer.id + "-n";
    as.accepted_at = timer.due_at;
    as.trace_id = std::string(32, '0');
    std::string input_id = as.id;
    if (timer.type == EventType::timer) {
      input_id = rehearsal_.session().execution->input_id;
    } else {
      as.type = timer.type;
      exchanges_.push_back({.input_id = as.id, .input = shown_input(as), .at = timer.due_at});
    }
    rehearsal_.run_waiting(timer.id, as);
    follow(input_id);
  }

  // Whether a later Turn of the recording has this claim.
  [[nodiscard]] bool is_claimed_later(const std::string& id) const {
    for (std::size_t i = at_; i < turns_.size(); ++i) {
      if (turns_[i].event.claim && turns_[i].event.claim->id == id) return true;
    }
    return false;
  }

  // Whether the recording has the timer: it ran, or runs later, or never did for a reason that the
  // recording does not tell.
  [[nodiscard]] bool is_known(const Rehearsal::Waiting& timer) const {
    if (timer.type != EventType::timer && is_claimed_later(timer.id)) return true;
    const auto mark = timer.id.rfind(timer.type == EventType::timer ? "-c" : "-f");
    const auto turns = of_input_.find(timer.id.substr(0, mark));
    if (turns == of_input_.end()) return false;
    return std::ranges::any_of(turns->second, [&](std::size_t i) {
      const auto& turn = turns_[i];
      if (timer.type == EventType::timer) {
        return turn.waits_for && turn.waits_for->is_timer() && !has_ended(*turn.waits_for, i);
      }
      return timer.type == EventType::follow_up &&
             std::ranges::any_of(turn.follow_ups, [&](Timestamp due) {
               return due - timer.due_at < timer_delay && timer.due_at - due < timer_delay;
             });
    });
  }

  // Whether a later Turn of the input, which waits after Turn `i`, continues the execution.
  [[nodiscard]] bool has_ended(const RecordedWait& wait, std::size_t i) const {
    return std::ranges::any_of(of_input_.at(turns_[i].input_id), [&](std::size_t each) {
      return turns_[each].event.claim && turns_[each].event.claim->id == wait.id;
    });
  }

  void begin_exchange(const RecordedTurn& turn) {
    Exchange exchange{
        .input_id = turn.input_id, .input = shown_input(turn.event), .at = turn.event.accepted_at};
    for (const auto i : of_input_.at(turn.input_id)) {
      const auto& each = turns_[i];
      exchange.recorded.insert(exchange.recorded.end(), each.outputs.begin(), each.outputs.end());
      if (each.failed) exchange.recorded_failure = each.failure;
    }
    exchange.is_withdrawn = lacks_outputs(turn.input_id);
    exchanges_.push_back(std::move(exchange));
  }

  [[nodiscard]] bool lacks_outputs(const std::string& input_id) const {
    return std::ranges::any_of(of_input_.at(input_id), [&](std::size_t i) {
      return std::ssize(turns_[i].outputs) < turns_[i].output_count;
    });
  }

  // Answers the calls and ends the sleeps of the execution by the recording.
  void follow(const std::string& input_id) {
    for (bool goes_on = true; goes_on && !ended_;) {
      const auto found =
          std::ranges::find(exchanges_.rbegin(), exchanges_.rend(), input_id, &Exchange::input_id);
      if (found == exchanges_.rend()) return;
      unfinished_ = &*found;
      collect(*found);
      goes_on = !ended_ && rehearsal_.session().busy() &&
                (rehearsal_.open_call() ? answer(*found) : wake(input_id));
    }
    unfinished_ = nullptr;
  }

  void collect(Exchange& exchange) {
    auto done = rehearsal_.take_done();
    for (auto& output : done.outputs) {
      bytes_ += output.text.size() + model::json_text(output.data).size();
      exchange.replayed.push_back({std::move(output.text), std::move(output.data)});
    }
    if (!done.error.empty()) exchange.replayed_failure = std::move(done.error);
    if (bytes_ > most_replayed_bytes) {
      end("it says more than " + std::to_string(most_replayed_bytes) + " bytes");
    }
  }

  // Gives the recorded answer to the open call. False: the execution waits for it, or the replay
  // has ended.
  bool answer(Exchange& exchange) {
    const auto call = *rehearsal_.open_call();
    const auto recorded = take_call(exchange.input_id, request_mark(call));
    if (!recorded) {
      exchange.note = shown_call(call, rehearsal_.waits_at());
      ended_ = true;
      return false;
    }
    const auto found = find_turn(exchange.input_id, [&](const RecordedTurn& turn) {
      return turn.event.type == EventType::call_result && turn.event.claim->id == recorded->id;
    });
    if (!found) {
      const auto& last = turns_[of_input_.at(exchange.input_id).back()];
      const bool waits = last.waits_for && last.waits_for->id == recorded->id;
      if (!waits) end("the recording lacks the answer of a call");
      return false;
    }
    const auto& turn = turns_[*found];
    if (!turn.missing.empty()) return end(turn.missing), false;
    if (!turn.event.result) {
      return end("an answer of " + recorded->to + " is too large to be recorded"), false;
    }
    auto event = turn.event;
    event.accepted_at = turn.at;
    event.claim = model::Claim{model::Claim::Kind::pending_call, call.id};
    event.result->call_id = call.id;
    rehearsal_.set_time(turn.at);
    rehearsal_.resume(std::move(event));
    return true;
  }

  // Ends the sleep as the next one in the recording. False: none has ended there.
  bool wake(const std::string& input_id) {
    const auto found = find_turn(
        input_id, [](const RecordedTurn& turn) { return turn.event.type == EventType::timer; });
    if (!found) return false;
    const auto& turn = turns_[*found];
    if (!turn.missing.empty()) return end(turn.missing), false;
    rehearsal_.set_time(turn.at);
    rehearsal_.run_waiting(rehearsal_.waiting().front().id, turn.event);
    return true;
  }

  // The first equal request of the execution that has not been taken.
  std::optional<RecordedWait> take_call(const std::string& input_id, const std::string& request) {
    const auto turns = of_input_.find(input_id);
    if (turns == of_input_.end()) return std::nullopt;
    for (const auto i : turns->second) {
      const auto& wait = turns_[i].waits_for;
      if (!wait || wait->request != request) continue;
      if (std::ranges::find(taken_, wait->id) != taken_.end()) continue;
      taken_.push_back(wait->id);
      return wait;
    }
    return std::nullopt;
  }

  // The first Turn of the input that fits and is not used. It is used from here on.
  template <typename Fits>
  std::optional<std::size_t> find_turn(const std::string& input_id, const Fits& fits) {
    const auto turns = of_input_.find(input_id);
    if (turns == of_input_.end()) return std::nullopt;
    for (const auto i : turns->second) {
      if (used_[i] || !fits(turns_[i])) continue;
      used_[i] = true;
      return i;
    }
    return std::nullopt;
  }

  const std::vector<RecordedTurn>& turns_;
  const std::size_t begin_;
  const Timestamp until_;
  std::vector<bool> used_;
  std::map<std::string, std::vector<std::size_t>> of_input_;  // Turns by their inputs, in order
  std::vector<std::string> taken_;                            // recorded calls
  Rehearsal rehearsal_;
  std::vector<Exchange> exchanges_;
  Exchange* unfinished_ = nullptr;  // whose execution is followed
  std::size_t at_ = 0;              // the Turn in hand
  std::size_t new_timers_ = 0;
  std::size_t bytes_ = 0;  // of outputs
  bool ended_ = false;
  std::string reason_;
};

}  // namespace

bool Exchange::differs() const {
  if (!note.empty() || recorded_failure.empty() != replayed_failure.empty()) return true;
  return !is_withdrawn && recorded != replayed;
}

Replay replay(const Stage& stage, const Recording& recording, Timestamp until) {
  const auto refuse = [](std::string reason) {
    return Replay{.outcome = Replay::Outcome::not_comparable, .reason = std::move(reason)};
  };
  if (!recording.not_whole.empty()) return refuse(recording.not_whole);
  const auto begin = std::ranges::find_if(recording.turns, &RecordedTurn::begins);
  if (begin == recording.turns.end()) return refuse("its first event is not recorded");
  return Replayer(stage, recording, static_cast<std::size_t>(begin - recording.turns.begin()),
                  until)
      .run();
}

}  // namespace conversed::flows::tools
