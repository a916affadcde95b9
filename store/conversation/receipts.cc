#include "store/conversation/receipts.h"

#include <algorithm>
#include <iterator>
#include <tuple>
#include <utility>

#include "store/commit/receipt_keys.h"
#include "store/commit/row_writes.h"
#include "store/commit/stored_steps.h"
#include "store/conversation/receipts_sql.h"
#include "store/model/ids.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr std::size_t most_outputs = 1000;
constexpr int most_events_before = 8;
constexpr std::int64_t most_newest_characters = 2 * 1024 * 1024;  // at one read

// The ids of the event that a text may name.
std::vector<std::string> event_ids(const std::string& text) {
  std::vector<std::string> ids{text};
  if (text.size() > model::id_length && text[model::id_length] == '-') {
    ids.push_back(text.substr(0, model::id_length));
  }
  return ids;
}

std::vector<std::string> events_of_trace(Connection& connection, const std::string& project_id,
                                         const std::string& trace_id, std::size_t limit) {
  const auto most = static_cast<std::int64_t>(limit);
  std::vector<std::string> found;
  if (const auto range = first_second(trace_id)) {
    found = connection.values<std::string>(sql_of_first_traced_receipts, range->from, range->to,
                                           trace_id, project_id, most);
  }
  if (const auto number = key_number(trace_id)) {
    std::ranges::move(
        connection.values<std::string>(sql_of_traced_receipts, *number, trace_id, project_id, most),
        std::back_inserter(found));
  }
  std::ranges::sort(found);
  found.resize(std::min(found.size(), limit));
  return found;
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

nlohmann::json first_step(std::string stored) {
  auto step = read_first_step(std::move(stored));
  if (!step) throw DamagedData("a receipt's first step is damaged");
  return *std::move(step);
}

nlohmann::json later_steps(const std::string& stored) {
  auto steps = read_later_steps(stored);
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
    auto known = connection.row<std::string, std::string>(sql_of_later_steps, event, session);
    if (!known) return;
    auto& [previous, later] = *known;
    const auto steps = later_steps(later);
    if (!steps.empty() && steps.back().value("what", "") == "delivery") {
      receipt.delivered_before = written_at(steps.back());
      return;
    }
    event = std::move(previous);
  }
}

}  // namespace

Result<std::vector<std::string>> Receipts::find(const std::string& project_id,
                                                const std::string& text, const std::string& key,
                                                std::size_t limit) const {
  return read(database_, [&](Connection& connection) -> Result<std::vector<std::string>> {
    for (const auto& id : event_ids(text)) {
      auto found = connection.values<std::string>(sql_of_receipt_event, id, project_id);
      if (!found.empty()) return found;
    }
    auto traced = events_of_trace(connection, project_id, text, limit);
    const auto number = key_number(key);
    if (!traced.empty() || !number) return traced;
    return connection.values<std::string>(sql_of_keyed_receipts, *number, project_id,
                                          static_cast<std::int64_t>(limit));
  });
}

Result<Receipt> Receipts::get(const std::string& input_id) const {
  return read_snapshot(database_, [&](Connection& connection) -> Result<Receipt> {
    Receipt receipt;
    receipt.input_id = input_id;
    std::int64_t session = 0;
    connection.rows(
        [&](std::int64_t of, model::Timestamp at, std::string trace_id, std::string previous,
            std::string body, const std::string& later) {
          session = of;
          receipt.trace_id = std::move(trace_id);
          receipt.previous = std::move(previous);
          receipt.rows.push_back({1, at, first_step(std::move(body))});
          for (auto& step : later_steps(later)) {
            const auto then = written_at(step);
            step.erase("w");
            receipt.rows.push_back({receipt.rows.back().n + 1, then, std::move(step)});
          }
        },
        sql_of_receipt_steps, input_id);
    auto owner = connection.row<model::SessionKey, std::optional<nlohmann::json>, std::int64_t,
                                std::int64_t>(sql_of_receipt_session, input_id, session);
    if (receipt.rows.empty() || !owner) return fail(Errc::not_found, "there is no such receipt");
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
  return read(database_, [&](Connection& connection) {
    std::vector<NewestRow> rows;
    connection.rows(
        [&](const std::string& id, std::string body, const std::string& later) {
          auto steps = later_steps(later);
          if (rows.size() + 1 + steps.size() > limit) return false;
          rows.push_back({id, first_step(std::move(body))});
          for (auto& step : steps) rows.push_back({id, std::move(step)});
          return true;
        },
        sql_of_newest_receipts, project_id, sessions, most_newest_characters);
    return rows;
  });
}

Result<std::int64_t> Receipts::prune(model::Timestamp before, std::size_t limit) {
  const auto first_kept = model::id_prefix(before);
  // Most rounds find no old row, and need no write.
  auto old = read_exists(database_, sql_of_an_old_receipt, first_kept, first_kept);
  if (!old) return fail(old.error());
  if (!*old) return 0;
  return write_counted(committer_, sql_to_delete_old_receipts, first_kept, first_kept,
                       static_cast<std::int64_t>(limit));
}

std::vector<std::string> chain_of(Connection& connection, std::int64_t session) {
  return connection.values<std::string>(sql_of_receipt_chain, session);
}

}  // namespace conversed::store
