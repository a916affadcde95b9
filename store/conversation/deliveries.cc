#include "store/conversation/deliveries.h"

#include <algorithm>
#include <limits>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/commit/receipt_blocks.h"
#include "store/commit/row_writes.h"
#include "store/conversation/due_sql.h"
#include "store/conversation/timers.h"
#include "store/model/ids.h"
#include "store/model/names.h"
#include "store/sql/read.h"

namespace conversed::store {

using std::chrono::milliseconds;
using Filter = Deliveries::Filter;
using Page = Deliveries::Page;
using Place = Deliveries::Place;

namespace {

constexpr model::Names<DeliveryState, 4> states{{{{DeliveryState::due, "due"},
                                                  {DeliveryState::waiting, "waiting"},
                                                  {DeliveryState::behind, "behind"},
                                                  {DeliveryState::paused, "paused"}}}};

constexpr std::string_view gone = "there is no such delivery; the output may be delivered";

// Sessions that one page reads. Further ones are on the next page.
constexpr std::size_t sessions_a_page = 500;
// Behind the last output, or the last session of a due time.
constexpr std::int64_t behind_all = std::numeric_limits<std::int64_t>::max() - 1;

// The first output of a session.
struct First {
  std::int64_t seq = 0;
  std::string output_id;
};

std::optional<First> first_of(Connection& connection, std::int64_t session) {
  return connection.first(
      row_of<&First::seq, &First::output_id>,
      "SELECT seq, output_id FROM deliveries WHERE session = :s ORDER BY seq LIMIT 1", session);
}

bool is_paused(Connection& connection, const std::string& endpoint_id) {
  return connection.exists(
      "SELECT 1 FROM endpoint_health WHERE endpoint_id = :e AND paused_since IS NOT NULL"
      " AND resumed_at IS NULL",
      endpoint_id);
}

struct Times {
  model::Timestamp now{};  // by the clock of timers
  milliseconds offset{0};  // of the clock of timers to the wall clock
};

DeliveryState state_of(bool is_first, bool paused, model::Timestamp due, const Times& times) {
  if (!is_first) return DeliveryState::behind;
  if (paused) return DeliveryState::paused;
  return due > times.now ? DeliveryState::waiting : DeliveryState::due;
}

std::optional<model::Timestamp> due_by_wall_clock(model::Timestamp due, const Times& times) {
  if (due == model::Timestamp{}) return std::nullopt;
  return due - times.offset;
}

// Collects one page.
class PageOfDeliveries {
 public:
  PageOfDeliveries(Connection& connection, const Filter& filter, Times times, std::size_t limit)
      : connection_(connection), filter_(filter), times_(times), limit_(limit) {}

  Page read(const Place& after) {
    if (filter_.session) {
      add_named_session(after);
      return std::move(page_);
    }
    auto endpoints = endpoints_from(after.endpoint_id);
    for (const auto& endpoint : endpoints) {
      const bool begun = endpoint == after.endpoint_id;
      if (!add_endpoint(endpoint, begun ? after : first_place(endpoint))) break;
    }
    return std::move(page_);
  }

 private:
  [[nodiscard]] bool wants_behind() const {
    return !filter_.state || *filter_.state == DeliveryState::behind;
  }
  [[nodiscard]] bool wants(DeliveryState state) const {
    return !filter_.state || *filter_.state == state;
  }

  // The Endpoints with pending outputs, by id.
  std::vector<std::string> endpoints_from(const std::string& id) {
    if (filter_.endpoint_id) return {*filter_.endpoint_id};
    return connection_.values<std::string>(sql_of_endpoints_with_deliveries,
                                           nlohmann::json(filter_.endpoints), id);
  }

  [[nodiscard]] Place first_place(const std::string& endpoint) const {
    if (filter_.state == DeliveryState::waiting) {
      return {endpoint, times_.now, behind_all, behind_all};
    }
    return {endpoint, model::Timestamp::min(), 0, 0};
  }

  // False: the page is full.
  bool add_endpoint(const std::string& endpoint, Place place) {
    paused_ = is_paused(connection_, endpoint);
    if (filter_.state == DeliveryState::paused && !paused_) return true;
    // Continues in the session at which the previous page ended: with its first output, or with the
    // outputs behind it. The place comes from a client, so the session may belong to another
    // Endpoint.
    if (place.session != 0 && place.seq != behind_all && (place.seq == 0 || wants_behind())) {
      const auto key = key_of(place.session);
      if (key.endpoint_id == endpoint && !add_session(place, key)) return false;
    }
    struct Session {
      std::int64_t row = 0;
      model::SessionKey key;
      model::Timestamp due{};
    };
    for (;;) {
      const std::size_t step = std::min(limit_, sessions_a_page - sessions_);
      const auto sessions = connection_.all(
          [](std::int64_t row, model::SessionKey key, model::Timestamp due, int /*attempts*/) {
            return Session{row, std::move(key), due};
          },
          sql_of_due_sessions, endpoint, place.due, place.session, step);
      for (const auto& session : sessions) {
        if (filter_.state == DeliveryState::due && session.due > times_.now) return true;
        place = {endpoint, session.due, session.row, 0};
        if (!add_session(place, session.key)) return false;
        if (++sessions_ == sessions_a_page) {
          place.seq = behind_all;
          page_.next = place;
          return false;
        }
      }
      if (sessions.size() < step) return true;
    }
  }

  void add_named_session(const Place& after) {
    const model::SessionKey& key = *filter_.session;
    const auto row = connection_.value<std::int64_t>("SELECT id FROM sessions WHERE key = :k", key);
    if (!row) return;
    paused_ = is_paused(connection_, key.endpoint_id);
    add_session({key.endpoint_id, {}, *row, after.seq}, key);
  }

  // Adds the outputs of the place's session behind the place. False: the page is full.
  bool add_session(Place place, const model::SessionKey& key) {
    // If the place is the session's begin, the first row is the session's first output.
    std::optional<First> first;
    if (place.seq != 0) {
      first = first_of(connection_, place.session);
      if (!first) return true;
    }
    // Reads two more rows than the page takes: the first output may be unwanted, and one further
    // row tells whether there is a next page.
    const auto most = wants_behind() ? limit_ - page_.rows.size() + 2 : 1;
    bool full = false;
    connection_.rows(
        [&](std::int64_t seq, std::string output, model::Timestamp due, int attempts,
            model::Timestamp created, std::string trace) {
          if (filter_.created_before && created >= *filter_.created_before) return false;
          if (!first) first = First{seq, output};
          const auto state = state_of(seq == first->seq, paused_, due, times_);
          if (!wants(state) || (filter_.created_from && created < *filter_.created_from)) {
            return true;
          }
          full = page_.rows.size() == limit_;
          if (full) return false;
          page_.rows.push_back({.output_id = std::move(output),
                                .key = key,
                                .seq = seq,
                                .state = state,
                                .first_output_id = first->output_id,
                                .attempts = attempts,
                                .created_at = created,
                                .due_at = due_by_wall_clock(due, times_),
                                .trace_id = std::move(trace)});
          place.seq = seq;
          return true;
        },
        sql_of_session_deliveries, place.session, place.seq, most);
    if (full) page_.next = place;
    return !full;
  }

  model::SessionKey key_of(std::int64_t session) {
    return connection_.value<model::SessionKey>("SELECT key FROM sessions WHERE id = :i", session)
        .value_or(model::SessionKey());
  }

  Connection& connection_;
  const Filter& filter_;
  const Times times_;
  const std::size_t limit_;
  Page page_;
  bool paused_ = false;  // the Endpoint that is added
  std::size_t sessions_ = 0;
};

bool fits(const Filter& filter, const PendingDelivery& delivery) {
  const auto& key = delivery.key;
  return key.project_id == filter.project_id &&
         (!filter.endpoint_id || key.endpoint_id == *filter.endpoint_id) &&
         (!filter.session || key == *filter.session) &&
         (!filter.state || delivery.state == *filter.state) &&
         (!filter.created_from || delivery.created_at >= *filter.created_from) &&
         (!filter.created_before || delivery.created_at < *filter.created_before);
}

// A delivery that is retried or dropped.
struct Named {
  std::int64_t session = 0;
  model::SessionKey key;
  std::int64_t seq = 0;
  std::string input_id;
  std::string trace_id;
  int attempts = 0;
};

// The ids of an input's outputs begin with the input's.
struct IdRange {
  std::string from;
  std::string to;
};
IdRange output_ids_of(const std::string& input_id) {
  return {input_id + '-', input_id + '.'};
}

// A session that may have pending outputs of the input with ids in this range.
std::optional<std::int64_t> session_of(Connection& connection, const std::string& input_id,
                                       const IdRange& outputs) {
  if (const auto receipt = find_receipt(connection, input_id)) return receipt->session;
  return connection.value<std::int64_t>(sql_of_pending_session, outputs.from, outputs.to);
}

std::optional<std::int64_t> session_of_output(Connection& connection,
                                              const std::string& output_id) {
  const auto end = output_id.rfind('-');
  // Only the id of an output has nothing but digits behind its last hyphen.
  const bool is_numbered = end != std::string::npos && end + 1 < output_id.size() &&
                           output_id.find_first_not_of("0123456789", end + 1) == std::string::npos;
  if (!is_numbered) return std::nullopt;
  return session_of(connection, output_id.substr(0, end), {output_id, output_id + '!'});
}

std::optional<Named> find(Connection& connection, const PendingDelivery& delivery) {
  return connection.first(
      row_of<&Named::session, &Named::key, &Named::seq, &Named::input_id, &Named::trace_id,
             &Named::attempts>,
      "SELECT d.session, s.key, d.seq, o.input_id, o.trace_id, d.attempts"
      " FROM sessions s CROSS JOIN deliveries d CROSS JOIN outputs o WHERE s.key = :k"
      " AND d.session = s.id AND d.seq = :q AND d.output_id = :o AND o.session = d.session"
      " AND o.seq = d.seq",
      delivery.key, delivery.seq, delivery.output_id);
}

void bury(Writer& writer, const Named& named, const std::string& output_id,
          const std::string& reason, const std::string& by) {
  Connection& connection = writer.connection();
  // Only the first output's wait ends with it, and only it was tried.
  const auto first = first_of(connection, named.session);
  const bool is_first = first && first->seq == named.seq;
  const NewDeadLetter letter{.id = model::new_id(),
                             .event = {.event_id = named.input_id,
                                       .type = "output",
                                       .trace_id = named.trace_id,
                                       .value = ""},
                             .reason = reason,
                             .attempts = is_first ? named.attempts : 0};
  const auto key = named.key.encode();
  insert_dead_letter(connection, letter, named.key.project_id, key, named.seq, writer.now());
  connection.run("UPDATE dead_letters SET state = 'discarded' WHERE id = :i", letter.id);
  mark_delivered(connection, key, output_id, named.seq, letter.attempts);
  add_to_receipt(connection,
                 {.input_id = named.input_id,
                  .seq = named.seq,
                  .done = "dropped",
                  .by = by,
                  .dead_letter = letter.id},
                 writer.now());
}

Result<void> retry_now(Writer& writer, const std::optional<Named>& named) {
  if (!named) return fail(Errc::not_found, std::string(gone));
  writer.connection().run("UPDATE deliveries SET due_at = :n WHERE session = :s AND due_at > :m",
                          writer.timer_now(), named->session, writer.timer_now());
  announce(writer.connection(), retry_topic, named->key.encode());
  return {};
}

Result<void> drop_now(Writer& writer, const std::optional<Named>& named,
                      const std::string& output_id, const std::string& by) {
  if (!named) return fail(Errc::not_found, std::string(gone));
  bury(writer, *named, output_id, "dropped by an operator: see the audit trail", by);
  announce(writer.connection(), deliver_topic, named->key.encode());
  return {};
}

}  // namespace

std::string_view to_string(DeliveryState state) {
  return states.name_of(state);
}

std::optional<DeliveryState> delivery_state_from(std::string_view text) {
  return states.value_of(text);
}

std::vector<std::string_view> delivery_states() {
  std::vector<std::string_view> names;
  for (const auto& [state, name] : states.all) names.push_back(name);
  return names;
}

Result<Page> Deliveries::list(const Filter& filter, const Place& after, std::size_t limit,
                              model::Timestamp now) const {
  return read(database_, [&](Connection& connection) {
    const Times times{now, timer_offset(connection)};
    return PageOfDeliveries(connection, filter, times, limit).read(after);
  });
}

Result<PendingDelivery> Deliveries::get(const std::string& output_id, model::Timestamp now) const {
  return read(database_, [&](Connection& connection) -> Result<PendingDelivery> {
    const Times times{now, timer_offset(connection)};
    const auto owner = session_of_output(connection, output_id);
    if (!owner) return fail(Errc::not_found, std::string(gone));
    auto found = connection.first(
        [&](std::int64_t session, model::SessionKey key, std::int64_t seq, model::Timestamp due,
            int attempts, model::Timestamp created, std::string trace) {
          PendingDelivery delivery{.output_id = output_id,
                                   .key = std::move(key),
                                   .seq = seq,
                                   .attempts = attempts,
                                   .created_at = created,
                                   .due_at = due_by_wall_clock(due, times),
                                   .trace_id = std::move(trace)};
          return std::pair(session, std::pair(due, std::move(delivery)));
        },
        sql_of_delivery, *owner, output_id);
    if (!found) return fail(Errc::not_found, std::string(gone));
    auto& [due, delivery] = found->second;
    const auto first = first_of(connection, found->first).value_or(First{delivery.seq, output_id});
    const bool paused = is_paused(connection, delivery.key.endpoint_id);
    delivery.state = state_of(first.seq == delivery.seq, paused, due, times);
    delivery.first_output_id = first.output_id;
    return std::move(delivery);
  });
}

Result<std::optional<std::string>> Deliveries::of_input(const std::string& input_id) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<std::string>> {
    const auto outputs = output_ids_of(input_id);
    const auto session = session_of(connection, input_id, outputs);
    if (!session) return std::nullopt;
    return connection.value<std::string>(sql_of_input_delivery, *session, outputs.from, outputs.to);
  });
}

Result<Deliveries::Walked> Deliveries::walk(const Filter& filter, const Step& after,
                                            std::int64_t until, std::size_t examined,
                                            model::Timestamp now) const {
  return read(database_, [&](Connection& connection) {
    const Times times{now, timer_offset(connection)};
    const auto end = connection.number(sql_of_last_session, filter.project_id, after.session, until,
                                       sessions_a_page);
    struct Session {
      std::int64_t row = 0;
      model::SessionKey key;
    };
    // Reads one more session: the walk may be behind the outputs of the first one.
    const auto sessions =
        connection.all(row_of<&Session::row, &Session::key>, sql_of_sessions_with_deliveries,
                       filter.project_id, after.session, end, examined + 1);
    Walked walked;
    std::size_t examined_left = examined;
    for (const Session& session : sessions) {
      const auto first = first_of(connection, session.row);
      if (!first) continue;
      const bool paused = is_paused(connection, session.key.endpoint_id);
      Step at = session.row == after.session ? after : Step{session.row, 0};
      connection.rows(
          [&](std::int64_t seq, std::string output, model::Timestamp due, int attempts,
              model::Timestamp created, std::string trace) {
            PendingDelivery delivery{.output_id = std::move(output),
                                     .key = session.key,
                                     .seq = seq,
                                     .state = state_of(seq == first->seq, paused, due, times),
                                     .first_output_id = first->output_id,
                                     .attempts = attempts,
                                     .created_at = created,
                                     .due_at = due_by_wall_clock(due, times),
                                     .trace_id = std::move(trace)};
            if (fits(filter, delivery)) walked.rows.push_back(std::move(delivery));
            at.seq = seq;
            --examined_left;
            return true;
          },
          sql_of_session_deliveries, session.row, at.seq, examined_left);
      if (examined_left == 0) {
        walked.next = at;
        return walked;
      }
    }
    if (sessions.size() > examined) {
      walked.next = {sessions.back().row, behind_all};
    } else if (end > after.session) {
      walked.next = {end, behind_all};
    }
    return walked;
  });
}

Result<Deliveries::Sessions> Deliveries::sessions(const Filter& filter) const {
  return read(database_, [&](Connection& connection) {
    if (filter.session) {
      const auto row = connection.number("SELECT id FROM sessions WHERE key = :k", *filter.session);
      return Sessions{row, row};
    }
    return Sessions{connection.number("SELECT MIN(id) FROM sessions WHERE project_id = :p"
                                      " AND id >= (SELECT MIN(session) FROM deliveries)",
                                      filter.project_id),
                    connection.number("SELECT MAX(id) FROM sessions WHERE project_id = :p"
                                      " AND id <= (SELECT MAX(session) FROM deliveries)",
                                      filter.project_id)};
  });
}

Result<void> Deliveries::retry(Writer& writer, const PendingDelivery& delivery) {
  if (auto here = writer.check_place(delivery.key.encode()); !here) return here;
  return retry_now(writer, find(writer.connection(), delivery));
}

Result<void> Deliveries::retry(const PendingDelivery& delivery) {
  return committer_.write_and_wait([&](Writer& writer) { return retry(writer, delivery); });
}

Result<void> Deliveries::drop(Writer& writer, const PendingDelivery& delivery,
                              const std::string& by) {
  if (auto here = writer.check_place(delivery.key.encode()); !here) return here;
  return drop_now(writer, find(writer.connection(), delivery), delivery.output_id, by);
}

Result<void> Deliveries::drop(const PendingDelivery& delivery, const std::string& by) {
  return committer_.write_and_wait([&](Writer& writer) { return drop(writer, delivery, by); });
}

}  // namespace conversed::store
