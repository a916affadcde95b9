// What becomes of events that have no effects: dead letters, and whoever waits for them.
#include <algorithm>
#include <optional>
#include <string>
#include <utility>

#include "api/live/digest.h"
#include "daemon/turns/turn_batch_builder.h"
#include "store/conversation/answers.h"
#include "store/model/hex.h"
#include "store/model/ids.h"
#include "store/text/utf8.h"

namespace conversed::daemon {

using model::Claim;
using model::Errc;
using model::Event;
using model::EventType;
using model::fail;
using model::Result;
using model::SessionKey;

namespace {

constexpr std::size_t longest_name = 64;  // ids and types of our own are below
constexpr std::size_t longest_reason = 2'000;
constexpr std::size_t longest_id = 512;  // of users and sessions, in bytes

bool is_id(const std::string& text) {
  return text.size() <= longest_id && text::is_utf8(text);
}

}  // namespace

SessionKey session_of(const std::string& lane_key) {
  auto key = SessionKey::decode(lane_key);
  if (key && !key->endpoint_id.empty() && is_id(key->project_id) && is_id(key->endpoint_id) &&
      is_id(key->user_id) && is_id(key->session_id)) {
    return std::move(*key);
  }
  std::string shown(text::cut(text::well_formed(lane_key), longest_id));
  std::ranges::replace_if(
      shown, [](char c) { return c >= 0 && c < ' '; }, '_');
  return {"", "", std::move(shown), model::hex(api::digest({lane_key}))};
}

bool TurnBatchBuilder::has_names(const queue::Record& record) {
  const auto is_name = [](const std::string& text) {
    return text.size() <= longest_name && text::is_utf8(text);
  };
  return is_name(record.id) && is_name(record.type);
}

// The event becomes a dead letter. Its only other effects: the Endpoint's errorText, and that its
// execution, if it was to go on, is over.
Result<void> TurnBatchBuilder::bury(const Event& event, const store::InboxEvent& parts,
                                    const std::string& reason) {
  bury_unreadable(parts, reason);
  // No execution hangs on it: what runs or waits is none of its business.
  if (is_notify(event.type)) return {};
  const bool resumed = !is_input(event.type) && session_.execution;
  const model::Execution execution = resumed ? *session_.execution : begun_by(event);

  auto endpoint = context_.assets.endpoint(input_.key.endpoint_id);
  if (!endpoint && is_store_failure(endpoint.error())) return fail(endpoint.error());
  if (!endpoint) {
    session_.execution.reset();
    return settle_failure(execution, resumed);
  }
  auto effects =
      flows::failure_effects(std::move(session_), **endpoint, event, context_.clock.now());
  session_ = std::move(effects.session);
  if (effects.outputs.empty()) return settle_failure(execution, resumed);
  return settle_outputs(execution, true, resumed, std::move(effects.outputs), *endpoint);
}

// The same for an input that the running execution, or others in the inbox, keep from its turn:
// they go on as if it had never come.
Result<void> TurnBatchBuilder::bury_waiting(const Event& event, const store::InboxEvent& parts,
                                            const std::string& reason) {
  // Else its row would bring it again.
  if (event.claim && event.claim->kind == Claim::Kind::follow_up) {
    batch_.commit.claims.push_back(*event.claim);
  }
  model::Session as_it_is = session_;
  auto buried = bury(event, parts, reason);
  as_it_is.last_output_seq = session_.last_output_seq;
  session_ = std::move(as_it_is);
  return buried;
}

// The same in a session that can't be read in full. What it waits for is over, too: nothing could
// go on from there.
Result<void> TurnBatchBuilder::bury_damaged(const Event& event, const store::InboxEvent& parts) {
  if (std::exchange(execution_lost_, false)) batch_.commit.calls.all_abandoned = true;
  if (is_input(event.type) && session_.execution) {
    const model::Execution over = *std::exchange(session_.execution, std::nullopt);
    batch_.commit.calls.cancelled.push_back(over.pending_call_id);
    if (auto settled = settle_failure(over, true); !settled) return settled;
  }
  return bury(event, parts, "its session is damaged: " + damage_);
}

// What other programs write to a log in the network may be anything. What the store could not keep,
// or find again, is kept as text that it can: else the record would be refused for ever.
void TurnBatchBuilder::bury_unreadable(const store::InboxEvent& parts, const std::string& reason) {
  const auto name = [](const std::string& text) {
    return std::string(text::cut(text::well_formed(text), longest_name));
  };
  const store::InboxEvent kept{name(parts.event_id), name(parts.type), name(parts.trace_id),
                               text::well_formed(parts.value)};
  batch_.commit.dead_letters.push_back(
      {model::new_id(), kept, std::string(text::cut(text::well_formed(reason), longest_reason))});
  batch_.changes = true;
}

}  // namespace conversed::daemon
