#pragma once

#include <array>
#include <cstdint>
#include <functional>
#include <optional>
#include <string>

#include "queue/log.h"

namespace conversed::queue {

// The client's `Idempotency-Key`. Repeated requests under one key have one effect.
struct AppendKey {
  std::string scope;  // organisation and route; keys of two scopes never meet
  std::string key;    // as the client sent it, 1 to 255 bytes
  std::array<std::uint8_t, 32> body_hash{};  // of the request's body: one key, one body
  // Normally empty. Else the id of an earlier append under this key whose answer was an error. If
  // the key still stands for that append, this append replaces it, with any hash.
  std::string supersedes;
};

struct KeyedAppended {
  std::string id;         // of the key's record, which may be an earlier one
  Position position;      // of that record
  bool repeated = false;  // true: this record was not appended, since the key has an earlier one
};
using KeyedCallback = std::function<void(Result<KeyedAppended>)>;
using LookUpCallback = std::function<void(Result<std::optional<KeyedAppended>>)>;

// Appends under a key, record and key in one transaction. Thread-safe.
//
// A key stands for its record for 24 hours after the append, by the Clock; then it is free again.
// While it stands, the same body gets the earlier record's id, and another body `conflict`.
class KeyedAppend {
 public:
  virtual ~KeyedAppend() = default;

  // Calls `done` exactly once, as Log::append does and with its errors, and with `conflict` as
  // above. After `timed_out` the same call can be repeated: the effect comes once.
  virtual void append(Record record, AppendKey key, KeyedCallback done) = 0;

  // Finds the record of an earlier append under `key`, for a request that is refused unless it
  // repeats an earlier one. Calls `done` exactly once, inside this call or on a thread of the
  // driver, with the key's record (`repeated`), or without one if the key is free. Blocks for the
  // read of one row at most; `done` must not block or throw. `supersedes` is ignored.
  //
  // It finds every append that has called back, and maybe appends in hand. A found record is
  // durable. Errors:
  //   conflict     the key stands for another body
  //   unavailable  the keys can't be read at present, or the log is stopped
  virtual void look_up(const AppendKey& key, LookUpCallback done) = 0;
};

}  // namespace conversed::queue
