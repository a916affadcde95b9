#include "daemon/turns/batch_inbox.h"

#include <utility>

#include "store/conversation/sessions.h"
#include "store/model/trace.h"
#include "store/store.h"

namespace conversed::daemon {

store::InboxEvent parts_of(const queue::Record& record) {
  return {record.id, record.type, model::trace_id_of(record.trace_id), record.value};
}

model::Result<void> BatchInbox::load() {
  if (draft_.session.inbox_size == 0) return {};
  auto stored = draft_.shard().sessions().inbox(draft_.input.key, draft_.context.max_drained);
  if (!stored) return model::fail(stored.error());
  stored_ = std::move(*stored);
  return {};
}

bool BatchInbox::has_next() const {
  if (stored_taken_ < stored_.size()) return true;
  const auto left = static_cast<std::int64_t>(added_.size() - added_taken_);
  return left > 0 && draft_.session.inbox_size == left;
}

BatchInbox::Waiting BatchInbox::take_oldest() {
  --draft_.session.inbox_size;
  if (stored_taken_ < stored_.size())
    return {std::move(stored_[stored_taken_++]), std::nullopt, std::nullopt};
  return std::move(added_[added_taken_++]);
}

void BatchInbox::add(const queue::LogRecord& logged) {
  added_.push_back({parts_of(logged.record), logged.position, std::nullopt});
  ++draft_.session.inbox_size;
}

void BatchInbox::close() {
  auto& changes = draft_.commit().inbox;
  changes.removed = static_cast<std::int64_t>(stored_taken_);
  for (std::size_t i = added_taken_; i < added_.size(); ++i) {
    changes.added.push_back(std::move(added_[i].parts));
    if (auto& row = added_[i].receipt) draft_.commit().receipts.push_back(*std::move(row));
  }
  if (stored_taken_ > 0 || !added_.empty()) {
    draft_.batch.after.inbox_size = draft_.session.inbox_size;
  }
}

}  // namespace conversed::daemon
