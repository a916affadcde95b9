#include "store/conversation/follow_ups.h"

#include <utility>

#include "store/sql/read.h"

namespace conversed::store {

using model::Errc;
using model::fail;
using model::FollowUp;
using model::Result;

namespace {

template <typename... In>
std::vector<FollowUp> load_follow_ups(Connection& connection, std::string_view sql,
                                      const In&... in) {
  return connection.all(
      [](std::string id, const std::string& key, std::string trace, model::Timestamp due_at,
         const std::string& text) {
        auto value = stored_json(text);
        FollowUp follow_up;
        follow_up.id = std::move(id);
        follow_up.session = stored_or_throw(model::SessionKey::decode(key));
        follow_up.trace_id = std::move(trace);
        follow_up.due_at = due_at;
        follow_up.plan = stored_or_throw(model::follow_up_plan_from(value.at("plan")));
        follow_up.text = value.at("text").get<std::string>();
        follow_up.data = std::move(value.at("data"));
        return follow_up;
      },
      sql, in...);
}

}  // namespace

Result<bool> FollowUps::waits(const std::string& id) const {
  return read(database_, [&](Connection& connection) {
    return connection.row<int>("SELECT 1 FROM follow_ups WHERE id = :i", id).has_value();
  });
}

Result<std::optional<FollowUp>> FollowUps::find(const std::string& id) const {
  return read(database_, [&](Connection& connection) -> Result<std::optional<FollowUp>> {
    auto found = load_follow_ups(connection,
                                 "SELECT f.id, s.key, f.trace_id, f.due_at, f.value"
                                 " FROM follow_ups f JOIN sessions s ON s.id = f.session"
                                 " WHERE f.id = :i",
                                 id);
    if (found.empty()) return std::nullopt;
    return std::move(found.front());
  });
}

Result<std::vector<FollowUp>> FollowUps::of_session(const model::SessionKey& key) const {
  return read(database_, [&](Connection& connection) {
    return load_follow_ups(connection,
                           "SELECT f.id, s.key, f.trace_id, f.due_at, f.value FROM follow_ups f"
                           " JOIN sessions s ON s.id = f.session WHERE s.key = :k"
                           " ORDER BY f.due_at, f.id",
                           key.encode());
  });
}

void FollowUps::begin_delivery(const model::SessionKey& key, std::int64_t seq,
                               Committer::WriteDone done) {
  committer_.write(
      [key = key.encode(), seq](Writer& writer) -> Result<void> {
        const auto begun = writer.connection().run_counted(
            "UPDATE deliveries SET withdrawable = 0 WHERE seq = :q"
            " AND session = (SELECT id FROM sessions WHERE key = :k)",
            seq, key);
        return begun == 1 ? Result<void>() : fail(Errc::not_found, "the output was withdrawn");
      },
      std::move(done));
}

}  // namespace conversed::store
