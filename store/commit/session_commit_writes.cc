#include "store/commit/session_commit_writes.h"

#include <algorithm>
#include <chrono>
#include <nlohmann/json.hpp>

#include "store/cluster/notifications.h"
#include "store/commit/call_target.h"
#include "store/commit/row_writes.h"
#include "store/commit/stored_steps.h"
#include "store/commit/usage.h"
#include "store/model/json.h"

namespace conversed::store {
namespace {

using model::Claim;
using model::json_text;

struct StoredSession {
  std::int64_t id = 0;  // 0: the session is not stored
  std::int64_t version = 0;
  std::int64_t inbox_size = 0;
};

using AskedSession = Asked<std::int64_t, std::int64_t, std::int64_t>;

AskedSession ask_session(Connection& connection, const std::string& key) {
  return connection.ask<std::int64_t, std::int64_t, std::int64_t>(
      "SELECT id, version, inbox_size FROM sessions WHERE key = :k", key);
}

// Asks for the row of a claim. The claim is valid if the row exists. A keyed event's claim is valid
// if its row is missing: the row says that the event has had its effects.
Asked<int> ask_claim(Connection& connection, const Claim& claim, const std::string& session_key) {
  switch (claim.kind) {
    case Claim::Kind::pending_call:
    case Claim::Kind::timer:
      return connection.ask<int>(
          "SELECT 1 FROM pending_calls WHERE id = :i"
          " AND session = (SELECT id FROM sessions WHERE key = :k)",
          claim.id, session_key);
    case Claim::Kind::dead_letter:
      return connection.ask<int>("SELECT 1 FROM dead_letters WHERE id = :i AND state = 'new'",
                                 claim.id);
    case Claim::Kind::follow_up:
      return connection.ask<int>(
          "SELECT 1 FROM follow_ups WHERE id = :i"
          " AND session = (SELECT id FROM sessions WHERE key = :k)",
          claim.id, session_key);
    case Claim::Kind::schedule:
      return connection.ask<int>("SELECT 1 FROM schedules WHERE claim = :c", claim.id);
    case Claim::Kind::keyed_event:
      break;
  }
  return connection.ask<int>("SELECT 1 FROM claims WHERE id = :i", claim.id);
}

void consume(Connection& connection, const Claim& claim, model::Timestamp now) {
  switch (claim.kind) {
    case Claim::Kind::keyed_event:
      connection.run_row("INSERT INTO claims (id, created_at) VALUES (:i, :t)", claim.id, now);
      break;
    case Claim::Kind::pending_call:
    case Claim::Kind::timer:
      connection.run_row("DELETE FROM pending_calls WHERE id = :i", claim.id);
      break;
    case Claim::Kind::dead_letter:
      connection.run_row("UPDATE dead_letters SET state = 'replayed' WHERE id = :i", claim.id);
      break;
    case Claim::Kind::follow_up:
      connection.run_row("DELETE FROM follow_ups WHERE id = :i", claim.id);
      break;
    case Claim::Kind::schedule:
      break;  // move_schedule deletes or moves the row
  }
}

void move_schedule(Connection& connection, const model::ScheduleFired& fired) {
  if (!fired.next) {
    connection.run_row("DELETE FROM schedules WHERE claim = :c", fired.claim);
    return;
  }
  connection.run_row(
      "UPDATE schedules SET due_at = :d, run = run + 1, claim = id || '-' || (run + 1),"
      " fired = fired + 1, appended = 0 WHERE claim = :c",
      *fired.next, fired.claim);
}

std::int64_t inbox_size_after(const SessionCommit& commit, std::int64_t before) {
  return before - commit.inbox.removed + static_cast<std::int64_t>(commit.inbox.added.size());
}

void insert_session(Connection& connection, const EncodedCommit& encoded) {
  const auto& after = encoded.commit.after;
  connection.run_row(
      "INSERT INTO sessions (key, project_id, version, position_epoch, position_partition,"
      " position_offset, started_at, last_activity_at, context, flow_state, execution,"
      " last_output_seq, inbox_size, last_receipt) VALUES (:k, :p, 1, :pe, :pp, :po, :sa, :la, :c,"
      " :f, :e, :l, :i, :r)",
      encoded.key, encoded.commit.key.project_id, after.position.epoch, after.position.partition,
      after.position.offset, after.started_at, after.last_activity_at, encoded.context,
      encoded.flow_state, encoded.execution, after.last_output_seq,
      inbox_size_after(encoded.commit, 0), after.last_receipt);
}

void update_session(Connection& connection, const EncodedCommit& encoded,
                    const StoredSession& was) {
  const auto& after = encoded.commit.after;
  connection.run_row(
      "UPDATE sessions SET version = :v, position_epoch = :pe, position_partition = :pp,"
      " position_offset = :po, started_at = :sa, last_activity_at = :la, context = :c,"
      " flow_state = :f, execution = :e, last_output_seq = :l, inbox_size = :i, last_receipt = :r"
      " WHERE id = :id",
      was.version + 1, after.position.epoch, after.position.partition, after.position.offset,
      after.started_at, after.last_activity_at, encoded.context, encoded.flow_state,
      encoded.execution, after.last_output_seq, inbox_size_after(encoded.commit, was.inbox_size),
      after.last_receipt, was.id);
}

void write_profile(Connection& connection, const EncodedCommit& encoded) {
  const auto& key = encoded.commit.key;
  const std::int64_t version = encoded.commit.profile.read_version.value_or(0) + 1;
  connection.run_row(
      "INSERT INTO profiles (project_id, user_id, version, data) VALUES (:p, :u, :v, :d)"
      " ON CONFLICT (project_id, user_id) DO UPDATE SET version = excluded.version,"
      " data = excluded.data",
      key.project_id, key.user_id, version, *encoded.profile);
}

void write_inbox(Connection& connection, const SessionCommit& commit, std::int64_t session) {
  if (commit.inbox.removed > 0) {
    connection.run_row(
        "DELETE FROM inbox WHERE session = :s AND n <="
        " (SELECT n FROM inbox WHERE session = :t ORDER BY n LIMIT 1 OFFSET :c)",
        session, session, commit.inbox.removed - 1);
  }
  // One statement for many rows finds one maximum.
  for (std::size_t i = 0; i < commit.inbox.added.size(); ++i) {
    const auto& event = commit.inbox.added[i];
    connection.run_row(
        "INSERT INTO inbox (session, n, event_id, type, trace_id, value) VALUES (:s,"
        " (SELECT COALESCE(MAX(n), 0) FROM inbox WHERE session = :m) + :i, :e, :t, :r, :v)",
        session, session, i + 1, event.event_id, event.type, event.trace_id, event.value);
  }
}

void write_outputs(Connection& connection, const EncodedCommit& encoded, std::int64_t session) {
  for (std::size_t i = 0; i < encoded.commit.outputs.size(); ++i) {
    const auto& output = encoded.commit.outputs[i];
    connection.run_row(
        "INSERT INTO outputs (session, seq, output_id, input_id, text, data, trace_id,"
        " tracestate, source, created_at, timers_ahead)"
        " VALUES (:s, :q, :o, :i, :x, :d, :t, :e, :r, :c, :a)",
        session, output.seq, output.id, output.input_id, output.text, encoded.output_data[i],
        output.trace_id, output.tracestate, output.source, output.created_at,
        encoded.commit.timers_ahead.count());
    if (output.delivery != model::Delivery::pending) continue;
    insert_delivery(connection, session, encoded.commit.key.endpoint_id, output.seq, output.id,
                    output.withdrawable);
  }
}

void write_calls(Connection& connection, const EncodedCommit& encoded, std::int64_t session,
                 model::Timestamp now) {
  for (std::size_t i = 0; i < encoded.commit.calls.started.size(); ++i) {
    const auto& call = encoded.commit.calls.started[i];
    std::optional<std::string> project;
    std::optional<std::string> upstream;
    std::optional<model::Timestamp> try_at;
    if (encoded.call_targets[i]) {
      project = encoded.commit.key.project_id;
      upstream = shown_target(call);
      try_at = now;
    }
    std::optional<std::chrono::milliseconds> time_limit;
    if (call.http) time_limit = call.http->timeout;
    if (call.code) time_limit = call.code->timeout;
    connection.run_row(
        "INSERT INTO pending_calls (id, session, trace_id, tracestate, request, due_at, time_out,"
        " project_id, target, upstream, retries, time_limit, try_at)"
        " VALUES (:i, :s, :t, :e, :r, :d, :o, :p, :g, :u, :n, :l, :y)",
        call.id, session, call.trace_id, call.tracestate, encoded.call_requests[i], call.due_at,
        call.is_time_out, project, encoded.call_targets[i], upstream,
        call.http ? call.http->retries : 0, time_limit, try_at);
  }
  for (const auto& id : encoded.commit.calls.cancelled) {
    connection.run_row("DELETE FROM pending_calls WHERE id = :i AND session = :s", id, session);
  }
}

// `withdraws`: whether the session has deliveries that can be withdrawn.
void cancel_follow_ups(Connection& connection, std::int64_t session, bool withdraws) {
  connection.run_row("DELETE FROM follow_ups WHERE session = :s", session);
  if (!withdraws) return;
  connection.run_row(
      "DELETE FROM outputs WHERE session = :s AND seq IN"
      " (SELECT seq FROM deliveries WHERE session = :t AND withdrawable = 1)",
      session, session);
  connection.run_row("DELETE FROM deliveries WHERE session = :s AND withdrawable = 1", session);
}

void write_follow_ups(Connection& connection, const EncodedCommit& encoded, std::int64_t session) {
  for (std::size_t i = 0; i < encoded.commit.follow_ups.added.size(); ++i) {
    const auto& follow_up = encoded.commit.follow_ups.added[i];
    connection.run_row(
        "INSERT INTO follow_ups (id, session, trace_id, tracestate, due_at, value, of_journey)"
        " VALUES (:i, :s, :t, :e, :d, :v, :j)",
        follow_up.id, session, follow_up.trace_id, follow_up.tracestate, follow_up.due_at,
        encoded.follow_ups[i], follow_up.plan.of_journey);
  }
}

void insert_answer(Connection& connection, const std::string& key, const NewAnswer& answer) {
  connection.run_row(
      "INSERT INTO answers (input_id, body, expires_at, session_key) VALUES (:i, :b, :e, :k)"
      " ON CONFLICT (input_id) DO UPDATE SET body = excluded.body,"
      " expires_at = excluded.expires_at, session_key = excluded.session_key",
      answer.input_id, answer.body, answer.expires_at, key);
}

void add_totals(const SessionCommit& commit, BatchTotals& totals) {
  if (const auto& position = commit.after.position; position.epoch != 0) {
    auto [place, fresh] =
        totals.positions.try_emplace({position.epoch, position.partition}, position.offset);
    if (!fresh) place->second = std::max(place->second, position.offset);
  }
  for (const auto& use : commit.quota) {
    totals.quota[{use.organisation_id, use.counter}] += use.amount;
  }
  for (const auto& use : commit.ramps) {
    const bool ramped = use.version == RampUse::Version::ramped;
    auto& counts = totals.ramps[use.ramp_id];
    (ramped ? counts.turns : counts.stable_turns) += use.turns;
    (ramped ? counts.failures : counts.stable_failures) += use.failures;
  }
}

void note_timers(const SessionCommit& commit, BatchTotals& totals) {
  auto& first = totals.first_timer;
  const auto note = [&](model::Timestamp due) { first = std::min(first.value_or(due), due); };
  for (const auto& call : commit.calls.started) {
    if (call.due_at) note(*call.due_at);
  }
  for (const auto& follow_up : commit.follow_ups.added) note(follow_up.due_at);
  for (const auto& fired : commit.schedules_fired) {
    if (fired.next) note(*fired.next);
  }
}

bool reads_profile(const SessionCommit& commit) {
  return commit.profile.read_version || commit.profile.data;
}

bool claims_twice(const SessionCommit& commit) {
  for (auto claim = commit.claims.begin(); claim != commit.claims.end(); ++claim) {
    if (std::find(commit.claims.begin(), claim, *claim) != claim) return true;
  }
  return false;
}

// Consumes claims. Removes rows before the SessionCommit's own rows are added, because those must
// stay.
void remove_rows(Connection& connection, const SessionCommit& commit, std::int64_t session,
                 bool withdraws, Now now) {
  for (const auto& claim : commit.claims) consume(connection, claim, now.timers);
  for (const auto& fired : commit.schedules_fired) move_schedule(connection, fired);
  if (commit.calls.all_abandoned) abandon_execution(connection, session);
  if (commit.follow_ups.cancelled) cancel_follow_ups(connection, session, withdraws);
  for (const auto& event_id : commit.attempts_settled) {
    connection.run_row("DELETE FROM attempts WHERE event_id = :e", event_id);
  }
}

void add_rows(Connection& connection, const EncodedCommit& encoded, std::int64_t session, Now now) {
  const SessionCommit& commit = encoded.commit;
  if (encoded.profile) write_profile(connection, encoded);
  write_inbox(connection, commit, session);
  write_outputs(connection, encoded, session);
  write_calls(connection, encoded, session, now.timers);
  write_follow_ups(connection, encoded, session);
  for (const auto& answer : commit.answers.kept) insert_answer(connection, encoded.key, answer);
  for (const auto& cut : commit.answers.cuts) insert_cut(connection, cut, now.timers);
}

// Changes of rows that `add_rows` may have added, and rows that are written one by one.
void add_to_rows(Connection& connection, const EncodedCommit& encoded, std::int64_t session,
                 Now now) {
  const SessionCommit& commit = encoded.commit;
  for (const auto& row : commit.receipts) {
    if (!row.first) add_to_receipt(connection, row, session, now.wall);
  }
  for (const auto& letter : commit.dead_letters) {
    insert_dead_letter(connection, letter, commit.key.project_id, encoded.key, std::nullopt,
                       now.wall);
  }
}

}  // namespace

EncodedCommit encode(SessionCommit commit) {
  EncodedCommit encoded;
  encoded.key = commit.key.encode();
  encoded.context = json_text(commit.after.context);
  encoded.flow_state = json_text(commit.after.flow_state);
  if (commit.after.execution)
    encoded.execution = json_text(model::to_json(*commit.after.execution));
  if (commit.profile.data) encoded.profile = json_text(*commit.profile.data);
  encoded.output_data.reserve(commit.outputs.size());
  for (const auto& output : commit.outputs) {
    auto& data = encoded.output_data.emplace_back();
    if (!output.data.is_null()) data = json_text(output.data);
  }
  encoded.call_requests.reserve(commit.calls.started.size());
  for (auto& call : commit.calls.started) {
    auto& request = encoded.call_requests.emplace_back();
    auto& target = encoded.call_targets.emplace_back();
    if (call.http || call.search || call.code) target = target_of(call);
    if (call.http) request = json_text(model::to_json(*call.http));
    if (call.search) request = json_text(model::to_json(*call.search));
    if (call.code) request = json_text(model::to_json(*call.code));
  }
  encoded.follow_ups.reserve(commit.follow_ups.added.size());
  for (auto& follow_up : commit.follow_ups.added) {
    encoded.follow_ups.push_back(
        json_text(nlohmann::json({{"text", std::move(follow_up.text)},
                                  {"data", std::move(follow_up.data)},
                                  {"plan", model::to_json(follow_up.plan)}})));
  }
  commit.after.context = nullptr;
  commit.after.flow_state = nullptr;
  commit.after.execution.reset();
  encoded.commit = std::move(commit);
  return encoded;
}

// A SessionCommit of the group, with the questions about it and their answers.
struct CommitGroup::Candidate {
  const EncodedCommit* encoded;
  Outcome* outcome;
  AskedSession session;
  std::optional<Asked<std::int64_t>> profile{};
  std::vector<Asked<int>> claims{};
  std::vector<Asked<int>> cuts{};  // of inputs that the SessionCommit expects to be uncut
  bool is_late = false;            // the deadline of such an input has passed
  StoredSession stored{};
  std::optional<Asked<int>> withdrawable{};
  bool withdraws = false;

  bool is_as_expected();
};

// Takes all answers, even after an unexpected one.
bool CommitGroup::Candidate::is_as_expected() {
  const SessionCommit& commit = encoded->commit;
  if (auto row = session.take()) std::tie(stored.id, stored.version, stored.inbox_size) = *row;
  bool expected = !is_late && stored.version == commit.expected_version &&
                  stored.inbox_size >= commit.inbox.removed;
  if (profile) {
    const auto row = profile->take();
    const std::int64_t version = row ? std::get<0>(*row) : 0;
    expected = expected && version == commit.profile.read_version.value_or(0);
  }
  for (std::size_t i = 0; i < claims.size(); ++i) {
    const bool found = claims[i].take().has_value();
    expected = expected && found != (commit.claims[i].kind == Claim::Kind::keyed_event);
  }
  for (auto& cut : cuts) expected = !cut.take().has_value() && expected;
  withdraws = withdrawable && withdrawable->take().has_value();
  return expected;
}

CommitGroup::CommitGroup(Connection& connection, Now now, BatchTotals& totals, PartitionGate& gate)
    : connection_(connection), now_(now), totals_(totals), gate_(gate) {}

CommitGroup::~CommitGroup() = default;

// Whether the SessionCommit depends on a SessionCommit that has not been written yet.
bool CommitGroup::is_entangled(const EncodedCommit& encoded) const {
  const SessionCommit& commit = encoded.commit;
  return sessions_.contains(encoded.key) ||
         (reads_profile(commit) &&
          profiles_.contains({commit.key.project_id, commit.key.user_id})) ||
         std::ranges::any_of(commit.claims,
                             [this](const Claim& claim) { return claims_.contains(claim.id); });
}

void CommitGroup::add(const EncodedCommit& encoded, Outcome& outcome) {
  if (is_entangled(encoded)) flush();
  const SessionCommit& commit = encoded.commit;
  Candidate candidate{
      .encoded = &encoded, .outcome = &outcome, .session = ask_session(connection_, encoded.key)};
  sessions_.insert(encoded.key);
  if (reads_profile(commit)) {
    candidate.profile = connection_.ask<std::int64_t>(
        "SELECT version FROM profiles WHERE project_id = :p AND user_id = :u",
        commit.key.project_id, commit.key.user_id);
    profiles_.insert({commit.key.project_id, commit.key.user_id});
  }
  for (const auto& claim : commit.claims) {
    candidate.claims.push_back(ask_claim(connection_, claim, encoded.key));
    claims_.insert(claim.id);
  }
  for (const auto& input : commit.answers.uncut) {
    candidate.cuts.push_back(
        connection_.ask<int>("SELECT 1 FROM cuts WHERE input_id = :i", input.input_id));
    candidate.is_late = candidate.is_late || input.until <= now_.timers;
  }
  if (commit.follow_ups.cancelled) {
    candidate.withdrawable = connection_.ask<int>(
        "SELECT 1 FROM deliveries WHERE session = (SELECT id FROM sessions WHERE key = :k)"
        " AND withdrawable = 1 LIMIT 1",
        encoded.key);
  }
  candidates_.push_back(std::move(candidate));
}

void CommitGroup::flush() {
  if (candidates_.empty()) return;
  // Sends rows of other writes first, since one of them may have the text of a statement below.
  connection_.settle();
  gate_.look(connection_);
  for (auto& candidate : candidates_) {
    // If the batch has the same event twice, the second has no claim.
    const bool wins = candidate.is_as_expected() && !claims_twice(candidate.encoded->commit) &&
                      gate_.is_open(candidate.encoded->key);
    *candidate.outcome = wins ? Outcome::committed : Outcome::conflict;
  }
  std::erase_if(candidates_,
                [](const Candidate& each) { return *each.outcome == Outcome::conflict; });
  // From here on all changes are written, or the database refuses a value and the batch is rolled
  // back.
  write_sessions();
  write_effects();
  for (const auto& candidate : candidates_) {
    const EncodedCommit& encoded = *candidate.encoded;
    add_totals(encoded.commit, totals_);
    if (connection_.dialect() == Dialect::postgres) {
      if (!encoded.commit.outputs.empty()) totals_.spoken.insert(short_name(encoded.key));
      const auto& progressed = encoded.commit.answers.progressed;
      totals_.progressed.insert(progressed.begin(), progressed.end());
      note_timers(encoded.commit, totals_);
    }
  }
  candidates_.clear();
  sessions_.clear();
  profiles_.clear();
  claims_.clear();
}

void CommitGroup::write_sessions() {
  for (auto& candidate : candidates_) {
    if (candidate.stored.id != 0) {
      update_session(connection_, *candidate.encoded, candidate.stored);
    } else {
      insert_session(connection_, *candidate.encoded);
      candidate.session = ask_session(connection_, candidate.encoded->key);
    }
  }
  for (auto& candidate : candidates_) {
    if (candidate.stored.id != 0) continue;
    candidate.stored.id = std::get<0>(candidate.session.take().value());
  }
}

// PostgreSQL writes rows of one kind by one statement, in the place of the first of them
// (Connection::run_row). So each kind that must follow another kind has a loop of its own.
void CommitGroup::write_effects() {
  for (const auto& each : candidates_) {
    remove_rows(connection_, each.encoded->commit, each.stored.id, each.withdraws, now_);
  }
  for (const auto& each : candidates_) {
    add_rows(connection_, *each.encoded, each.stored.id, now_);
  }
  bool adds_to_receipts = false;
  for (const auto& each : candidates_) {
    for (const auto& row : each.encoded->commit.receipts) {
      if (row.first) totals_.receipts.begin(row, each.stored.id, now_.wall);
      adds_to_receipts = adds_to_receipts || !row.first;
    }
  }
  if (adds_to_receipts) totals_.receipts.flush(connection_);
  for (const auto& each : candidates_) {
    add_to_rows(connection_, *each.encoded, each.stored.id, now_);
  }
}

void BatchTotals::flush(Connection& connection, Now now) {
  for (const auto& [place, offset] : positions) {
    connection.run_row(
        "INSERT INTO log_positions (epoch, log_partition, log_offset) VALUES (:e, :p, :o)"
        " ON CONFLICT (epoch, log_partition) DO UPDATE SET log_offset = excluded.log_offset"
        " WHERE excluded.log_offset > log_positions.log_offset",
        place.first, place.second, offset);
  }
  for (const auto& [what, amount] : quota) {
    add_usage(connection, what.first, what.second, amount, now.wall);
  }
  for (const auto& [ramp, counts] : ramps) {
    connection.run_row(
        "INSERT INTO ramp_counts (ramp_id, turns, failures, stable_turns, stable_failures)"
        " VALUES (:i, :t, :f, :s, :g) ON CONFLICT (ramp_id) DO UPDATE SET"
        " turns = ramp_counts.turns + excluded.turns,"
        " failures = ramp_counts.failures + excluded.failures,"
        " stable_turns = ramp_counts.stable_turns + excluded.stable_turns,"
        " stable_failures = ramp_counts.stable_failures + excluded.stable_failures",
        ramp, counts.turns, counts.failures, counts.stable_turns, counts.stable_failures);
  }
  receipts.flush(connection);
  announce_progress(connection, progressed);
  announce_spoken(connection, spoken);
  if (first_timer) announce_timer(connection, *first_timer);
}

}  // namespace conversed::store
