#include "store/conversation/dead_letters.h"

#include <algorithm>
#include <array>
#include <limits>
#include <utility>

#include "store/model/trace.h"

#include "store/cluster/notifications.h"
#include "store/commit/row_numbers.h"
#include "store/commit/row_writes.h"
#include "store/conversation/due_sql.h"
#include "store/model/names.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr model::Names<DeadLetterState, 3> letter_states{{{
    {DeadLetterState::fresh, "new"},
    {DeadLetterState::replayed, "replayed"},
    {DeadLetterState::discarded, "discarded"},
}}};

// The number of dead letters that are read for one event.
constexpr std::size_t most_letters = 100;

DeadLetterState state_from(std::string_view text) {
  const auto state = letter_states.value_of(text);
  if (!state) throw DamagedData("a dead letter has an unknown state");
  return *state;
}

DeadLetter letter_from(std::string id, std::int64_t row, model::SessionKey key, std::string event,
                       std::string type, std::string trace, std::string value,
                       std::optional<std::int64_t> seq, int attempts, std::string reason,
                       std::string flow, std::int64_t version, std::string node,
                       const std::string& state, model::Timestamp created) {
  return {.id = std::move(id),
          .row = row,
          .key = std::move(key),
          .event = {std::move(event), std::move(type), std::move(trace), std::move(value)},
          .output_seq = seq,
          .attempts = attempts,
          .reason = std::move(reason),
          .flow = std::move(flow),
          .flow_version = version,
          .node = std::move(node),
          .state = state_from(state),
          .created_at = created};
}

// The columns of `letter_from`.
constexpr const char* select_letters =
    "SELECT id, n, key, event_id, type, trace_id, value, output_seq, attempts, reason, flow,"
    " flow_version, node, state, created_at FROM ";

const std::string sql_of_letter = std::string(select_letters) + "dead_letters WHERE id = :i";

Result<DeadLetter> find_letter(Connection& connection, const std::string& project_id,
                               const std::string& id) {
  static const std::string sql = sql_of_letter + " AND project_id = :p";
  auto letter = connection.first(letter_from, sql, id, project_id);
  if (!letter) return fail(Errc::not_found, "there is no such dead letter");
  return *std::move(letter);
}

// Changes the state of a new dead letter. A state changes only once.
Result<DeadLetter> settle(Writer& writer, const std::string& project_id, const std::string& id,
                          DeadLetterState state) {
  auto letter = find_letter(writer.connection(), project_id, id);
  if (!letter) return letter;
  if (auto here = writer.check_place(letter->key.encode()); !here) return fail(here.error());
  if (letter->state != DeadLetterState::fresh) {
    return fail(Errc::conflict,
                "the dead letter is " + std::string(to_string(letter->state)) + " already");
  }
  writer.connection().run("UPDATE dead_letters SET state = :s WHERE id = :i", to_string(state), id);
  return letter;
}

// An output's dead letter has the id of the output's input.
void note_in_receipt(Writer& writer, const DeadLetter& letter, std::string_view done,
                     const std::string& by) {
  if (!letter.output_seq) return;
  add_to_receipt(writer.connection(),
                 {.input_id = letter.event.event_id,
                  .seq = *letter.output_seq,
                  .done = done,
                  .by = by,
                  .dead_letter = letter.id},
                 writer.now());
}

// The condition whose parameters `with_filter` binds.
constexpr const char* filter_condition =
    "(:w = '' OR state = :x) AND (:r = '' OR reason = :y) AND (:f = '' OR flow = :g)"
    " AND (:v = 0 OR flow_version = :z) AND (:d = '' OR node = :b) AND (:k = '' OR key = :h)"
    " AND (:i = '' OR key LIKE :j) AND created_at >= :c AND created_at < :u";

// A pattern of LIKE for the keys with this Endpoint, which is their third part. Empty: for all
// keys.
std::string pattern_of_endpoint(const std::string& endpoint_id) {
  if (endpoint_id.empty()) return {};
  constexpr char separator = model::SessionKey::separator;
  return std::string("%") + separator + '%' + separator + endpoint_id + separator + '%';
}

// Calls `use` with the filter's values.
template <typename Use>
auto with_filter(const DeadLetters::Filter& filter, const Use& use) {
  const std::string state(filter.state ? to_string(*filter.state) : "");
  const auto key = filter.session ? filter.session->encode() : std::string();
  const auto of_endpoint = pattern_of_endpoint(filter.endpoint_id);
  return use(state, state, filter.reason, filter.reason, filter.flow, filter.flow,
             filter.flow_version, filter.flow_version, filter.node, filter.node, key, key,
             of_endpoint, of_endpoint, filter.created_from.value_or(model::Timestamp::min()),
             filter.created_before.value_or(model::Timestamp::max()));
}

}  // namespace

std::string_view to_string(DeadLetterState state) {
  return letter_states.name_of(state);
}

bool DeadLetter::can_be_replayed() const {
  using model::EventType;
  if (output_seq) return true;
  return std::ranges::none_of(
      std::array{EventType::call_result, EventType::timer, EventType::time_out},
      [&](EventType waited_for) { return model::to_string(waited_for) == event.type; });
}

Result<model::Event> event_to_replay(const DeadLetter& letter, model::Timestamp now) {
  using model::EventType;
  if (letter.state != DeadLetterState::fresh) {
    return fail(Errc::conflict, "the dead letter was replayed or discarded before");
  }
  const auto& [id, type, trace, value] = letter.event;
  auto event = model::decode_event(letter.key.encode(), id, type, trace, value);
  if (letter.output_seq || !event) {
    return fail(Errc::conflict, "the event can't be read; it can only be discarded");
  }
  if (!letter.can_be_replayed()) {
    return fail(Errc::conflict,
                "nothing waits for the event (" + type + ") any more, so it can only be discarded");
  }
  event->answer_until.reset();  // no client waits, so its outputs go to the webhook
  event->accepted_at = now;
  event->id = model::new_event_id(now, model::is_sampled(event->id));
  event->claim = model::Claim{model::Claim::Kind::dead_letter, letter.id};
  return event;
}

Result<DeadLetters::Page> DeadLetters::list(const Filter& filter, std::int64_t after_row,
                                            std::size_t limit) const {
  static const std::string sql = std::string(select_letters) +
                                 "dead_letters WHERE project_id = :p AND n > :a AND n <= :e AND " +
                                 filter_condition + " ORDER BY n LIMIT :l";
  return read(database_, [&](Connection& connection) {
    const auto examined = connection.number(
        "SELECT MAX(n) FROM (SELECT n FROM dead_letters WHERE project_id = :p AND n > :a"
        " ORDER BY n LIMIT :l) AS part",
        filter.project_id, after_row, most_examined);
    Page page;
    page.rows = with_filter(filter, [&](const auto&... values) {
      return connection.all(letter_from, sql, filter.project_id, after_row, examined, values...,
                            limit);
    });
    if (page.rows.size() == limit) {
      page.next = page.rows.back().row;
    } else if (examined != 0 &&
               connection.number("SELECT MAX(n) FROM dead_letters WHERE project_id = :p",
                                 filter.project_id) > examined) {
      page.next = examined;
    }
    return page;
  });
}

Result<DeadLetters::Window> DeadLetters::window(const Filter& filter, std::int64_t after_row,
                                                std::int64_t until_row,
                                                std::size_t examined) const {
  static const std::string sql = std::string(select_letters) +
                                 "dead_letters WHERE project_id = :p AND n > :a AND n <= :l AND " +
                                 filter_condition + " ORDER BY n";
  return read(database_, [&](Connection& connection) {
    Window window;
    window.last = connection.number(
        "SELECT MAX(n) FROM (SELECT n FROM dead_letters WHERE project_id = :p AND n > :a"
        " AND n <= :u ORDER BY n LIMIT :l) AS part",
        filter.project_id, after_row, until_row, examined);
    if (window.last == 0) return window;
    window.letters = with_filter(filter, [&](const auto&... values) {
      return connection.all(letter_from, sql, filter.project_id, after_row, window.last, values...);
    });
    return window;
  });
}

Result<DeadLetters::Span> DeadLetters::span(const std::string& project_id) const {
  return read(database_, [&](Connection& connection) {
    return Span{.first = connection.number("SELECT MIN(n) FROM dead_letters WHERE project_id = :p",
                                           project_id),
                .last = connection.number("SELECT MAX(n) FROM dead_letters WHERE project_id = :p",
                                          project_id)};
  });
}

Result<std::vector<DeadLetters::Group>> DeadLetters::groups(const std::string& project_id,
                                                            DeadLetterState state,
                                                            std::size_t examined,
                                                            std::size_t limit) const {
  return read_all(database_,
                  row_of<&Group::reason, &Group::flow, &Group::flow_version, &Group::node,
                         &Group::of_outputs, &Group::count, &Group::first, &Group::last>,
                  "SELECT reason, flow, flow_version, node, of_outputs, COUNT(*), MIN(created_at),"
                  " MAX(created_at) FROM (SELECT reason, flow, flow_version, node,"
                  " CASE WHEN output_seq IS NULL THEN 0 ELSE 1 END AS of_outputs, state, created_at"
                  " FROM dead_letters WHERE project_id = :p ORDER BY n DESC LIMIT :e) AS newest"
                  " WHERE state = :s GROUP BY reason, flow, flow_version, node, of_outputs"
                  " ORDER BY 6 DESC, reason, flow, flow_version, node LIMIT :l",
                  project_id, examined, to_string(state), limit);
}

Result<DeadLetter> DeadLetters::get(const std::string& project_id, const std::string& id) const {
  return read(database_,
              [&](Connection& connection) { return find_letter(connection, project_id, id); });
}

Result<std::optional<DeadLetter>> DeadLetters::of(const std::string& id) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<DeadLetter>> {
    auto letter = connection.first(letter_from, sql_of_letter, id);
    if (letter) return letter;
    for (auto& each :
         connection.all(letter_from, sql_of_dead_letters_of_event, id, id, most_letters)) {
      if (!each.output_seq) return std::move(each);
    }
    // An output.
    const auto input = id.substr(0, id.rfind('-'));
    for (auto& each :
         connection.all(letter_from, sql_of_dead_letters_of_event, input, input, most_letters)) {
      if (!each.output_seq) continue;
      const auto output = connection.value<std::string>(
          "SELECT output_id FROM outputs WHERE session = (SELECT id FROM sessions WHERE key = :k)"
          " AND seq = :q",
          each.key, *each.output_seq);
      if (output == id) return std::move(each);
    }
    return std::nullopt;
  });
}

Result<void> DeadLetters::discard(Writer& writer, const std::string& project_id,
                                  const std::string& id, const std::string& by) {
  auto letter = settle(writer, project_id, id, DeadLetterState::discarded);
  if (!letter) return fail(letter.error());
  note_in_receipt(writer, *letter, "discarded", by);
  return {};
}

Result<void> DeadLetters::discard(const std::string& project_id, const std::string& id,
                                  const std::string& by) {
  return committer_.write_and_wait(
      [&](Writer& writer) { return discard(writer, project_id, id, by); });
}

Result<void> DeadLetters::replay_output(Writer& writer, const std::string& project_id,
                                        const std::string& id, const std::string& by) {
  Connection& connection = writer.connection();
  auto letter = find_letter(connection, project_id, id);
  if (!letter) return fail(letter.error());
  if (auto here = writer.check_place(letter->key.encode()); !here) return here;
  if (!letter->output_seq) {
    return fail(Errc::invalid_argument, "an event is replayed through the log");
  }
  if (connection.exists("SELECT 1 FROM removed_endpoints WHERE id = :i", letter->key.endpoint_id)) {
    return fail(Errc::conflict, "its Endpoint was deleted; discard the dead letter");
  }
  const auto session =
      connection.value<std::int64_t>("SELECT id FROM sessions WHERE key = :k", letter->key);
  const auto output = session ? connection.value<std::string>(
                                    "SELECT output_id FROM outputs WHERE session = :s AND seq = :q",
                                    *session, *letter->output_seq)
                              : std::nullopt;
  if (!output) return fail(Errc::not_found, "the output is no longer kept");
  if (auto settled = settle(writer, project_id, id, DeadLetterState::replayed); !settled) {
    return fail(settled.error());
  }
  insert_delivery(connection, *session, letter->key.endpoint_id, *letter->output_seq, *output,
                  false);
  note_in_receipt(writer, *letter, "replayed", by);
  announce(connection, deliver_topic, letter->key.encode());
  return {};
}

Result<void> DeadLetters::replay_output(const std::string& project_id, const std::string& id,
                                        const std::function<void()>& committed,
                                        const std::string& by) {
  return committer_.write_and_wait([&](Writer& writer) {
    auto done = replay_output(writer, project_id, id, by);
    if (done && committed) writer.on_commit(committed);
    return done;
  });
}

Result<std::string> DeadLetters::newest_new() const {
  return read(database_, [&](Connection& connection) {
    return connection
        .value<std::string>(
            "SELECT id FROM dead_letters WHERE state = 'new' ORDER BY n DESC LIMIT 1")
        .value_or("");
  });
}

// The numbers of one shard ascend with time, so its oldest rows have its lowest numbers. Reads
// `limit` rows of each shard only: no index has the time.
Result<std::int64_t> DeadLetters::prune(model::Timestamp before, std::size_t limit) {
  return committer_.write_and_wait([&](Writer& writer) {
    Connection& connection = writer.connection();
    std::int64_t most = 0;
    std::optional<std::int64_t> first = 0;
    while ((first = connection.value<std::int64_t>("SELECT MIN(n) FROM dead_letters WHERE n > :n",
                                                   *first))) {
      const auto last = last_number(*first);
      const auto removed = connection.run_counted(
          "DELETE FROM dead_letters WHERE id IN (SELECT id FROM (SELECT id, created_at"
          " FROM dead_letters WHERE n >= :f AND n <= :z ORDER BY n LIMIT :l) AS oldest"
          " WHERE created_at < :b)",
          *first, last, limit, before);
      most = std::max(most, removed);
      first = last;
    }
    return most;
  });
}

}  // namespace conversed::store
