// Who gets what an execution says: the client of its input, until the input is cut, or the webhook.
#include <optional>
#include <string>
#include <utility>

#include "api/live/answer.h"
#include "daemon/turns/turn_batch_builder.h"
#include "store/conversation/answers.h"
#include "store/conversation/outbox.h"

namespace conversed::daemon {

using model::Delivery;
using model::Errc;
using model::EventType;
using model::fail;
using model::Result;

// Whether what the execution says now is its input's answer. If it is cut meanwhile, the commit is
// a conflict. One whose deadline has passed is cut by the commit, as nobody else may be there to do
// it.
Result<bool> TurnBatchBuilder::takes_answers(const model::Execution& execution,
                                             std::int64_t said_before) {
  if (execution.source != EventType::user_message || !execution.answer_until) return false;
  if (*execution.answer_until <= timer_now()) {
    batch_.commit.answers.cuts.push_back({execution.input_id, said_before});
    return false;
  }
  if (input_.after_conflict) {
    auto cut = context_.store.answers().is_cut(execution.input_id);
    if (!cut) return fail(cut.error());
    if (*cut) return false;
  }
  batch_.commit.answers.uncut.push_back({execution.input_id, *execution.answer_until});
  return true;
}

Result<void> TurnBatchBuilder::settle_outputs(const model::Execution& execution, bool ended,
                                              bool resumed, std::vector<model::Output> outputs,
                                              const EndpointPtr& endpoint) {
  const auto answers = takes_answers(
      execution, outputs.empty() ? session_.last_output_seq : outputs.front().seq - 1);
  if (!answers) return fail(answers.error());
  if (execution.source == EventType::user_message && ended) {
    if (auto rests = come_to_rest(execution, *answers, resumed, outputs); !rests) return rests;
  } else if (execution.source == EventType::user_message && !*answers) {
    session_.execution->answer_until.reset();
    // A client that repeats it need not wait any longer.
    if (execution.keyed) batch_.commit.answers.progressed.push_back(execution.input_id);
  }
  const bool hooked = endpoint && !endpoint->webhook_url.empty();
  const Delivery delivery = hooked && !*answers ? Delivery::pending : Delivery::none;
  for (auto& output : outputs) {
    output.delivery = delivery;
    output.withdrawable = execution.source == EventType::follow_up && delivery == Delivery::pending;
    batch_.commit.outputs.push_back(std::move(output));
  }
  return {};
}

// The input that began the execution has said all. Its answer is composed for those that wait here,
// and kept for repeats; others read it from the store.
Result<void> TurnBatchBuilder::come_to_rest(const model::Execution& execution, bool answers,
                                            bool resumed,
                                            const std::vector<model::Output>& outputs) {
  if (execution.keyed || execution.answer_until) {
    batch_.commit.answers.progressed.push_back(execution.input_id);
  }
  const bool awaited = answers && context_.pending_replies.awaited(execution.input_id);
  if (!awaited && !execution.keyed) return {};
  auto answer = answer_of(execution, resumed, outputs);
  if (!answer) return fail(answer.error());
  // Of a cut one each client has its own part.
  if (answers) batch_.after.answered.push_back({execution.input_id, *std::move(answer)});
  return {};
}

// The answer to the input that began the execution, as it ends; kept for repeats, if it is keyed.
Result<api::Answer> TurnBatchBuilder::answer_of(const model::Execution& execution, bool resumed,
                                                const std::vector<model::Output>& outputs) {
  std::vector<model::Output> said;
  if (resumed) {
    auto earlier = context_.store.outbox().outputs_of_input(input_.key, execution.input_id);
    if (!earlier) return fail(earlier.error());
    said = std::move(*earlier);
  }
  said.insert(said.end(), outputs.begin(), outputs.end());
  api::Answer answer{200, api::compose_answer(said, input_.key.user_id, input_.key.session_id)};
  if (execution.keyed) {
    batch_.commit.answers.kept.push_back(
        {execution.input_id, answer.body, timer_now() + context_.answer_lifetime});
  }
  return answer;
}

// A failure that nothing is said about: a waiting client learns of it. Not an answer to be
// replayed: it says that the key may be used for a new attempt. One that is cut was answered, so
// that its key is spent.
Result<void> TurnBatchBuilder::settle_failure(const model::Execution& execution, bool resumed) {
  if (execution.source != EventType::user_message) return {};
  const auto answers = takes_answers(execution, session_.last_output_seq);
  if (!answers) return fail(answers.error());
  if (!*answers) return come_to_rest(execution, false, resumed, {});
  batch_.commit.answers.progressed.push_back(execution.input_id);
  batch_.after.answered.push_back(
      {execution.input_id, fail(Errc::internal, "The message could not be processed.")});
  batch_.commit.answers.kept.push_back(
      {execution.input_id, std::nullopt, timer_now() + context_.answer_lifetime});
  return {};
}

}  // namespace conversed::daemon
