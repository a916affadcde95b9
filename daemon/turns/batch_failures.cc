#include "daemon/turns/batch_failures.h"

#include <utility>

#include "api/live/assets_cache.h"
#include "daemon/turns/batch_outputs.h"
#include "daemon/turns/batch_turns.h"
#include "flows/turn/turn.h"
#include "store/model/ids.h"
#include "store/text/utf8.h"

namespace conversed::daemon {

using model::Event;
using model::fail;
using model::Result;

namespace {

constexpr std::size_t longest_name = 64;  // the daemon's own ids and types are shorter
constexpr std::size_t longest_reason = 2'000;

bool is_name(const std::string& text) {
  return text.size() <= longest_name && text::is_utf8(text);
}

}  // namespace

bool has_names(const queue::Record& record) {
  return is_name(record.id) && is_name(record.type);
}

void bury_unreadable(BatchDraft& draft, const store::InboxEvent& parts, const std::string& reason) {
  const auto name = [](const std::string& text) {
    return std::string(text::cut(text::well_formed(text), longest_name));
  };
  const store::InboxEvent kept{name(parts.event_id), name(parts.type), name(parts.trace_id),
                               text::well_formed(parts.value)};
  draft.commit().dead_letters.push_back(
      {model::new_id(), kept, std::string(text::cut(text::well_formed(reason), longest_reason))});
}

Result<void> bury(BatchDraft& draft, const Event& event, const store::InboxEvent& parts,
                  const std::string& reason, Cause cause) {
  bury_unreadable(draft, parts, reason);
  if (is_notify(event.type)) return {};  // a notify belongs to no execution
  auto& session = draft.session;
  const bool resumed = !model::is_input(event.type) && session.execution;
  const Speaker speaker = resumed ? Speaker::of(*session.execution) : Speaker::of(event);
  auto endpoint = draft.context.assets.endpoint(draft.input.key.endpoint_id);
  if (!endpoint && is_store_failure(endpoint.error())) return fail(endpoint.error());
  if (!endpoint) {
    session.execution.reset();
    return settle_failure(draft, speaker);
  }
  if (cause == Cause::turn) {
    auto handled = run_error_flow(draft, event, *endpoint, reason);
    if (!handled) return fail(handled.error());
    if (*handled) return {};
  }
  auto effects = flows::failure_effects(std::move(session), **endpoint, event, draft.step.began_at);
  session = std::move(effects.session);
  if (effects.outputs.empty()) return settle_failure(draft, speaker);
  return settle(draft, speaker, ExecutionState::at_rest, std::move(effects.outputs), *endpoint);
}

Result<void> bury_waiting(BatchDraft& draft, const Event& event, const store::InboxEvent& parts,
                          const std::string& reason) {
  model::Session as_it_is = draft.session;
  auto buried = bury(draft, event, parts, reason);
  as_it_is.last_output_seq = draft.session.last_output_seq;
  draft.session = std::move(as_it_is);
  return buried;
}

Result<void> bury_damaged(BatchDraft& draft, const Event& event, const store::InboxEvent& parts,
                          const std::string& reason, bool execution_lost) {
  if (execution_lost) draft.commit().calls.all_abandoned = true;
  if (model::is_input(event.type) && draft.session.execution) {
    const auto over = *std::exchange(draft.session.execution, std::nullopt);
    draft.commit().calls.cancelled.push_back(over.pending_call_id);
    if (auto settled = settle_failure(draft, Speaker::of(over)); !settled) return settled;
  }
  return bury(draft, event, parts, reason);
}

}  // namespace conversed::daemon
