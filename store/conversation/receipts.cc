#include "store/conversation/receipts.h"

#include <algorithm>
#include <limits>
#include <set>
#include <tuple>
#include <utility>

#include "store/commit/receipt_blocks.h"
#include "store/commit/receipt_keys.h"
#include "store/commit/stored_steps.h"
#include "store/conversation/receipts_sql.h"
#include "store/model/ids.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr std::size_t most_outputs = 1000;
// Events of a trace. Other projects may have events of the same trace.
constexpr std::size_t most_looked_at = 1000;
constexpr int most_events_before = 8;
constexpr std::size_t most_newest_characters = 2 * 1024 * 1024;  // at one read

// The ids of the event that a text may name.
std::vector<std::string> event_ids(const std::string& text) {
  std::vector<std::string> ids{text};
  if (text.size() > model::id_length && text[model::id_length] == '-') {
    ids.push_back(text.substr(0, model::id_length));
  }
  return ids;
}

// The events of those receipts that are of the project: the oldest, each once.
std::vector<std::string> of_project(Connection& connection, const std::string& project_id,
                                    const std::vector<ReceiptBegin>& begins, std::size_t limit) {
  auto asked = nlohmann::json::array();
  for (const auto& begin : begins) asked.push_back(begin.session);
  const auto sessions =
      connection.values<std::int64_t>(sql_of_own_sessions, asked.dump(), project_id);
  const std::set<std::int64_t> own(sessions.begin(), sessions.end());
  std::set<std::string> found;
  for (const auto& begin : begins) {
    if (own.contains(begin.session)) found.insert(begin.event_id);
  }
  std::vector<std::string> events(found.begin(), found.end());
  events.resize(std::min(events.size(), limit));
  return events;
}

// The newest receipts with a number (store/commit/receipt_keys.h).
std::vector<ReceiptBegin> numbered(Connection& connection, std::int64_t number) {
  std::vector<ReceiptBegin> begins;
  for (const auto& id : connection.values<std::string>(sql_of_numbered_events, number)) {
    if (auto found = find_receipt(connection, id)) begins.push_back(*std::move(found));
  }
  return begins;
}

std::vector<std::string> events_of_trace(Connection& connection, const std::string& project_id,
                                         const std::string& trace_id, std::size_t limit) {
  std::vector<ReceiptBegin> begins;
  if (const auto range = first_second(trace_id)) {
    connection.rows(
        [&](const std::string& block) {
          for (auto& begin : receipts_in(block)) {
            if (begin.trace_id == trace_id) begins.push_back(std::move(begin));
          }
          return begins.size() < most_looked_at;
        },
        sql_of_traced_blocks, range->from - block_span, range->to, "% " + trace_id + " %");
  }
  if (const auto number = key_number(trace_id)) {
    for (auto& begin : numbered(connection, *number)) {
      if (begin.trace_id == trace_id) begins.push_back(std::move(begin));
    }
  }
  return of_project(connection, project_id, begins, limit);
}

void read_outputs(Connection& connection, std::int64_t session, Receipt& receipt) {
  for (const auto& row : receipt.rows) {
    const auto range = row.body.find("outputs");
    const auto left = most_outputs - receipt.outputs.size();
    if (range == row.body.end() || left == 0) continue;
    const auto first = range->at(0).get<std::int64_t>();
    connection.rows(
        [&](std::string id, std::int64_t seq, model::Timestamp created,
            std::optional<model::Timestamp> due, bool is_behind) {
          receipt.outputs.push_back({.id = std::move(id),
                                     .seq = seq,
                                     .created_at = created,
                                     .pending = due.has_value(),
                                     .is_behind = is_behind,
                                     .due_at = due.value_or(model::Timestamp{})});
        },
        sql_of_receipt_outputs, session, first, first + range->at(1).get<std::int64_t>(),
        receipt.input_id, left);
  }
}

nlohmann::json first_step(std::string_view stored) {
  auto step = read_step(stored);
  if (!step) throw DamagedData("a receipt's first step is damaged");
  return *std::move(step);
}

nlohmann::json later_steps(Connection& connection, const std::string& event_id) {
  const auto stored = connection.value<std::string>(sql_of_later_steps, event_id);
  auto steps = read_later_steps(stored.value_or(""), plain_deliveries(connection, event_id));
  if (!steps) throw DamagedData("a receipt's later steps are damaged");
  return *std::move(steps);
}

// The time of a later step.
model::Timestamp written_at(const nlohmann::json& step) {
  return model::from_unix_ms(step.value("w", std::int64_t{0}));
}

// Finds the last delivery of the events before this one: a session's outputs are delivered in
// order, so the outputs of earlier events go first.
void read_delivered_before(Connection& connection, std::int64_t session, Receipt& receipt) {
  auto event = receipt.previous;
  for (int looked_at = 0; looked_at < most_events_before && !event.empty(); ++looked_at) {
    auto found = find_receipt(connection, event);
    if (!found || found->session != session) return;
    const auto steps = later_steps(connection, event);
    if (!steps.empty() && steps.back().value("what", "") == "delivery") {
      receipt.delivered_before = written_at(steps.back());
      return;
    }
    event = std::move(found->previous);
  }
}

}  // namespace

Result<std::vector<std::string>> Receipts::find(const std::string& project_id,
                                                const std::string& text, const std::string& key,
                                                std::size_t limit) const {
  return read_together(database_, [&](Connection& connection) -> Result<std::vector<std::string>> {
    for (const auto& id : event_ids(text)) {
      const auto receipt = find_receipt(connection, id);
      if (!receipt) continue;
      auto found = of_project(connection, project_id, {*receipt}, limit);
      if (!found.empty()) return found;
    }
    auto traced = events_of_trace(connection, project_id, text, limit);
    const auto number = key_number(key);
    if (!traced.empty() || !number) return traced;
    return of_project(connection, project_id, numbered(connection, *number), limit);
  });
}

Result<Receipt> Receipts::get(const std::string& input_id) const {
  return read_snapshot(database_, [&](Connection& connection) -> Result<Receipt> {
    auto found = find_receipt(connection, input_id);
    if (!found) return fail(Errc::not_found, "there is no such receipt");
    auto& begin = *found;
    const auto session = begin.session;
    Receipt receipt;
    receipt.input_id = input_id;
    receipt.trace_id = std::move(begin.trace_id);
    receipt.previous = std::move(begin.previous);
    receipt.rows.push_back({1, begin.written_at, first_step(begin.step)});
    for (auto& step : later_steps(connection, input_id)) {
      const auto then = written_at(step);
      step.erase("w");
      receipt.rows.push_back({receipt.rows.back().n + 1, then, std::move(step)});
    }
    auto owner = connection.row<model::SessionKey, std::optional<nlohmann::json>, std::int64_t,
                                std::int64_t>(sql_of_receipt_session, input_id, session);
    if (!owner) return fail(Errc::not_found, "there is no such receipt");
    auto& [key, execution, inbox_size, in_inbox] = *owner;
    receipt.session = std::move(key);
    receipt.waits_in_inbox = in_inbox > 0;
    receipt.runs = execution && execution->value("inputId", "") == input_id;
    if (receipt.runs) receipt.others = inbox_size;
    read_outputs(connection, session, receipt);
    read_delivered_before(connection, session, receipt);
    return receipt;
  });
}

Result<std::vector<Receipts::NewestRow>> Receipts::newest(const std::string& project_id,
                                                          std::size_t sessions,
                                                          std::size_t limit) const {
  return read_together(database_, [&](Connection& connection) -> Result<std::vector<NewestRow>> {
    std::vector<NewestRow> rows;
    std::size_t characters = 0;
    for (const auto& id : connection.values<std::string>(sql_of_newest_receipts, project_id,
                                                         static_cast<std::int64_t>(sessions))) {
      auto found = find_receipt(connection, id);
      if (!found) continue;
      const auto later = connection.value<std::string>(sql_of_later_steps, id).value_or("");
      characters += found->step.size() + later.size();
      auto steps = read_later_steps(later);
      if (!steps) throw DamagedData("a receipt's later steps are damaged");
      if (characters > most_newest_characters || rows.size() + 1 + steps->size() > limit) break;
      rows.push_back({id, first_step(found->step)});
      for (auto& step : *steps) rows.push_back({id, std::move(step)});
    }
    return rows;
  });
}

Result<std::int64_t> Receipts::prune(model::Timestamp before, std::size_t limit) {
  const auto first_kept = model::id_prefix(before);
  const auto first_number = model::id_number(before);
  // Most rounds find no old row, and need no write.
  auto old = read_exists(database_, sql_of_an_old_block, first_number, first_number);
  if (!old) return fail(old.error());
  if (!*old) return 0;
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::int64_t> {
    const auto deliveries = writer.connection().run_counted(
        sql_to_delete_old_deliveries, first_number, static_cast<std::int64_t>(limit));
    std::int64_t removed = 0;
    std::int64_t behind = std::numeric_limits<std::int64_t>::min();
    const auto most = static_cast<std::int64_t>(limit);
    // A block whose receipts all stay removes nothing.
    for (std::int64_t blocks = 0; blocks < 4 * most && removed < most; ++blocks) {
      const auto block = writer.connection().row<std::int64_t, std::string>(sql_of_next_old_block,
                                                                            behind, first_number);
      if (!block) break;
      behind = std::get<0>(*block);
      removed += remove_block(writer.connection(), behind, std::get<1>(*block), first_kept);
    }
    return std::max(removed, deliveries);
  });
}

std::vector<std::string> chain_of(Connection& connection, std::int64_t session, std::size_t limit) {
  std::vector<std::string> chain;
  auto id =
      connection.value<std::string>("SELECT last_receipt FROM sessions WHERE id = :s", session)
          .value_or("");
  std::set<std::string> seen;
  while (chain.size() < limit && seen.insert(id).second) {
    auto found = find_receipt(connection, id);
    if (!found || found->session != session) break;
    chain.push_back(std::exchange(id, std::move(found->previous)));
  }
  return chain;
}

}  // namespace conversed::store
