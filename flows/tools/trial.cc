#include "flows/tools/trial.h"

#include <utility>

#include "store/model/url.h"

namespace conversed::flows::tools {
namespace {

nlohmann::json shown(const model::PendingCall& call) {
  // Paths and queries may hold secrets.
  if (call.http) {
    return {{"method", call.http->method}, {"server", model::authority_of(call.http->url)}};
  }
  if (call.code) return {{"script", call.code->script}};
  return {{"store", call.search->store}, {"query", call.search->text}};
}

model::CallResult refusal() {
  model::CallResult refused;
  refused.error_code = "refused";
  refused.error_message = "a try makes no calls; give their answers";
  return refused;
}

}  // namespace

Trial run_trial(const Stage& stage, model::Session session, model::Profile profile,
                model::Event event, model::Timestamp now, std::vector<model::CallResult> answers) {
  Trial trial;
  Trace trace(nullptr, {.nodes = 200, .details = 20, .bytes = 200});
  if (!stage.assets.locales.empty()) trace.set_locale(stage.assets.locales.front());
  const auto answer = [&](const model::PendingCall& call) -> std::optional<model::CallResult> {
    const std::size_t made = trial.calls.size();
    trial.calls.push_back(shown(call));
    auto result = made < answers.size() ? std::move(answers[made]) : refusal();
    trace.calls(trial.calls.back(), result);
    return result;
  };
  Rehearsal rehearsal(
      stage, now, answer, &trace,
      {.turns = 60, .outputs = 200, .log_lines = 200, .bytes = std::size_t{4} << 20});
  rehearsal.start(std::move(session), std::move(profile));
  rehearsal.run(std::move(event));
  trial.done = rehearsal.take_done();
  trial.nodes = trace.take(rehearsal, trial.done);
  trial.waits_at = rehearsal.waits_at();
  return trial;
}

}  // namespace conversed::flows::tools
