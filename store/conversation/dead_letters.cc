#include "store/conversation/dead_letters.h"

#include <limits>
#include <utility>

#include "store/cluster/notifications.h"
#include "store/commit/row_writes.h"
#include "store/conversation/due_sql.h"
#include "store/model/names.h"
#include "store/sql/read.h"

namespace conversed::store {

namespace {

constexpr model::Names<DeadLetterState, 3> states{{{
    {DeadLetterState::fresh, "new"},
    {DeadLetterState::replayed, "replayed"},
    {DeadLetterState::discarded, "discarded"},
}}};

// Of one event that are read.
constexpr std::size_t most_letters = 100;

DeadLetterState state_from(std::string_view text) {
  const auto state = states.value_of(text);
  if (!state) throw DamagedData("a dead letter has an unknown state");
  return *state;
}

DeadLetter letter_from(std::string id, std::int64_t row, model::SessionKey key, std::string event,
                       std::string type, std::string trace, std::string value,
                       std::optional<std::int64_t> seq, std::string reason,
                       const std::string& state, model::Timestamp created) {
  return {.id = std::move(id),
          .row = row,
          .key = std::move(key),
          .event = {std::move(event), std::move(type), std::move(trace), std::move(value)},
          .output_seq = seq,
          .reason = std::move(reason),
          .state = state_from(state),
          .created_at = created};
}

Result<DeadLetter> find(Connection& connection, const std::string& project_id,
                        const std::string& id) {
  auto letter = connection.first(
      letter_from,
      "SELECT id, n, key, event_id, type, trace_id, value, output_seq, reason, state, created_at"
      " FROM dead_letters WHERE id = :i AND project_id = :p",
      id, project_id);
  if (!letter) return fail(Errc::not_found, "there is no such dead letter");
  return *std::move(letter);
}

// Changes the state of a new dead letter. A state changes only once.
Result<DeadLetter> settle(Connection& connection, const std::string& project_id,
                          const std::string& id, DeadLetterState state) {
  auto letter = find(connection, project_id, id);
  if (!letter) return letter;
  if (letter->state != DeadLetterState::fresh) {
    return fail(Errc::conflict,
                "the dead letter is " + std::string(to_string(letter->state)) + " already");
  }
  connection.run("UPDATE dead_letters SET state = :s WHERE id = :i", to_string(state), id);
  return letter;
}

}  // namespace

std::string_view to_string(DeadLetterState state) {
  return states.name_of(state);
}

Result<std::vector<DeadLetter>> DeadLetters::list(const std::string& project_id,
                                                  std::optional<DeadLetterState> state,
                                                  std::int64_t after_row, std::size_t limit,
                                                  const std::string& reason) const {
  const std::string wanted(state ? to_string(*state) : "");
  return read_all(database_, letter_from,
                  "SELECT id, n, key, event_id, type, trace_id, value, output_seq, reason, state,"
                  " created_at FROM dead_letters WHERE project_id = :p AND n > :a"
                  " AND (:w = '' OR state = :x) AND (:r = '' OR reason = :y) ORDER BY n LIMIT :l",
                  project_id, after_row, wanted, wanted, reason, reason, limit);
}

Result<std::vector<DeadLetters::Group>> DeadLetters::groups(const std::string& project_id,
                                                            DeadLetterState state,
                                                            std::size_t examined,
                                                            std::size_t limit) const {
  return read_all(
      database_,
      row_of<&Group::reason, &Group::of_outputs, &Group::count, &Group::first, &Group::last>,
      "SELECT reason, of_outputs, COUNT(*), MIN(created_at), MAX(created_at)"
      " FROM (SELECT reason, CASE WHEN output_seq IS NULL THEN 0 ELSE 1 END"
      " AS of_outputs, state, created_at FROM dead_letters WHERE project_id = :p"
      " ORDER BY n DESC LIMIT :e) AS newest WHERE state = :s"
      " GROUP BY reason, of_outputs ORDER BY 3 DESC, reason LIMIT :l",
      project_id, examined, to_string(state), limit);
}

Result<DeadLetter> DeadLetters::get(const std::string& project_id, const std::string& id) const {
  return read(database_, [&](Connection& connection) { return find(connection, project_id, id); });
}

Result<std::optional<DeadLetter>> DeadLetters::of(const std::string& id) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<DeadLetter>> {
    auto letter = connection.first(
        letter_from,
        "SELECT id, n, key, event_id, type, trace_id, value, output_seq, reason, state, created_at"
        " FROM dead_letters WHERE id = :i",
        id);
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

Result<void> DeadLetters::discard(const std::string& project_id, const std::string& id) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    auto letter = settle(writer.connection(), project_id, id, DeadLetterState::discarded);
    if (!letter) return fail(letter.error());
    return {};
  });
}

Result<void> DeadLetters::replay_output(const std::string& project_id, const std::string& id,
                                        const std::function<void()>& committed) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    auto letter = settle(connection, project_id, id, DeadLetterState::replayed);
    if (!letter) return fail(letter.error());
    if (!letter->output_seq) {
      return fail(Errc::invalid_argument, "an event is replayed through the log");
    }
    const auto session =
        connection.value<std::int64_t>("SELECT id FROM sessions WHERE key = :k", letter->key);
    const auto output = session
                            ? connection.value<std::string>(
                                  "SELECT output_id FROM outputs WHERE session = :s AND seq = :q",
                                  *session, *letter->output_seq)
                            : std::nullopt;
    if (!output) return fail(Errc::not_found, "the output is no longer kept");
    insert_delivery(connection, *session, letter->key.endpoint_id, *letter->output_seq, *output,
                    false);
    announce(connection, deliver_topic, letter->key.encode());
    if (committed) writer.on_commit(committed);
    return {};
  });
}

Result<std::int64_t> DeadLetters::count_new() const {
  return read_count(database_, most_counted, "SELECT 1 FROM dead_letters WHERE state = 'new'");
}

Result<std::optional<model::Timestamp>> DeadLetters::oldest_new() const {
  return read(database_, [&](Connection& connection) {
    return connection.value<model::Timestamp>(
        "SELECT created_at FROM dead_letters WHERE state = 'new' ORDER BY n LIMIT 1");
  });
}

// Numbers ascend with time, so the first young dead letter ends the range.
Result<std::int64_t> DeadLetters::prune(model::Timestamp before, std::size_t limit) {
  return committer_.write_and_wait([&](Writer& writer) -> Result<std::int64_t> {
    Connection& connection = writer.connection();
    const auto first_kept = connection.value<std::int64_t>(
        "SELECT n FROM dead_letters WHERE created_at >= :b ORDER BY n LIMIT 1", before);
    return connection.run_counted(
        "DELETE FROM dead_letters WHERE id IN (SELECT id FROM dead_letters WHERE n < :k ORDER BY n"
        " LIMIT :l)",
        first_kept.value_or(std::numeric_limits<std::int64_t>::max()), limit);
  });
}

}  // namespace conversed::store
