#include "store/conversation/follow_ups.h"

#include <utility>

#include "store/commit/row_writes.h"
#include "store/sql/read.h"

namespace conversed::store {

using model::FollowUp;

namespace {

FollowUp follow_up_from(std::string id, model::SessionKey key, std::string trace,
                        model::Timestamp due_at, nlohmann::json value) {
  return {.id = std::move(id),
          .session = std::move(key),
          .trace_id = std::move(trace),
          .due_at = due_at,
          .text = value.at("text").get<std::string>(),
          .data = std::move(value.at("data")),
          .plan = stored_or_throw(model::follow_up_plan_from(value.at("plan")))};
}

}  // namespace

Result<bool> FollowUps::waits(const std::string& id) const {
  return read_exists(database_, "SELECT 1 FROM follow_ups WHERE id = :i", id);
}

Result<std::optional<FollowUp>> FollowUps::find(const std::string& id) const {
  return read_first(database_, follow_up_from,
                    "SELECT f.id, s.key, f.trace_id, f.due_at, f.value FROM follow_ups f"
                    " JOIN sessions s ON s.id = f.session WHERE f.id = :i",
                    id);
}

Result<std::vector<FollowUp>> FollowUps::of_session(const model::SessionKey& key) const {
  return read_all(database_, follow_up_from,
                  "SELECT f.id, s.key, f.trace_id, f.due_at, f.value FROM follow_ups f"
                  " JOIN sessions s ON s.id = f.session WHERE s.key = :k ORDER BY f.due_at, f.id",
                  key);
}

void FollowUps::begin_delivery(const model::SessionKey& key, std::int64_t seq,
                               Committer::WriteDone done) {
  committer_.write(
      [key, seq](Writer& writer) {
        return change_one(writer.connection(), "the output was withdrawn",
                          "UPDATE deliveries SET withdrawable = 0 WHERE seq = :q"
                          " AND session = (SELECT id FROM sessions WHERE key = :k)",
                          seq, key);
      },
      std::move(done));
}

}  // namespace conversed::store
