#include "daemon/turns/batch_outputs.h"

#include <utility>

#include "api/live/answer.h"
#include "store/conversation/answers.h"
#include "store/conversation/outbox.h"
#include "store/store.h"

namespace conversed::daemon {

using model::Delivery;
using model::Errc;
using model::EventType;
using model::fail;
using model::Result;

namespace {

Result<bool> takes_answers(BatchDraft& draft, const Speaker& speaker, std::int64_t said_before) {
  if (speaker.source != EventType::user_message || !speaker.answer_until) return false;
  auto& answers = draft.commit().answers;
  if (*speaker.answer_until <= draft.timer_now()) {
    answers.cuts.push_back({speaker.input_id, said_before});
    return false;
  }
  if (draft.input.after_conflict) {
    auto cut = draft.shard().answers().is_cut(speaker.input_id);
    if (!cut) return fail(cut.error());
    if (*cut) return false;
  }
  answers.uncut.push_back({speaker.input_id, *speaker.answer_until});
  return true;
}

Result<api::Answer> answer_of(BatchDraft& draft, const Speaker& speaker,
                              const std::vector<model::Output>& outputs) {
  const auto& key = draft.input.key;
  std::vector<model::Output> said;
  if (speaker.resumed) {
    auto earlier = draft.shard().outbox().outputs_of_input(key, speaker.input_id);
    if (!earlier) return fail(earlier.error());
    said = std::move(*earlier);
  }
  said.insert(said.end(), outputs.begin(), outputs.end());
  return api::Answer{200, api::compose_answer(said, key.user_id, key.session_id)};
}

void keep_answer(BatchDraft& draft, const std::string& input_id, std::optional<std::string> body) {
  draft.commit().answers.kept.push_back(
      {input_id, std::move(body), draft.timer_now() + store::answer_lifetime});
}

Result<void> come_to_rest(BatchDraft& draft, const Speaker& speaker, bool answers,
                          const std::vector<model::Output>& outputs) {
  if (speaker.keyed || speaker.answer_until) {
    draft.commit().answers.progressed.push_back(speaker.input_id);
  }
  const bool awaited = answers && draft.context.pending_replies.awaited(speaker.input_id);
  if (!awaited && !speaker.keyed) return {};
  auto answer = answer_of(draft, speaker, outputs);
  if (!answer) return fail(answer.error());
  if (speaker.keyed) keep_answer(draft, speaker.input_id, answer->body);
  // Clients of a cut message are not answered here: each has got the outputs up to its own cut.
  if (answers) draft.batch.after.answered.push_back({speaker.input_id, *std::move(answer)});
  return {};
}

}  // namespace

Result<void> settle(BatchDraft& draft, const Speaker& speaker, ExecutionState execution,
                    std::vector<model::Output> outputs, const EndpointPtr& endpoint) {
  const auto answers = takes_answers(
      draft, speaker, outputs.empty() ? draft.session.last_output_seq : outputs.front().seq - 1);
  if (!answers) return fail(answers.error());
  if (speaker.source == EventType::user_message) {
    if (execution == ExecutionState::at_rest) {
      if (auto rests = come_to_rest(draft, speaker, *answers, outputs); !rests) return rests;
    } else if (!*answers) {
      draft.session.execution->answer_until.reset();
      // The message is cut: a waiting client that has repeated it can read its answer now.
      if (speaker.keyed) draft.commit().answers.progressed.push_back(speaker.input_id);
    }
  }
  const bool pending = endpoint && !endpoint->webhook_url.empty() && !*answers;
  for (auto& output : outputs) {
    output.delivery = pending ? Delivery::pending : Delivery::none;
    output.withdrawable = pending && speaker.source == EventType::follow_up;
    draft.commit().outputs.push_back(std::move(output));
  }
  return {};
}

Result<void> settle_failure(BatchDraft& draft, const Speaker& speaker) {
  if (speaker.source != EventType::user_message) return {};
  const auto answers = takes_answers(draft, speaker, draft.session.last_output_seq);
  if (!answers) return fail(answers.error());
  if (!*answers) return come_to_rest(draft, speaker, false, {});
  draft.commit().answers.progressed.push_back(speaker.input_id);
  draft.batch.after.answered.push_back(
      {speaker.input_id, fail(Errc::internal, "The message could not be processed.")});
  keep_answer(draft, speaker.input_id, std::nullopt);
  return {};
}

}  // namespace conversed::daemon
