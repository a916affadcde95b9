#pragma once

#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/model/clock.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// A client's Idempotency-Key and the record of the log that it stands for.
struct KeptKey {
  std::string scope;
  std::string key;
  std::string body_hash;  // in hex
  std::string id;         // of the record
  model::Position position;
  std::int64_t created_ms = 0;  // since the Unix epoch
  std::string record_key;
};

// Keeps the keys that the embedded log hands over, so that the log can use their place in its files
// again. Thread-safe.
class KeptKeys {
 public:
  virtual ~KeptKeys() = default;

  // Stores the keys; one replaces an earlier one of the same scope and key. Calls `done` at most
  // once, on any thread: true once all are durable, false if they may not be.
  virtual void keep(std::vector<KeptKey> keys, std::function<void(bool kept)> done) = 0;

  // The key, unless it has expired. Blocks for the read of one row. Error: `unavailable`.
  [[nodiscard]] virtual model::Result<std::optional<KeptKey>> find_kept(const std::string& scope,
                                                                        const std::string& key,
                                                                        model::Timestamp now) = 0;
};

}  // namespace conversed::store
