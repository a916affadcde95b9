#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>
#include <vector>

#include "store/commit/committer.h"
#include "store/idempotency/kept_keys.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// A use of a client's `Idempotency-Key` for an event that is appended to the log.
struct AppendKeyUse {
  std::string scope;       // keys of two scopes never meet
  std::string key;         // as the client sent it
  std::string body_hash;   // text
  std::string event_id;    // the event that gets the key if the key is free
  std::string supersedes;  // replaces a row for this event; else empty
  std::string session_key{};
};

struct AppendKeyRow {
  std::string body_hash;
  std::string event_id;
  std::optional<model::Position> position;  // none: it is unknown whether the log has the record
};

inline constexpr std::chrono::hours append_key_lifetime{24};

// The keys of appends: all of a log that keeps no keys, and those that the embedded log hands over.
// A row lives for `append_key_lifetime`; then its key is free. Thread-safe. Callbacks run on the
// Committer's thread, or inside the call while the store fails (`unavailable`).
class AppendKeys : Rows, public KeptKeys {
 public:
  using Rows::Rows;

  // The row of the key: a new, durable row for this use if the key was free, else the present row.
  struct Reserved {
    AppendKeyRow row;
    bool fresh = false;
  };
  // `unavailable` and `timed_out` as soon as the store begins to fail. The row may exist then.
  void reserve(AppendKeyUse use, std::function<void(model::Result<Reserved>)> done);

  // Notes that the log has the record of this use's event. The lifetime begins again. `told` is
  // called once a later `reserve` sees the position, or as soon as the store fails: then a
  // `reserve` may not see it.
  void settle(const AppendKeyUse& use, const model::Position& position, std::function<void()> told);

  // Notes that this use has appended no record. The key is free then, unless another daemon's use
  // has found the row meanwhile and may have appended a record under it.
  void release(const AppendKeyUse& use, std::function<void()> told);

  void keep(std::vector<KeptKey> keys, std::function<void(bool kept)> done) override;
  [[nodiscard]] model::Result<std::optional<KeptKey>> find_kept(const std::string& scope,
                                                                const std::string& key,
                                                                model::Timestamp now) override;

  // Blocks on the disk. Errors: `unavailable`, `internal`.
  [[nodiscard]] model::Result<std::optional<AppendKeyRow>> find(const std::string& scope,
                                                                const std::string& key,
                                                                model::Timestamp now) const;

 private:
  void write_at_once(Committer::Work work, std::function<void()> told);
};

}  // namespace conversed::store
