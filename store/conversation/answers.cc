#include "store/conversation/answers.h"

#include <algorithm>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/commit/row_writes.h"
#include "store/conversation/outbox.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

using Stage = InputState::Stage;

// The event of an input in the inbox.
std::optional<model::Event> waiting_event(Connection& connection, std::int64_t session,
                                          const AwaitedInput& input) {
  auto row = connection.row<std::string, std::string, std::string>(
      "SELECT type, trace_id, value FROM inbox WHERE session = :s AND event_id = :e ORDER BY n"
      " LIMIT 1",
      session, input.id);
  if (!row) return std::nullopt;
  const auto& [type, trace, value] = *row;
  auto event = model::decode_event(input.session.encode(), input.id, type, trace, value);
  return event ? std::optional(*std::move(event)) : model::Event();
}

// Sets the state from the session's row. `progress`: the columns that `read_state` reads.
void read_progress(Connection& connection, const AwaitedInput& input, const auto& progress,
                   InputState& state) {
  const auto& [session, epoch, partition, offset, text] = progress;
  const auto runs_until = [&](const std::optional<model::Timestamp>& answer_until) {
    state.stage = Stage::runs;
    state.answer_until = answer_until;
    if (!answer_until && !state.cut_behind)
      state.cut_behind = 0;  // without a deadline it is cut from the start
  };
  if (text) {
    const auto running = model::execution_from(nlohmann::json::parse(*text, nullptr, false));
    if (running && running->input_id == input.id) return runs_until(running->answer_until);
  }
  if (const auto event = waiting_event(connection, session, input)) {
    return runs_until(event->answer_until);
  }
  const auto& at = input.position;
  const bool is_past =
      at && at->epoch == epoch && at->partition == partition && at->offset <= offset;
  if (is_past) state.stage = Stage::at_rest;
}

InputState read_state(Connection& connection, const AwaitedInput& input, model::Timestamp now) {
  // One round trip for these statements: a transaction may cut many inputs, and all daemons wait
  // for it.
  auto cut_row =
      connection.ask<std::int64_t>("SELECT behind FROM cuts WHERE input_id = :i", input.id);
  auto session_row = connection.ask<std::int64_t, std::int64_t, std::int32_t, std::int64_t,
                                    std::optional<std::string>>(
      "SELECT id, position_epoch, position_partition, position_offset, execution FROM sessions"
      " WHERE key = :k",
      input.session.encode());
  auto kept_row = connection.ask<std::optional<std::string>>(
      "SELECT body FROM answers WHERE input_id = :i AND expires_at > :n", input.id, now);
  InputState state;
  if (const auto cut = cut_row.take()) state.cut_behind = std::get<0>(*cut);
  if (const auto progress = session_row.take()) read_progress(connection, input, *progress, state);
  if (auto kept = kept_row.take()) {
    state.kept = std::move(std::get<0>(*kept));
    state.stage = state.kept ? Stage::at_rest : Stage::failed;
  }
  state.said = outputs_of_input(connection, input.session, input.id);
  return state;
}

}  // namespace

Result<InputState> Answers::look(const AwaitedInput& input, model::Timestamp now) const {
  return read_snapshot(database_,
                       [&](Connection& connection) { return read_state(connection, input, now); });
}

void Answers::cut(const AwaitedInput& input, std::function<void(Result<InputState>)> done) {
  auto state = std::make_shared<InputState>();
  committer_.write(
      [state, input](Writer& writer) -> Result<void> {
        if (auto here = writer.check_place(input.session.encode()); !here) return here;
        *state = read_state(writer.connection(), input, writer.timer_now());
        if (state->stage == Stage::at_rest || state->stage == Stage::failed) return {};
        if (state->cut_behind) return {};
        state->cut_behind = state->said.empty() ? 0 : state->said.back().seq;
        insert_cut(writer.connection(), {input.id, *state->cut_behind}, writer.timer_now());
        announce_progress(writer.connection(), {input.id});
        return {};
      },
      [state, done = std::move(done)](const Result<void>& written) {
        done(written ? Result<InputState>(std::move(*state)) : fail(written.error()));
      },
      Committer::Patience::none);
}

Result<bool> Answers::is_cut(const std::string& input_id) const {
  return read_exists(database_, "SELECT 1 FROM cuts WHERE input_id = :i", input_id);
}

Result<bool> Answers::claimed(const std::string& event_id) const {
  return read_exists(database_, "SELECT 1 FROM claims WHERE id = :i", event_id);
}

Result<std::int64_t> Answers::prune(model::Timestamp now, model::Timestamp claims_before,
                                    std::size_t limit) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::int64_t> {
    Connection& connection = writer.connection();
    const auto answers = connection.run_counted(
        "DELETE FROM answers WHERE input_id IN (SELECT input_id FROM answers"
        " WHERE expires_at <= :n ORDER BY expires_at LIMIT :l)",
        now, limit);
    const auto cuts = connection.run_counted(
        "DELETE FROM cuts WHERE input_id IN (SELECT input_id FROM cuts WHERE created_at < :b"
        " ORDER BY created_at LIMIT :l)",
        now - answer_lifetime, limit);
    const auto claims = connection.run_counted(
        "DELETE FROM claims WHERE id IN (SELECT id FROM claims WHERE created_at < :b"
        " ORDER BY created_at LIMIT :l)",
        claims_before, limit);
    return std::max({answers, cuts, claims});
  });
}

}  // namespace conversed::store
