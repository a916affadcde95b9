#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "queue/keyed_append.h"
#include "store/model/hex.h"

namespace conversed::queue {

// A key and the record that it stands for.
struct KeptKey {
  std::string scope;
  std::string key;
  std::string body_hash;  // in hex
  std::string id;         // of the record
  Position position;
  std::int64_t created_ms = 0;  // since the Unix epoch
  std::string record_key;

  // Whether it is younger than `lifetime`; an older one is as good as none.
  [[nodiscard]] bool stands(std::int64_t now_ms, std::chrono::milliseconds lifetime) const {
    return now_ms - created_ms < lifetime.count();
  }
  // The answer to the key's next use: this record, or `conflict` for another body.
  [[nodiscard]] Result<KeyedAppended> repeated_by(const AppendKey& use) const {
    if (body_hash == model::hex(use.body_hash)) return KeyedAppended{id, position, true};
    return model::fail(Errc::conflict, "The key was used with another body.");
  }
};

// Keeps the keys that the log hands over, so that it can use their place in the file again.
// Thread-safe.
class KeptKeys {
 public:
  virtual ~KeptKeys() = default;

  // Stores the keys; one replaces an earlier one of the same scope and key. Calls `done` at most
  // once, on any thread: true once all are durable, false if they may not be.
  virtual void keep(std::vector<KeptKey> keys, std::function<void(bool kept)> done) = 0;

  // Blocks for the read of one row. Error: `unavailable`.
  [[nodiscard]] virtual Result<std::optional<KeptKey>> find(const std::string& scope,
                                                            const std::string& key) = 0;
};

}  // namespace conversed::queue
