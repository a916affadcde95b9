#include "daemon/turns/turn_batch.h"

#include <algorithm>
#include <iterator>
#include <utility>

#include "api/live/assets_cache.h"
#include "api/live/digest.h"
#include "daemon/turns/batch_claims.h"
#include "daemon/turns/batch_failures.h"
#include "daemon/turns/batch_follow_ups.h"
#include "daemon/turns/batch_inbox.h"
#include "daemon/turns/batch_ramps.h"
#include "daemon/turns/batch_receipts.h"
#include "daemon/turns/batch_turns.h"
#include "daemon/turns/recovery.h"
#include "daemon/turns/turn_decision.h"
#include "flows/turn/standing.h"
#include "flows/turn/turn.h"
#include "store/commit/usage.h"
#include "store/conversation/sessions.h"
#include "store/model/hex.h"
#include "store/runtime/planted_faults.h"
#include "store/store.h"
#include "store/text/utf8.h"

namespace conversed::daemon {

using model::Claim;
using model::Event;
using model::EventType;
using model::fail;
using model::Result;
using model::SessionKey;
using Fate = Decision::Fate;

namespace {

constexpr std::size_t longest_key_part = 512;  // of users and sessions, in bytes

bool is_key_part(const std::string& text) {
  return text.size() <= longest_key_part && text::is_utf8(text);
}

std::string_view reason_of(const std::map<std::string, std::string>& reasons,
                           const std::string& event_id) {
  const auto found = reasons.find(event_id);
  return found == reasons.end() ? std::string_view() : found->second;
}

// A follow-up's claim is consumed when it runs, not when it enters the inbox.
bool is_of_follow_up(const Event& event) {
  return event.claim && event.claim->kind == Claim::Kind::follow_up;
}

// A Turn that has failed.
struct FailedTurn {
  std::string reason;
  std::string flow;
  std::int64_t version = 0;
  std::string node;
  std::vector<model::PinnedFlow> flows_run;
};

// The results of earlier tries to build a batch.
struct EarlierBuilds {
  std::map<std::string, FailedTurn> failed{};   // by the event's id
  std::chrono::steady_clock::duration spent{};  // time of Turns
};

// Builds one batch: gathers the facts about each event, calls `decide`, and carries the decision
// out on the draft. Used once.
class TurnBatchBuilder {
 public:
  // All must outlive it.
  TurnBatchBuilder(const TurnBatchContext& context, const TurnBatchInput& input,
                   EarlierBuilds& earlier)
      : draft_{.context = context, .input = input, .spent = earlier.spent}, earlier_(earlier) {}

  // None: a Turn has failed, and `earlier` has its event. Or the session came from memory, and no
  // commit would tell whether it is out of date.
  [[nodiscard]] Result<std::optional<TurnBatch>> build();

 private:
  struct Candidate {
    const queue::LogRecord* logged = nullptr;  // null: it was taken from the inbox
    BatchInbox::Waiting waited{};              // unless `logged`
    std::optional<Event> event{};              // none: unreadable
    FoundClaim claim{};

    [[nodiscard]] store::InboxEvent parts() const;
    [[nodiscard]] std::optional<model::Position> at() const;
  };

  [[nodiscard]] Result<void> load();
  [[nodiscard]] Result<void> drain();
  [[nodiscard]] Result<void> take(Candidate candidate);

  // Facts. These functions do not change the draft.
  [[nodiscard]] Result<EventFacts> look_at(Candidate& candidate) const;
  [[nodiscard]] Result<bool> has_had_effects(const model::Position& at) const;
  [[nodiscard]] std::string read(Candidate& candidate) const;
  [[nodiscard]] Result<bool> is_too_late(const Candidate& candidate) const;
  [[nodiscard]] bool must_wait(const Candidate& candidate) const;
  [[nodiscard]] bool may_start() const;
  [[nodiscard]] std::int32_t partition_of(const Candidate& candidate) const;
  // Null: the event's Turn has not failed.
  [[nodiscard]] const FailedTurn* failed_turn_of(const Event& event) const;

  // These functions carry out decisions.
  [[nodiscard]] Result<void> carry_out(const Candidate& candidate, const EventFacts& facts,
                                       const Decision& decision);
  [[nodiscard]] Result<void> accept(const Candidate& candidate, Decision::Fate fate);
  [[nodiscard]] Result<void> count_use(const Event& event);
  [[nodiscard]] Result<void> count_failed(const FailedTurn& failed);
  [[nodiscard]] Result<void> let_wait(const Candidate& candidate, const Decision& decision);
  [[nodiscard]] Result<bool> runs_flow(const Decision& decision, const FailedTurn* failed) const;
  [[nodiscard]] Result<void> begin_turn(const Candidate& candidate, const EventFacts& facts);
  [[nodiscard]] Result<void> start(const Candidate& candidate, const EventFacts& facts,
                                   const Decision& decision);

  [[nodiscard]] bool stopped() const { return failed_ || draft_.batch.wants_alone; }
  void close();
  void settle_time_outs();

  BatchDraft draft_;
  BatchInbox inbox_{draft_};
  EarlierBuilds& earlier_;
  std::vector<std::string> time_outs_;  // the time-outs that the stored session waits for
  std::string damage_;                  // of the stored session; then no event runs on it
  bool execution_lost_ = false;  // the execution can't be read: only the store knows its calls
  bool begun_ = false;           // a Turn has begun
  bool failed_ = false;          // a Turn has failed
  bool from_memory_ = false;     // the session may be out of date
};

store::InboxEvent TurnBatchBuilder::Candidate::parts() const {
  return logged != nullptr ? parts_of(logged->record) : waited.parts;
}

std::optional<model::Position> TurnBatchBuilder::Candidate::at() const {
  return logged != nullptr ? logged->position : waited.at;
}

Result<std::optional<TurnBatch>> TurnBatchBuilder::build() {
  if (auto loaded = load(); !loaded) return fail(loaded.error());
  // The stored inbox runs first. After a record that ended the execution it runs again.
  if (auto drained = drain(); !drained) return fail(drained.error());
  for (const auto& record : draft_.input.records) {
    if (stopped()) break;
    if (auto taken = take({.logged = &record}); !taken) return fail(taken.error());
    if (auto drained = drain(); !drained) return fail(drained.error());
  }
  if (failed_) return std::nullopt;
  if (draft_.batch.wants_alone) {
    TurnBatch nothing;
    nothing.wants_alone = true;
    return nothing;
  }
  close();
  if (from_memory_ && !draft_.batch.changes) return std::nullopt;
  return std::move(draft_.batch);
}

Result<void> TurnBatchBuilder::load() {
  auto& session = draft_.session;
  const auto& key = draft_.input.key;
  // A commit refuses what is based on an old state, and the batch is built again from the store.
  auto loaded = draft_.input.known_session ? draft_.input.known_session() : std::nullopt;
  from_memory_ = loaded.has_value();
  if (!loaded) {
    auto read = draft_.shard().sessions().load_with_profile(key);
    if (!read) return fail(read.error());
    loaded = *std::move(read);
  }
  if (loaded->session) {
    session = std::move(*loaded->session);
  } else {
    session.key = key;
  }
  draft_.profile = std::move(loaded->profile);
  time_outs_ = flows::time_outs_of(session);
  damage_ = std::move(loaded->damage);
  execution_lost_ = loaded->execution_lost;
  draft_.batch.outputs_are_known = loaded->outputs_are_known || !loaded->session;
  auto& commit = draft_.commit();
  commit.key = key;
  commit.expected_version = session.version;
  commit.profile.read_version = draft_.profile.version;
  return inbox_.load();
}

// Takes events from the inbox, oldest first, for as long as the session is not busy.
Result<void> TurnBatchBuilder::drain() {
  while (!stopped() && !draft_.session.busy() && may_start() && inbox_.has_next()) {
    if (auto taken = take({.waited = inbox_.take_oldest()}); !taken) return taken;
  }
  return {};
}

Result<void> TurnBatchBuilder::take(Candidate candidate) {
  auto facts = look_at(candidate);
  if (!facts) return fail(facts.error());
  const Decision decision = decide(*facts);
  const bool is_nothing = decision.fate == Fate::seen || decision.fate == Fate::dropped;
  const bool is_new = candidate.logged != nullptr;
  const auto& begun = candidate.waited.receipt;
  if (!candidate.event || (is_nothing && is_new)) {
    // The receipt of a later event of the batch may name this one as the one before it.
    if (begun) draft_.commit().receipts.push_back(*begun);
    return carry_out(candidate, *facts, decision);
  }
  ReceiptNote receipt(draft_, *candidate.event,
                      {.at = candidate.at(),
                       .begun = begun ? &*begun : nullptr,
                       .in_recovery = facts->crashes.has_value()});
  auto done = carry_out(candidate, *facts, decision);
  if (!done || stopped()) return done;
  if (is_nothing) draft_.step.ended = "it was cancelled while it waited";
  if (decision.fate == Fate::inbox) {
    inbox_.note(receipt.waits());
  } else {
    receipt.add_processed();
  }
  return done;
}

Result<EventFacts> TurnBatchBuilder::look_at(Candidate& candidate) const {
  EventFacts facts{.damage = damage_, .alone = draft_.input.alone};
  if (candidate.logged != nullptr) {
    auto seen = has_had_effects(candidate.logged->position);
    if (!seen) return fail(seen.error());
    facts.seen = *seen;
    if (*seen) return facts;
  }
  facts.unreadable = read(candidate);
  if (!candidate.event) return facts;
  const Event& event = *candidate.event;
  facts.execution_lost = candidate.logged != nullptr && execution_lost_ &&
                         !model::is_input(event.type) && !is_notify(event.type);
  if (facts.execution_lost) return facts;
  // An event consumed its claim when it entered the inbox, unless it is a follow-up.
  candidate.claim.there = true;
  if (candidate.logged != nullptr || is_of_follow_up(event)) {
    auto found = find_claim(draft_, event);
    if (!found) return fail(found.error());
    candidate.claim = std::move(*found);
  }
  facts.claim_gone = !candidate.claim.there;
  if (facts.claim_gone) return facts;
  auto too_late = is_too_late(candidate);
  if (!too_late) return fail(too_late.error());
  facts.too_late = *too_late;
  facts.must_wait = must_wait(candidate);
  if (const auto* recovery = draft_.context.recovery; recovery != nullptr) {
    facts.crashes = recovery->crashes(event, partition_of(candidate), candidate.at());
  }
  facts.refused = reason_of(draft_.input.refused, event.id);
  if (const auto* failed = failed_turn_of(event)) facts.failed = failed->reason;
  return facts;
}

Result<bool> TurnBatchBuilder::has_had_effects(const model::Position& at) const {
  if (model::planted("no_duplicate_check")) return false;
  const auto& position = draft_.session.position;
  // The session has no position yet, or an operator has opened a newer epoch: its records are all
  // new.
  if (position.epoch < at.epoch) return false;
  auto after = queue::is_after(at, position);
  if (!after) return fail(after.error());
  return !*after;
}

// Decodes the candidate's event. Returns why the event can't be decoded or is not processed.
std::string TurnBatchBuilder::read(Candidate& candidate) const {
  const bool is_logged = candidate.logged != nullptr;
  const auto& key = draft_.input.key;
  if (is_logged && !has_names(candidate.logged->record)) {
    return "its id or type is no UTF-8, or longer than 64 bytes";
  }
  if (key.endpoint_id.empty()) return "its key is not the key of a session";
  Result<Event> event = [&] {
    if (!is_logged) {
      const auto& parts = candidate.waited.parts;
      return model::decode_event(key.encode(), parts.event_id, parts.type, parts.trace_id,
                                 parts.value);
    }
    const auto& record = candidate.logged->record;
    return model::decode_event(record.key, record.id, record.type, record.trace_id, record.value);
  }();
  if (!event) return event.error().message;
  const auto now = draft_.context.clock.now();
  if (is_logged) {
    // Another program's clock is wrong, or this daemon's was when it accepted the event.
    const bool is_ahead = !event->claim && event->accepted_at > now + std::chrono::days(1) &&
                          (model::is_input(event->type) || is_notify(event->type));
    if (is_ahead && !event->is_own) {
      return "event " + event->id + ": its member at is more than a day ahead";
    }
  }
  // A time ahead would keep the session from expiring until then.
  event->accepted_at = std::min(event->accepted_at, now);
  candidate.event = std::move(*event);
  return {};
}

// Whether a scheduled event is for active conversations only, and this conversation is not active.
// Other such events are refused before they reach the log.
Result<bool> TurnBatchBuilder::is_too_late(const Candidate& candidate) const {
  const Event& event = *candidate.event;
  if (!candidate.claim.schedule) return false;
  const auto endpoint = draft_.context.assets.endpoint(draft_.input.key.endpoint_id);
  if (!endpoint) return none_unless_store_failed(endpoint.error());
  return (*endpoint)->active_only &&
         flows::starts_afresh(draft_.session, **endpoint, event.accepted_at);
}

// Whether the event must wait in the inbox: other events are there, or the session is busy. A
// notify does not wait for an execution. No event waits for a damaged session.
bool TurnBatchBuilder::must_wait(const Candidate& candidate) const {
  const EventType type = candidate.event->type;
  if (candidate.logged == nullptr) return false;
  if (is_notify(type)) return !may_start();
  if (!model::is_input(type) || !damage_.empty()) return false;
  const auto& session = draft_.session;
  // A user's message ends the Flow of a follow-up.
  const bool ends_it = type == EventType::user_message && session.execution &&
                       session.execution->source == EventType::follow_up;
  return (session.busy() && !ends_it) || session.inbox_size > 0 || !may_start();
}

// The first event always starts. Further events do not start after slow Turns, or if the batch may
// start one event only.
bool TurnBatchBuilder::may_start() const {
  const auto& input = draft_.input;
  if (draft_.batch.first_started.empty()) return true;
  return !input.one_start && !input.alone && draft_.spent < draft_.context.slice;
}

std::int32_t TurnBatchBuilder::partition_of(const Candidate& candidate) const {
  if (const auto at = candidate.at()) return at->partition;
  return queue::partition_of(draft_.input.key.encode(), draft_.context.partitions);
}

const FailedTurn* TurnBatchBuilder::failed_turn_of(const Event& event) const {
  const auto found = earlier_.failed.find(event.id);
  return found == earlier_.failed.end() ? nullptr : &found->second;
}

Result<void> TurnBatchBuilder::carry_out(const Candidate& candidate, const EventFacts& facts,
                                         const Decision& decision) {
  auto& batch = draft_.batch;
  if (decision.fate == Fate::seen) return {};
  if (decision.fate == Fate::needs_alone) {
    batch.wants_alone = true;
    return {};
  }
  if (candidate.logged != nullptr) draft_.session.position = candidate.logged->position;
  if (decision.fate == Fate::dropped) {
    // A removed session is not made again only to keep a position.
    if (draft_.session.version > 0) batch.changes = true;
    return {};
  }
  batch.changes = true;
  if (!candidate.event) {
    bury_unreadable(draft_, candidate.parts(), decision.reason);
    return {};
  }
  if (facts.execution_lost) {
    return bury_damaged(draft_, *candidate.event, candidate.parts(), decision.reason,
                        std::exchange(execution_lost_, false));
  }
  if (auto accepted = accept(candidate, decision.fate); !accepted) return accepted;
  if (decision.fate == Fate::too_late) return {};
  if (facts.must_wait) return let_wait(candidate, decision);
  return start(candidate, facts, decision);
}

// The effects of an event that holds its claim, whether it runs or goes to the inbox.
Result<void> TurnBatchBuilder::accept(const Candidate& candidate, Fate fate) {
  const Event& event = *candidate.event;
  const bool consumes = is_of_follow_up(event) ? fate != Fate::inbox : candidate.logged != nullptr;
  if (event.claim && consumes) consume_claim(draft_, *event.claim, candidate.claim.schedule);
  if (fate == Fate::too_late) {
    draft_.step.ended = "the conversation is not active";
    draft_.batch.after.log_lines.push_back("the scheduled message " + event.claim->id +
                                           " was dropped, since its conversation is not active");
    return {};
  }
  if (candidate.logged != nullptr) {
    if (auto counted = count_use(event); !counted) return counted;
  }
  if (event.type == EventType::user_message) {
    cancel_follow_ups(draft_);
    abandon_follow_up(draft_);
  }
  return {};
}

// An inject counts even if its Endpoint is deleted: otherwise the quota that accepted it would take
// it for an event in flight for good.
Result<void> TurnBatchBuilder::count_use(const Event& event) {
  const bool inject = event.type == EventType::inject;
  const std::int64_t tokens = event.result ? event.result->model_tokens : 0;
  if (!inject && tokens <= 0) return {};
  const auto endpoint = draft_.context.assets.endpoint(draft_.input.key.endpoint_id);
  if (!endpoint && is_store_failure(endpoint.error())) return fail(endpoint.error());
  const std::string& organisation =
      endpoint ? (*endpoint)->organisation_id : event.origin.organisation_id;
  if (organisation.empty()) return {};
  auto& quota = draft_.commit().quota;
  if (inject) quota.push_back({organisation, store::injects_counter, 1});
  if (tokens > 0) quota.push_back({organisation, store::model_tokens_counter, tokens});
  return {};
}

// Counts a failed Turn in its ramps. The build in which the Turn ran was dropped together with its
// count. An event that no Flow ran is not counted.
Result<void> TurnBatchBuilder::count_failed(const FailedTurn& failed) {
  if (failed.flow.empty()) return {};
  const auto assets = draft_.context.assets.project(draft_.input.key.project_id);
  if (!assets && is_store_failure(assets.error())) return fail(assets.error());
  if (!assets) return {};
  count_in_ramps(draft_, **assets, failed.flows_run,
                 model::PinnedFlow{failed.flow, failed.version});
  return {};
}

Result<void> TurnBatchBuilder::let_wait(const Candidate& candidate, const Decision& decision) {
  const Event& event = *candidate.event;
  if (decision.fate == Fate::dead_letter) {
    return bury_waiting(draft_, event, candidate.parts(), decision.reason);
  }
  inbox_.add(*candidate.logged);
  if (Speaker::of(event).keyed) draft_.commit().answers.progressed.push_back(event.id);
  return {};
}

// Whether a Turn runs for the event: its own, or after it has failed that of the Flow for errors.
Result<bool> TurnBatchBuilder::runs_flow(const Decision& decision, const FailedTurn* failed) const {
  if (decision.fate == Fate::runs) return true;
  if (failed == nullptr) return false;
  const auto endpoint = draft_.context.assets.endpoint(draft_.input.key.endpoint_id);
  if (!endpoint) return none_unless_store_failed(endpoint.error());
  return !(*endpoint)->error_flow_id.empty();
}

Result<void> TurnBatchBuilder::begin_turn(const Candidate& candidate, const EventFacts& facts) {
  if (!draft_.input.begin) return {};
  const auto at = candidate.at();
  return draft_.input.begin(
      {.event = {candidate.event->id, partition_of(candidate), at ? at->offset : -1},
       .crashes = facts.crashes,
       .is_first = !std::exchange(begun_, true)});
}

Result<void> TurnBatchBuilder::start(const Candidate& candidate, const EventFacts& facts,
                                     const Decision& decision) {
  const Event& event = *candidate.event;
  if (facts.crashes) draft_.commit().attempts_settled.push_back(event.id);
  if (draft_.batch.first_started.empty()) draft_.batch.first_started = event.id;
  const auto* failed = failed_turn_of(event);
  const auto runs = runs_flow(decision, failed);
  if (!runs) return fail(runs.error());
  if (*runs) {
    if (auto begun = begin_turn(candidate, facts); !begun) return begun;
  }
  if (decision.fate == Fate::dead_letter) {
    if (facts.damage.empty()) {
      auto buried = bury(draft_, event, candidate.parts(), decision.reason,
                         failed == nullptr ? Cause::other : Cause::turn);
      if (failed != nullptr) {
        auto& letter = draft_.commit().dead_letters.back();
        letter.flow = failed->flow;
        letter.flow_version = failed->version;
        letter.node = failed->node;
        if (buried) buried = count_failed(*failed);
      }
      return buried;
    }
    return bury_damaged(draft_, event, candidate.parts(), decision.reason,
                        std::exchange(execution_lost_, false));
  }
  auto failure = run_event(draft_, event);
  if (!failure) return fail(failure.error());
  if (*failure) {
    failed_ = true;
    earlier_.spent = draft_.spent;
    if (from_memory_) return {};
    const auto& step = draft_.step;
    earlier_.failed.emplace(event.id, FailedTurn{**std::move(failure), step.flow, step.version,
                                                 step.node, step.flows_run});
  }
  return {};
}

void TurnBatchBuilder::close() {
  auto& batch = draft_.batch;
  // Only a dead letter overwrites unreadable data. A position alone never does.
  if (!damage_.empty() && batch.commit.dead_letters.empty()) batch.changes = false;
  settle_time_outs();
  inbox_.close();
  batch.drain_more = !draft_.session.busy() && draft_.session.inbox_size > 0;
  batch.commit.timers_ahead = draft_.timer_offset();
  batch.commit.after = std::move(draft_.session);
  batch.profile = std::move(draft_.profile);
  batch.reads_all = damage_.empty();
}

// Cancels the timers of questions that no longer wait.
void TurnBatchBuilder::settle_time_outs() {
  const auto left = flows::time_outs_of(draft_.session);
  const auto is_over = [&](const std::string& id) {
    return std::ranges::find(left, id) == left.end();
  };
  auto& calls = draft_.commit().calls;
  std::ranges::copy_if(time_outs_, std::back_inserter(calls.cancelled), is_over);
  // A timer of this batch is not in the store yet.
  std::erase_if(calls.started,
                [&](const auto& call) { return call.is_time_out && is_over(call.id); });
}

}  // namespace

SessionKey session_of(const std::string& lane_key) {
  auto key = SessionKey::decode(lane_key);
  if (key && !key->endpoint_id.empty() && is_key_part(key->project_id) &&
      is_key_part(key->endpoint_id) && is_key_part(key->user_id) && is_key_part(key->session_id)) {
    return std::move(*key);
  }
  std::string shown(text::cut(text::well_formed(lane_key), longest_key_part));
  std::ranges::replace_if(
      shown, [](char c) { return c >= 0 && c < ' '; }, '_');
  return {"", "", std::move(shown), model::hex(api::digest({lane_key}))};
}

Result<TurnBatch> build_turn_batch(const TurnBatchContext& context, const TurnBatchInput& input) {
  EarlierBuilds earlier;
  for (;;) {
    auto batch = TurnBatchBuilder(context, input, earlier).build();
    if (!batch) return fail(batch.error());
    if (*batch) return **std::move(batch);
    // A failed Turn has spoiled the batch's session. Turns are pure, so the batch is built again
    // from the store. If the session came from the store, the event is now a dead letter.
  }
}

}  // namespace conversed::daemon
