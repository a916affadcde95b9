#include "store/conversation/timers.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "store/commit/row_writes.h"
#include "store/conversation/due_sql.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::Claim;

// Each part is the range of an index, and the first rows of all parts are among the first of each.
Result<Timers::Page> Timers::due(model::Timestamp now, std::chrono::milliseconds offset,
                                 std::size_t limit, const Due* after) const {
  return read(database_, [&](Connection& connection) -> Result<Page> {
    Page page;
    const auto add = [&](Claim::Kind kind, std::chrono::milliseconds ahead, std::string_view sql) {
      const auto behind = after == nullptr ? model::Timestamp::min() : after->at - ahead;
      bool over = false;
      connection.rows(
          [&](model::Timestamp due_at, std::string id) {
            if (over) return;
            const auto at = due_at + ahead;
            over = at > now;
            if (!over) return page.timers.push_back({at, {kind, std::move(id)}});
            page.next = std::min(page.next.value_or(at), at);
          },
          sql, behind, after == nullptr ? std::string() : after->claim.id, limit);
    };
    add(Claim::Kind::timer, {}, sql_of_due_timers);
    add(Claim::Kind::follow_up, {}, sql_of_due_follow_ups);
    add(Claim::Kind::schedule, offset, sql_of_due_schedules);
    std::ranges::sort(page.timers, {},
                      [](const Due& due) { return std::tie(due.at, due.claim.id); });
    if (page.timers.size() > limit) page.timers.resize(limit);
    return page;
  });
}

void Timers::appended(std::vector<Due> timers, std::function<void()> marked) {
  auto work = [timers = std::move(timers)](Connection& connection) {
    for (const auto& [at, claim] : timers) {
      if (claim.kind == Claim::Kind::schedule) {  // put off it has another claim
        connection.run("UPDATE schedules SET appended = 1 WHERE claim = :c", claim.id);
      } else if (claim.kind == Claim::Kind::follow_up) {
        connection.run("UPDATE follow_ups SET appended = 1 WHERE id = :i AND due_at = :d", claim.id,
                       at);
      } else {
        connection.run("UPDATE pending_calls SET appended = 1 WHERE id = :i AND due_at = :d",
                       claim.id, at);
      }
    }
  };
  mark(committer_, std::move(work), std::move(marked));
}

Result<void> Timers::log_lost() {
  return committer_.write_and_wait([](Writer& writer) -> Result<void> {
    Connection& connection = writer.connection();
    connection.run("UPDATE pending_calls SET appended = 0 WHERE appended = 1");
    connection.run("UPDATE follow_ups SET appended = 0 WHERE appended = 1");
    connection.run("UPDATE schedules SET appended = 0 WHERE appended = 1");
    return {};
  });
}

Result<std::chrono::milliseconds> Timers::offset() const {
  return read(database_, [](Connection& connection) { return timer_offset(connection); });
}

std::chrono::milliseconds timer_offset(Connection& connection) {
  return std::chrono::milliseconds(
      connection.number("SELECT value FROM meta WHERE name = 'timer_offset'"));
}

Result<void> Timers::keep_offset(std::chrono::milliseconds offset) {
  return committer_.write_and_wait([offset](Writer& writer) {
    writer.connection().run(
        "INSERT INTO meta (name, value) VALUES ('timer_offset', :v)"
        " ON CONFLICT (name) DO UPDATE SET value = excluded.value",
        offset.count());
  });
}

}  // namespace conversed::store
