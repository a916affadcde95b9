#include "queue/file/log_keys.h"

#include <algorithm>
#include <utility>

namespace conversed::queue {
namespace {

constexpr std::size_t keys_at_a_time = 1'024;

}  // namespace

void LogKeys::put(PlacedKey key) {
  const std::lock_guard lock(mutex_);
  auto [place, fresh] = places_.try_emplace({key.key.scope, key.key.key}, key.place);
  if (!fresh) keys_.erase(std::exchange(place->second, key.place));
  keys_.emplace(key.place, std::move(key.key));
}

Result<std::optional<KeptKey>> LogKeys::find(const std::string& scope, const std::string& key,
                                             model::Timestamp now) const {
  {
    const std::lock_guard lock(mutex_);
    if (const auto place = places_.find({scope, key}); place != places_.end()) {
      return keys_.at(place->second);
    }
  }
  return kept_.find_kept(scope, key, now);
}

void LogKeys::forget(const KeyRange& of) {
  const std::lock_guard lock(mutex_);
  std::erase_if(keys_, [&](const auto& placed) {
    const KeptKey& key = placed.second;
    if (!of.contains(key.record_key)) return false;
    places_.erase({key.scope, key.key});
    return true;
  });
}

std::size_t LogKeys::size() const {
  const std::lock_guard lock(mutex_);
  return keys_.size();
}

Place LogKeys::oldest(Place end) const {
  const std::lock_guard lock(mutex_);
  return keys_.empty() ? end : keys_.begin()->first;
}

void LogKeys::hand_over() {
  std::vector<KeptKey> oldest;
  Place last;
  {
    const std::lock_guard lock(mutex_);
    if (handing_over_ || keys_.empty()) return;
    handing_over_ = true;
    for (const auto& [place, key] : keys_) {
      if (oldest.size() == keys_at_a_time) break;
      oldest.push_back(key);
      last = place;
    }
  }
  kept_.keep(std::move(oldest),
             [self = shared_from_this(), last](bool kept) { self->handed_over(last, kept); });
}

void LogKeys::handed_over(Place last, bool kept) {
  const std::lock_guard lock(mutex_);
  handing_over_ = false;
  while (kept && !keys_.empty() && keys_.begin()->first <= last) {
    places_.erase({keys_.begin()->second.scope, keys_.begin()->second.key});
    keys_.erase(keys_.begin());
  }
}

}  // namespace conversed::queue
