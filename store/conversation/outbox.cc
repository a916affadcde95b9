#include "store/conversation/outbox.h"

#include <algorithm>
#include <charconv>
#include <system_error>
#include <utility>

#include "store/commit/row_numbers.h"
#include "store/commit/row_writes.h"
#include "store/conversation/due_sql.h"
#include "store/model/ids.h"
#include "store/model/receipt_text.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::Output;

namespace {

// Of an event's outputs, so many may have their deliveries in blocks: each delivery that joins a
// block rewrites it.
constexpr int most_plain = 20;

bool may_be_plain(const Output& output) {
  if (!model::is_id(output.input_id)) return false;
  // An output's id is its event's, a hyphen, and the output's number.
  const auto number = output.id.substr(std::min(output.id.size(), output.input_id.size() + 1));
  int value = 0;
  const auto read = std::from_chars(number.data(), number.data() + number.size(), value);
  return read.ec == std::errc() && value <= most_plain;
}

ReceiptMark mark_of(PlainDelivery&& delivery) {
  model::ReceiptText step;
  step.add("what", "delivery");
  step.add("seq", delivery.seq);
  step.add("try", 1);
  step.add("us", delivery.took.count());
  step.add("status", delivery.status);
  return {std::move(delivery.input_id), std::move(step).finished(), delivery.at};
}

constexpr std::string_view output_columns_of_session =
    "SELECT output_id, seq, input_id, text, COALESCE(data, 'null'), trace_id, tracestate, source,"
    " created_at, 0 FROM outputs WHERE session = (SELECT id FROM sessions WHERE key = :k)"
    " AND seq > :a ORDER BY seq LIMIT :l";
constexpr std::string_view output_columns_of_input =
    "SELECT output_id, seq, input_id, text, COALESCE(data, 'null'), trace_id, tracestate, source,"
    " created_at, 0 FROM outputs WHERE session = (SELECT id FROM sessions WHERE key = :k)"
    " AND input_id = :i ORDER BY seq";
// CROSS JOIN makes SQLite begin with `deliveries`. Else it reads all outputs of the session.
constexpr std::string_view output_columns_of_deliveries =
    "SELECT o.output_id, o.seq, o.input_id, o.text, COALESCE(o.data, 'null'), o.trace_id,"
    " o.tracestate, o.source, o.created_at + o.timers_ahead, d.withdrawable"
    " FROM deliveries d CROSS JOIN outputs o"
    " WHERE d.session = :s AND o.session = d.session AND o.seq = d.seq ORDER BY d.seq LIMIT :l";

constexpr auto output_row = row_of<&Output::id, &Output::seq, &Output::input_id, &Output::text,
                                   &Output::data, &Output::trace_id, &Output::tracestate,
                                   &Output::source, &Output::created_at, &Output::withdrawable>;

// How many sessions one statement reads.
constexpr std::size_t sessions_at_once = 32;

template <typename... Column>
Asked<Column...> ask_outputs(detail::Columns<Column...> /*types*/, Connection& connection,
                             std::int64_t session, std::size_t limit) {
  return connection.ask<Column...>(output_columns_of_deliveries, session, limit);
}

// Reads the outputs of the wanted sessions.
void read_outputs(Connection& connection, std::vector<DueDelivery>& sessions, std::size_t limit,
                  const Outbox::Wanted& wanted) {
  const auto ask = [&](std::int64_t session) {
    return ask_outputs(detail::ColumnsOf<decltype(output_row)>::Type(), connection, session, limit);
  };
  std::size_t bytes = 0;
  for (auto next = sessions.begin(); next != sessions.end();) {
    std::vector<std::pair<DueDelivery*, decltype(ask(0))>> asked;
    for (; next != sessions.end() && asked.size() < sessions_at_once; ++next) {
      if (!wanted || wanted(next->key, bytes)) asked.emplace_back(&*next, ask(next->session));
    }
    for (auto& [due, outputs] : asked) {
      try {
        due->outputs = outputs.take_all(output_row);
        std::ranges::sort(due->outputs, {}, &Output::seq);
      } catch (const DamagedData&) {
        due->damaged = true;
      }
      for (const auto& output : due->outputs) bytes += model::size_of(output);
    }
  }
}

}  // namespace

std::vector<Output> outputs_of_input(Connection& connection, const model::SessionKey& key,
                                     const std::string& input_id) {
  return connection.all(output_row, output_columns_of_input, key, input_id);
}

Result<std::vector<Output>> Outbox::outputs(const model::SessionKey& key, std::int64_t after_seq,
                                            std::size_t limit) const {
  return read_all(database_, output_row, output_columns_of_session, key, after_seq, limit);
}

Result<std::int64_t> Outbox::last_seq(const model::SessionKey& key) const {
  return read_number(database_, "SELECT last_output_seq FROM sessions WHERE key = :k", key);
}

Result<std::vector<Output>> Outbox::outputs_of_input(const model::SessionKey& key,
                                                     const std::string& input_id) const {
  return read_all(database_, output_row, output_columns_of_input, key, input_id);
}

Result<Outbox::Page> Outbox::due(const std::string& endpoint_id, model::Timestamp now,
                                 std::size_t sessions, std::size_t outputs_each,
                                 const DueDelivery* after, const Wanted& wanted) const {
  const auto work = [&](Connection& connection) -> Result<Page> {
    Page page;
    connection.rows(
        [&](std::int64_t row, model::SessionKey key, model::Timestamp due_at, int attempts) {
          if (page.next) return;
          if (due_at > now) {
            page.next = due_at;
            return;
          }
          page.sessions.push_back(
              {.key = std::move(key), .due_at = due_at, .attempts = attempts, .session = row});
        },
        sql_of_due_sessions, endpoint_id,
        after == nullptr ? model::Timestamp::min() : after->due_at,
        after == nullptr ? 0 : after->session, sessions);
    read_outputs(connection, page.sessions, outputs_each, wanted);
    return page;
  };
  return read_together(database_, work);
}

Result<std::optional<DueDelivery>> Outbox::pending_of(const model::SessionKey& key,
                                                      std::size_t outputs_each) const {
  const auto work = [&](Connection& connection) -> Result<std::optional<DueDelivery>> {
    auto found = connection.first(
        [&](std::int64_t row, model::Timestamp due_at, int attempts) {
          return DueDelivery{.key = key, .due_at = due_at, .attempts = attempts, .session = row};
        },
        "SELECT d.session, d.due_at, d.attempts FROM deliveries d"
        " WHERE d.session = (SELECT id FROM sessions WHERE key = :k) ORDER BY d.seq LIMIT 1",
        key);
    if (!found) return std::nullopt;
    try {
      found->outputs =
          connection.all(output_row, output_columns_of_deliveries, found->session, outputs_each);
    } catch (const DamagedData&) {
      found->damaged = true;
    }
    return found;
  };
  return read_together(database_, work);
}

// Takes one step in the index per Endpoint, independent of the number of its sessions.
Result<std::vector<DueEndpoint>> Outbox::endpoints(const std::string& after,
                                                   std::size_t limit) const {
  return read(database_, [&](Connection& connection) -> Result<std::vector<DueEndpoint>> {
    std::vector<DueEndpoint> found;
    while (found.size() < limit) {
      auto row = connection.row<std::string, model::Timestamp, model::SessionKey>(
          "SELECT d.endpoint_id, d.due_at, s.key FROM deliveries d"
          " JOIN sessions s ON s.id = d.session WHERE d.endpoint_id > :e"
          " ORDER BY d.endpoint_id, d.due_at, d.session LIMIT 1",
          found.empty() ? after : found.back().endpoint_id);
      if (!row) break;
      auto& [endpoint, due_at, key] = *row;
      found.push_back({.endpoint_id = std::move(endpoint),
                       .project_id = std::move(key.project_id),
                       .due_at = due_at});
    }
    return found;
  });
}

Result<void> Outbox::bring_forward(model::Timestamp latest, model::Timestamp now) {
  return committer_.write_and_wait([&](Writer& writer) {
    writer.connection().run("UPDATE deliveries SET due_at = :n WHERE due_at > :l", now, latest);
  });
}

void Outbox::begin_delivery(const model::SessionKey& key, const Output& output,
                            Committer::WriteDone done) {
  committer_.write(
      [key = key.encode(), id = output.id, seq = output.seq](Writer& writer) -> Result<void> {
        if (auto here = writer.check_place(key); !here) return here;
        return change_one(writer.connection(), "the output was withdrawn",
                          "UPDATE deliveries SET withdrawable = 0 WHERE seq = :q"
                          " AND output_id = :o"
                          " AND session = (SELECT id FROM sessions WHERE key = :k)",
                          seq, id, key);
      },
      std::move(done));
}

void Outbox::delivered(const model::SessionKey& key, const Output& output, int attempts,
                       std::function<void()> marked, Step step) {
  std::optional<PlainDelivery> plain;
  std::optional<ReceiptMark> other;
  if (auto* mark = std::get_if<ReceiptMark>(&step)) {
    other = std::move(*mark);
  } else if (auto* delivery = std::get_if<PlainDelivery>(&step)) {
    if (may_be_plain(output)) {
      plain = std::move(*delivery);
    } else {
      other = mark_of(std::move(*delivery));
    }
  }
  auto write = [key = key.encode(), id = output.id, seq = output.seq, attempts,
                other = std::move(other)](Connection& connection) {
    mark_delivered(connection, key, id, seq, attempts);
    add_to_receipt(connection, other);
  };
  committer_.mark(std::move(write), std::move(marked), std::move(plain));
}

void Outbox::reschedule(const model::SessionKey& key, const Output& output, model::Timestamp due_at,
                        int attempts, std::function<void()> marked,
                        std::optional<ReceiptMark> row) {
  auto write = [key = key.encode(), id = output.id, seq = output.seq, due_at, attempts,
                row = std::move(row)](Connection& connection) {
    join_to_receipt(connection, row);
    connection.run(
        "UPDATE deliveries SET due_at = :d, attempts = :a WHERE session ="
        " (SELECT p.session FROM deliveries p WHERE p.session ="
        " (SELECT id FROM sessions WHERE key = :k) AND p.seq = :q AND p.output_id = :o)",
        due_at, attempts, key, seq, id);
  };
  committer_.mark(std::move(write), std::move(marked));
}

void Outbox::give_up(const model::SessionKey& key, const Output& output, const std::string& reason,
                     bool failed_now, Committer::WriteDone done, std::optional<ReceiptMark> row) {
  auto letter_id = model::new_id();
  if (row) {
    model::ReceiptText more;
    more.add("deadLetter", letter_id);
    row->body += std::move(more).finished();
  }
  auto work = [id = std::move(letter_id), key, seq = output.seq, output_id = output.id, reason,
               failed_now, mark = std::move(row)](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    const auto encoded = key.encode();
    if (auto here = writer.check_place(encoded); !here) return here;
    const auto pending = connection.row<std::string, std::string, int>(
        "SELECT o.input_id, o.trace_id, d.attempts FROM outputs o JOIN deliveries d"
        " ON d.session = o.session AND d.seq = o.seq"
        " WHERE d.session = (SELECT id FROM sessions WHERE key = :k) AND d.seq = :q"
        " AND d.output_id = :o",
        encoded, seq, output_id);
    if (!pending) return fail(Errc::not_found, "this output is not pending");
    const NewDeadLetter letter{.id = id,
                               .event = {.event_id = std::get<0>(*pending),
                                         .type = "output",
                                         .trace_id = std::get<1>(*pending),
                                         .value = ""},
                               .reason = reason,
                               .attempts = std::get<2>(*pending) + (failed_now ? 1 : 0)};
    insert_dead_letter(connection, letter, key.project_id, encoded, seq, writer.now());
    mark_delivered(connection, encoded, output_id, seq, std::get<2>(*pending));
    add_to_receipt(connection, mark);
    return {};
  };
  committer_.write(std::move(work), std::move(done), Committer::Patience::none);
}

// The rows that one shard has numbered are in the order of time, unless a clock was set back. After
// a page without an old row come the rows of the next shard; most stores have none.
Result<Outbox::Pruned> Outbox::prune(model::Timestamp before, std::int64_t after_row,
                                     std::size_t limit) {
  struct Looked {
    std::int64_t last = 0;
    bool found = false;
    bool has_more = false;  // behind the rows of the shard that numbered the last one
  };
  // Many outputs may wait for a dead webhook. A reader's connection passes over them, so the writer
  // loses no time.
  auto looked = read(database_, [&](Connection& connection) -> Result<Looked> {
    Looked page;
    connection.rows(
        [&](std::int64_t id, model::Timestamp created) {
          page.last = id;
          page.found = page.found || created < before;
        },
        "SELECT id, created_at FROM outputs WHERE id > :a ORDER BY id LIMIT :l", after_row, limit);
    if (page.found || page.last == 0) return page;
    page.last = last_number(page.last);
    page.has_more = connection.exists("SELECT 1 FROM outputs WHERE id > :l LIMIT 1", page.last);
    return page;
  });
  if (!looked) return fail(looked.error());
  if (!looked->found && !looked->has_more) return Pruned{};
  if (!looked->found) return Pruned{.removed = 0, .last_row = looked->last};
  return committer_.write_and_wait([&](Writer& writer) -> Result<Pruned> {
    Pruned pruned{.removed = 0, .last_row = looked->last};
    pruned.removed = writer.connection().run_counted(
        "DELETE FROM outputs WHERE id > :a AND id <= :z AND created_at < :b"
        " AND NOT EXISTS (SELECT 1 FROM deliveries d WHERE d.session = outputs.session"
        " AND d.seq = outputs.seq)",
        after_row, looked->last, before);
    return pruned;
  });
}

}  // namespace conversed::store
