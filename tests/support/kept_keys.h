#pragma once

#include <map>
#include <mutex>
#include <string>
#include <utility>

#include "queue/file/frame.h"

namespace conversed::tests {

// Keeps keys in memory. Thread-safe.
class KeysInMemory final : public store::KeptKeys {
 public:
  void keep(std::vector<store::KeptKey> keys, std::function<void(bool)> done) override {
    bool kept = false;
    {
      const std::lock_guard lock(mutex_);
      kept = !failing_ && !refusing_;
      if (kept) {
        for (auto& key : keys) keys_[{key.scope, key.key}] = key;
      }
    }
    done(kept);
  }
  model::Result<std::optional<store::KeptKey>> find_kept(const std::string& scope,
                                                         const std::string& key,
                                                         model::Timestamp /*now*/) override {
    const std::lock_guard lock(mutex_);
    if (failing_) return model::fail(model::Errc::unavailable, "told to");
    const auto found = keys_.find({scope, key});
    return found == keys_.end() ? std::nullopt : std::optional(found->second);
  }

  void forget(const model::KeyRange& of) {
    const std::lock_guard lock(mutex_);
    std::erase_if(keys_, [&](const auto& kept) { return of.contains(kept.second.record_key); });
  }
  void set_failing(bool failing) {
    const std::lock_guard lock(mutex_);
    failing_ = failing;
  }
  // It takes no keys, but finds earlier ones.
  void set_refusing(bool refusing) {
    const std::lock_guard lock(mutex_);
    refusing_ = refusing;
  }
  [[nodiscard]] std::size_t size() const {
    const std::lock_guard lock(mutex_);
    return keys_.size();
  }

 private:
  mutable std::mutex mutex_;
  std::map<std::pair<std::string, std::string>, store::KeptKey> keys_;
  bool failing_ = false;
  bool refusing_ = false;
};

}  // namespace conversed::tests
