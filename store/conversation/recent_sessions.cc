#include "store/conversation/recent_sessions.h"

#include <algorithm>
#include <utility>

#include "store/commit/session_commit_writes.h"
#include "store/conversation/session_row.h"
#include "store/model/json.h"

namespace conversed::store {
namespace {

// Bounds the search among the sessions of one user.
constexpr std::size_t most_of_user = 16;

std::string user_of(const model::SessionKey& key) {
  return key.project_id + model::SessionKey::separator + key.user_id;
}

}  // namespace

void RecentSessions::keep(const EncodedCommit& encoded, const model::Profile& profile,
                          bool outputs_are_known) {
  const auto& after = encoded.commit.after;
  Row row{.key = encoded.commit.key,
          .version = encoded.commit.expected_version + 1,
          .position = after.position,
          .started_at = after.started_at,
          .last_activity_at = after.last_activity_at,
          .context = encoded.context,
          .flow_state = encoded.flow_state,
          .execution = encoded.execution,
          .last_output_seq = after.last_output_seq,
          .inbox_size = after.inbox_size,
          .last_receipt = after.last_receipt,
          .profile_version = profile.version,
          .profile = {},
          .outputs_are_known = outputs_are_known};
  if (encoded.profile) {
    ++row.profile_version;
    row.profile = *encoded.profile;
  } else if (profile.version > 0) {
    row.profile = model::json_text(profile.data);
  }
  constexpr std::size_t of_containers = 256;
  row.bytes = sizeof(Row) + of_containers + 2 * encoded.key.size() + row.context.size() +
              row.flow_state.size() + (row.execution ? row.execution->size() : 0) +
              row.last_receipt.size() + row.profile.size();
  const auto user = user_of(row.key);
  const std::lock_guard lock(mutex_);
  if (encoded.profile) {
    drop_user(user);
  } else {
    extract(row.key);
  }
  if (row.bytes > most_bytes_ / 16) return;
  if (const auto found = users_.find(user);
      found != users_.end() && found->second.size() == most_of_user) {
    extract(model::SessionKey(found->second.front()->key));
  }
  bytes_ += row.bytes;
  rows_.push_front(std::move(row));
  users_[user].push_back(rows_.begin());
  while (bytes_ > most_bytes_) extract(model::SessionKey(rows_.back().key));
}

std::optional<Sessions::Loaded> RecentSessions::take(const model::SessionKey& key) {
  auto row = [&] {
    const std::lock_guard lock(mutex_);
    return extract(key);
  }();
  if (!row) return std::nullopt;
  Sessions::Loaded loaded;
  loaded.outputs_are_known = row->outputs_are_known;
  loaded.profile.project_id = key.project_id;
  loaded.profile.user_id = key.user_id;
  loaded.session = SessionOfRow{key, &loaded}(
      row->version, row->position.epoch, row->position.partition, row->position.offset,
      row->started_at, row->last_activity_at, row->context, row->flow_state, row->execution,
      row->last_output_seq, row->inbox_size, std::move(row->last_receipt), row->profile_version,
      row->profile);
  return loaded;
}

bool RecentSessions::has(const model::SessionKey& key) const {
  const std::lock_guard lock(mutex_);
  const auto found = users_.find(user_of(key));
  return found != users_.end() &&
         std::ranges::any_of(found->second, [&](const auto& row) { return row->key == key; });
}

void RecentSessions::forget(const model::SessionKey& key) {
  const std::lock_guard lock(mutex_);
  extract(key);
}

void RecentSessions::clear() {
  const std::lock_guard lock(mutex_);
  users_.clear();
  rows_.clear();
  bytes_ = 0;
}

std::optional<RecentSessions::Row> RecentSessions::extract(const model::SessionKey& key) {
  const auto found = users_.find(user_of(key));
  if (found == users_.end()) return std::nullopt;
  auto& sessions = found->second;
  const auto place =
      std::ranges::find_if(sessions, [&](const auto& row) { return row->key == key; });
  if (place == sessions.end()) return std::nullopt;
  const auto at = *place;
  sessions.erase(place);
  if (sessions.empty()) users_.erase(found);
  bytes_ -= at->bytes;
  std::optional<Row> row(std::move(*at));
  rows_.erase(at);
  return row;
}

void RecentSessions::drop_user(const std::string& user) {
  const auto found = users_.find(user);
  if (found == users_.end()) return;
  for (const auto at : found->second) {
    bytes_ -= at->bytes;
    rows_.erase(at);
  }
  users_.erase(found);
}

}  // namespace conversed::store
