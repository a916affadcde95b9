#pragma once

#include <cstddef>
#include <map>
#include <memory>
#include <mutex>
#include <optional>
#include <string>
#include <utility>

#include "queue/file/frame.h"

namespace conversed::queue {

// A key, and the place of its frame.
struct PlacedKey {
  KeptKey key;
  Place place;
};

// The keys of the log that are not in the store yet. The log's thread hands them over after each
// batch, oldest first. So a key that `forget` removes is on its way to the store already, or never
// gets there. Thread-safe.
class LogKeys : public std::enable_shared_from_this<LogKeys> {
 public:
  // `kept` must outlive it.
  explicit LogKeys(store::KeptKeys& kept) : kept_(kept) {}

  // A key that is durable. It replaces an earlier one of its name.
  void put(PlacedKey key);
  // Hands the oldest keys to the store, unless the store is taking keys now. For the log's thread.
  void hand_over();

  // From memory, else from the store.
  [[nodiscard]] Result<std::optional<KeptKey>> find(const std::string& scope,
                                                    const std::string& key,
                                                    model::Timestamp now) const;
  void forget(const KeyRange& of);  // for the log's thread

  [[nodiscard]] std::size_t size() const;
  // The place of the oldest key, or `end` without keys.
  [[nodiscard]] Place oldest(Place end) const;

 private:
  using Name = std::pair<std::string, std::string>;  // scope and key

  void handed_over(Place last, bool kept);

  store::KeptKeys& kept_;
  mutable std::mutex mutex_;
  std::map<Place, KeptKey> keys_;
  std::map<Name, Place> places_;
  bool handing_over_ = false;
};

}  // namespace conversed::queue
