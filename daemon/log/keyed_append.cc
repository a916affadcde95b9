#include "daemon/log/keyed_append.h"

#include <memory>
#include <optional>

#include "store/model/event.h"
#include "store/model/hex.h"

namespace conversed::daemon {

using model::Errc;
using model::fail;
using model::Result;

namespace {

tl::unexpected<model::Error> other_body() {
  return fail(Errc::conflict, "The key was used with another body.");
}

}  // namespace

void StoredKeyedAppend::append(queue::Record record, queue::AppendKey key,
                               queue::KeyedCallback done) {
  store::AppendKeyUse row{std::move(key.scope),      std::move(key.key),
                          model::hex(key.body_hash), record.id,
                          std::move(key.supersedes), record.key};
  Use use{std::move(record), std::move(row), std::move(done)};
  {
    const std::lock_guard lock(mutex_);
    const auto [waiting, first] = waiting_.try_emplace({use.row.scope, use.row.key});
    if (!first) {
      waiting->second.push_back(std::move(use));
      return;
    }
  }
  begin(std::move(use));
}

void StoredKeyedAppend::begin(Use use) {
  // While the log fails, no append would follow the reservation.
  if (auto well = log_.health(); !well) return finish(use, fail(well.error()));
  auto shared = std::make_shared<Use>(std::move(use));
  keys_.reserve(shared->row, [this, shared](Result<store::AppendKeys::Reserved> found) {
    if (!found) {
      // Whether the row is there or not, the log has no record.
      const auto& error = found.error();
      const bool unknown = error.code == Errc::timed_out;
      return finish(*shared, fail(unknown ? Errc::unavailable : error.code, error.message));
    }
    reserved(std::move(*shared), *found);
  });
}

void StoredKeyedAppend::reserved(Use use, const store::AppendKeys::Reserved& reserved) {
  const store::AppendKeyRow& row = reserved.row;
  if (row.body_hash != use.row.body_hash) return finish(use, other_body());
  if (row.position) {
    return finish(use, queue::KeyedAppended{row.event_id, *row.position, true});
  }
  if (row.event_id != use.record.id) rename_(use.record, row.event_id);
  use.row.event_id = row.event_id;
  queue::Record record = std::move(use.record);
  auto shared = std::make_shared<Use>(std::move(use));
  log_.append(std::move(record),
              [this, shared, fresh = reserved.fresh](const Result<queue::Appended>& outcome) {
                appended(shared, fresh, outcome);
              });
}

void StoredKeyedAppend::appended(const std::shared_ptr<Use>& use, bool fresh,
                                 const Result<queue::Appended>& outcome) {
  if (outcome) {
    // The record is durable even if this write fails. Then a later use appends again under this id,
    // and the claim lets one of them have effects.
    const queue::KeyedAppended done{use->row.event_id, outcome->position, false};
    return keys_.settle(use->row, done.position, [this, use, done] { finish(*use, done); });
  }
  // An earlier append under this row may have reached the log. Only the use that made the row knows
  // that there was none.
  if (!fresh || outcome.error().code == Errc::timed_out) return finish(*use, fail(outcome.error()));
  keys_.release(use->row, [this, use, error = outcome.error()] { finish(*use, fail(error)); });
}

void StoredKeyedAppend::finish(const Use& use, Result<queue::KeyedAppended> outcome) {
  std::optional<Use> next;
  std::deque<Use> refused;
  {
    const std::lock_guard lock(mutex_);
    const auto waiting = waiting_.find({use.row.scope, use.row.key});
    // A failure of log or store affects the waiting uses, too.
    if (!outcome && outcome.error().code != Errc::conflict) refused.swap(waiting->second);
    if (waiting->second.empty()) {
      waiting_.erase(waiting);
    } else {
      next = std::move(waiting->second.front());
      waiting->second.pop_front();
    }
  }
  for (const auto& each : refused) each.done(fail(outcome.error()));
  use.done(std::move(outcome));
  if (next) begin(std::move(*next));
}

void StoredKeyedAppend::look_up(const queue::AppendKey& key, queue::LookUpCallback done) {
  if (auto well = log_.health(); !well) {
    return done(fail(Errc::unavailable, well.error().message));
  }
  auto row = keys_.find(key.scope, key.key, clock_.now());
  if (!row) return done(fail(row.error()));
  if (!*row || !(*row)->position) return done(std::nullopt);
  if ((*row)->body_hash != model::hex(key.body_hash)) return done(other_body());
  done(queue::KeyedAppended{(*row)->event_id, *(*row)->position, true});
}

void rename_event(queue::Record& record, const std::string& id) {
  auto event =
      model::decode_event(record.key, record.id, record.type, record.trace_id, record.value);
  record.id = id;
  if (!event) return;  // one that can't be read will be a dead letter under this id
  event->id = id;
  if (event->claim) event->claim->id = id;
  record.value = model::encode_value(*event);
}

}  // namespace conversed::daemon
