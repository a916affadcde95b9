// Who gets what an execution says: a client that waits here or at another daemon, or the webhook.
#include <algorithm>
#include <optional>
#include <span>
#include <string>
#include <utility>

#include "api/live/answer.h"
#include "daemon/turns/answer_exchange.h"
#include "daemon/turns/chain_builder.h"
#include "store/conversation/answers.h"
#include "store/conversation/outbox.h"

namespace conversed::daemon {

using model::Delivery;
using model::Errc;
using model::Event;
using model::EventType;
using model::fail;
using model::Result;

namespace {

// Of one input: its client, and those who repeat it under its Idempotency-Key.
constexpr std::size_t max_awaited_by = 8;

}  // namespace

// Decides who gets the outputs: whoever waits on `POST /{URLToken}` when the execution ends, else
// the webhook.
Result<void> ChainBuilder::settle_outputs(const model::Execution& execution, bool ended,
                                          bool resumed, std::vector<model::Output> outputs,
                                          const EndpointPtr& endpoint) {
  const Delivery otherwise =
      endpoint && !endpoint->webhook_url.empty() ? Delivery::pending : Delivery::none;
  Delivery delivery = otherwise;
  if (execution.source == EventType::user_message && !ended) {
    // What has no other way to go need not be held: the answer takes it from the store.
    if (otherwise == Delivery::pending && is_awaited(execution)) {
      delivery = Delivery::held;
      if (!outputs.empty()) session_.execution->holds_outputs = true;
    } else if (!outputs.empty()) {
      release_held(*session_.execution);  // what was said before goes first
    }
  } else if (execution.source == EventType::user_message) {
    if (auto daemons = waits_elsewhere(execution); !daemons.empty()) {
      return answer_elsewhere(execution, std::move(daemons), resumed, std::move(outputs),
                              otherwise);
    }
    const bool claimed = context_.waiters.claim(execution.input_id);
    if (claimed) delivery = Delivery::none;
    if (claimed || execution.keyed) {
      auto answer = answer_of(execution, resumed, outputs);
      if (!answer) {
        if (claimed) context_.waiters.release(execution.input_id);
        return fail(answer.error());
      }
      // A keyed input may get a second client between here and the commit: it waits for this one.
      chain_.answered.push_back(
          {execution.input_id, *std::move(answer), claimed && otherwise == Delivery::pending});
    }
    if (resumed && (claimed || otherwise == Delivery::none)) {
      keep_held(execution);
    } else if (resumed) {
      release_held(execution);
    }
  }
  for (auto& output : outputs) {
    output.delivery = delivery;
    // Behind what is held until another daemon has said who gets it.
    if (!chain_.undecided.empty() && output.delivery == Delivery::pending) {
      output.delivery = Delivery::held;
    }
    output.withdrawable =
        execution.source == EventType::follow_up && output.delivery == Delivery::pending;
    chain_.unit.outputs.push_back(std::move(output));
  }
  return {};
}

// Nobody waits for what the session holds with this execution: it goes to the webhook.
void ChainBuilder::release_held(const model::Execution& holder) {
  if (!holder.holds_outputs && !holder.holds_others) return;
  for (auto& output : chain_.unit.outputs) {
    if (output.delivery == Delivery::held) output.delivery = Delivery::pending;
  }
  chain_.unit.held_released = true;
  chain_.outputs_released = true;
  if (session_.execution) {
    session_.execution->holds_outputs = false;
    session_.execution->holds_others = false;
  }
}

// What the execution that has ended held is its client's; what waited behind that can go.
void ChainBuilder::keep_held(const model::Execution& execution) {
  if (execution.holds_outputs) chain_.unit.outputs_kept.push_back(execution.input_id);
  if (execution.holds_others) release_held(execution);
}

// Whoever waited for the execution that still runs may have gone: what is held for it takes the
// other way, and does not wait until that speaks again.
void ChainBuilder::release_left_behind() {
  if (!session_.execution) return;
  const model::Execution running = *session_.execution;
  if (!running.holds_outputs && !running.holds_others) return;
  if (is_awaited(running)) return;
  chain_.changes = true;
  release_held(running);
}

// What is held for no execution hangs on a reply whose writer is gone, or no longer sees to it: it
// goes before anything else is said.
void ChainBuilder::release_orphans() {
  const auto& running = session_.execution;
  if (execution_lost_ || (running && (running->holds_outputs || running->holds_others))) return;
  chain_.unit.held_released = true;
  chain_.outputs_released = true;
  chain_.changes = true;
}

// What the unit says from its output `first` on, past the execution that runs, must not reach the
// webhook before what that one holds, whose numbers are lower: it is held with that.
void ChainBuilder::follow_held(std::size_t first) {
  auto& running = session_.execution;
  if (!running || !running->holds_outputs) return;
  for (auto& output : std::span(chain_.unit.outputs).subspan(first)) {
    if (output.delivery != Delivery::pending) continue;
    output.delivery = Delivery::held;
    running->holds_others = true;
  }
}

// The answer to the input that began the execution, as it ends; kept for repeats, if it is keyed.
Result<api::Answer> ChainBuilder::answer_of(const model::Execution& execution, bool resumed,
                                            const std::vector<model::Output>& outputs) {
  std::vector<model::Output> said;
  if (resumed) {
    auto earlier = context_.outbox.outputs_of_input(input_.key, execution.input_id);
    if (!earlier) return fail(earlier.error());
    said = std::move(*earlier);
  }
  said.insert(said.end(), outputs.begin(), outputs.end());
  api::Answer answer{200, api::compose_answer(said, input_.key.user_id, input_.key.session_id)};
  if (execution.keyed) {
    chain_.unit.answers.push_back(
        {execution.input_id, answer.status, answer.body, timer_now() + context_.answer_lifetime});
  }
  return answer;
}

// The daemons whose clients wait get the answer through the store. Which of them is still there is
// known when they say so: until then everything is held that the webhook would get instead, and
// what would come behind it.
Result<void> ChainBuilder::answer_elsewhere(const model::Execution& execution,
                                            std::vector<std::string> daemons, bool resumed,
                                            std::vector<model::Output> outputs,
                                            Delivery otherwise) {
  auto answer = answer_of(execution, resumed, outputs);
  if (!answer) return fail(answer.error());
  if (context_.waiters.awaited(execution.input_id)) daemons.push_back(context_.exchange->daemon());
  const bool undecided = otherwise == Delivery::pending;
  if (undecided) {
    chain_.undecided.push_back(execution.input_id);
  } else if (resumed) {
    keep_held(execution);
  }
  chain_.unit.replies.push_back({.input_id = execution.input_id,
                                 .daemons = std::move(daemons),
                                 .status = answer->status,
                                 .body = std::move(answer->body),
                                 .else_webhook = undecided,
                                 .expires_at = context_.exchange->reply_expiry()});
  for (auto& output : outputs) {
    output.delivery = undecided ? Delivery::held : Delivery::none;
    chain_.unit.outputs.push_back(std::move(output));
  }
  return {};
}

// Other daemons whose clients may wait for the end of the execution.
std::vector<std::string> ChainBuilder::waits_elsewhere(const model::Execution& execution) const {
  if (context_.exchange == nullptr) return {};
  return context_.exchange->elsewhere(execution.input_id, execution.awaited_by);
}

bool ChainBuilder::is_awaited(const model::Execution& execution) const {
  return context_.waiters.awaited(execution.input_id) || !waits_elsewhere(execution).empty();
}

// A repeat of the keyed input whose execution runs has no effects, but its client may be another
// daemon's. True: the execution knows of that from now on.
bool ChainBuilder::join_waiting(const Event& event) {
  if (!event.awaited_by || !session_.execution || session_.execution->input_id != event.id) {
    return false;
  }
  auto& known = session_.execution->awaited_by;
  const auto same = std::ranges::find(known, event.awaited_by->daemon, &model::Awaited::daemon);
  if (same == known.end()) {
    if (known.size() >= max_awaited_by) return false;
    known.push_back(*event.awaited_by);
    return true;
  }
  if (same->until >= event.awaited_by->until) return false;
  same->until = event.awaited_by->until;
  return true;
}

// What is held for a client elsewhere is not held for ever, even if that daemon says nothing more.
void ChainBuilder::note_held() {
  const auto& running = session_.execution;
  if (context_.exchange == nullptr || !running) return;
  if (!running->holds_outputs && !running->holds_others) return;
  chain_.held_until = context_.exchange->waited_until(running->input_id, running->awaited_by);
}

// A failure that nothing is said about: a waiting client learns of it, and what was held for it
// goes out.
Result<void> ChainBuilder::settle_failure(const model::Execution& execution, bool resumed) {
  if (execution.source != EventType::user_message) return {};
  const bool claimed = context_.waiters.claim(execution.input_id);
  if (claimed || execution.keyed) {
    chain_.answered.push_back(
        {execution.input_id, fail(Errc::internal, "The message could not be processed.")});
  }
  // Not an answer to be replayed: it says that the key may be used for a new attempt.
  if (execution.keyed) {
    chain_.unit.answers.push_back(
        {execution.input_id, 500, "", timer_now() + context_.answer_lifetime});
  }
  if (auto daemons = waits_elsewhere(execution); !daemons.empty()) {
    chain_.unit.replies.push_back({.input_id = execution.input_id,
                                   .daemons = std::move(daemons),
                                   .status = 500,
                                   .body = "",
                                   .expires_at = context_.exchange->reply_expiry()});
  }
  if (resumed) release_held(execution);
  return {};
}

}  // namespace conversed::daemon
