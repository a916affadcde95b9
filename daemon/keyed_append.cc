#include "daemon/keyed_append.h"

#include <memory>
#include <optional>
#include <span>
#include <string_view>

#include "store/model/event.h"

namespace conversed::daemon {

using model::Errc;
using model::fail;
using model::Result;

namespace {

std::string hex(std::span<const std::uint8_t> bytes) {
  constexpr std::string_view digits = "0123456789abcdef";
  std::string text;
  for (const std::uint8_t byte : bytes) {
    text += digits[byte >> 4U];
    text += digits[byte & 0xFU];
  }
  return text;
}

tl::unexpected<model::Error> other_body() {
  return fail(Errc::conflict, "The key was used with another body.");
}

}  // namespace

void StoredKeyedAppend::append(queue::Record record, queue::AppendKey key,
                               queue::KeyedCallback done) {
  store::AppendKeyUse row{std::move(key.scope), std::move(key.key), hex(key.body_hash), record.id,
                          std::move(key.supersedes)};
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
  // Nobody could answer for what would be reserved.
  if (auto well = log_.health(); !well) return finish(use, fail(well.error()));
  auto shared = std::make_shared<Use>(std::move(use));
  keys_.reserve(shared->row, [this, shared](Result<store::AppendKeys::Reserved> found) {
    if (!found) return finish(*shared, fail(found.error()));
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
              [this, shared, fresh = reserved.fresh](Result<queue::Appended> outcome) {
                appended(std::move(*shared), fresh, std::move(outcome));
              });
}

void StoredKeyedAppend::appended(Use use, bool fresh, Result<queue::Appended> outcome) {
  auto shared = std::make_shared<Use>(std::move(use));
  if (outcome) {
    const model::Position position = outcome->position;
    // Should this write fail, the record is there all the same: a later use appends it again under
    // this id, and its claim lets one have effects.
    return keys_.settle(shared->row, position, [this, shared, position](const Result<void>&) {
      finish(*shared, queue::KeyedAppended{shared->row.event_id, position, false});
    });
  }
  auto told = [this, shared, error = outcome.error()](const Result<void>&) {
    finish(*shared, fail(error));
  };
  // An earlier append under this row may have reached the log: only its own first one knows better.
  if (!fresh || outcome.error().code == Errc::timed_out) return told({});
  keys_.release(shared->row, std::move(told));
}

void StoredKeyedAppend::finish(const Use& use, Result<queue::KeyedAppended> outcome) {
  std::optional<Use> next;
  std::deque<Use> refused;
  {
    const std::lock_guard lock(mutex_);
    const auto waiting = waiting_.find({use.row.scope, use.row.key});
    // What ails log or store ails those behind, too.
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
  if ((*row)->body_hash != hex(key.body_hash)) return done(other_body());
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
