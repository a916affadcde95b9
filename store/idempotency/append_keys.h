#pragma once

#include <chrono>
#include <functional>
#include <optional>
#include <string>

#include "store/commit/committer.h"
#include "store/model/event.h"
#include "store/model/result.h"

namespace conversed::store {

// A use of a client's `Idempotency-Key` for something that is appended to the log.
struct AppendKeyUse {
  std::string scope;       // keys of two scopes never meet
  std::string key;         // as the client sent it
  std::string body_hash;   // text
  std::string event_id;    // that the key is to stand for, if it is free
  std::string supersedes;  // of a row for this event it takes the place; else empty
  std::string session_key{};
};

struct AppendKeyRow {
  std::string body_hash;
  std::string event_id;
  std::optional<model::Position> position;  // none: it is not known whether the log has the record
};

inline constexpr std::chrono::hours append_key_lifetime{24};

// The keys of appends to a log that keeps none itself. A row stands for `append_key_lifetime`; then
// its key is free. Thread-safe. Callbacks run on the Committer's thread, or inside the call while
// the store fails (`unavailable`); writes of others are in the same transactions.
class AppendKeys {
 public:
  // Both must outlive it.
  AppendKeys(Database& database, Committer& committer)
      : database_(database), committer_(committer) {}

  // What the key stands for from now on: this use, durably, if it was free, or what was there.
  struct Reserved {
    AppendKeyRow row;
    bool fresh = false;
  };
  // `unavailable` and `timed_out` as soon as the store begins to fail; the row may be there then.
  void reserve(AppendKeyUse use, std::function<void(model::Result<Reserved>)> done);

  // The log has the record of this use's event; the lifetime begins again. `told` is called once a
  // later `reserve` sees that, or as soon as the store begins to fail: then it may not.
  void settle(const AppendKeyUse& use, const model::Position& position, std::function<void()> told);

  // This use has appended no record: the key is free, unless another use, of another daemon, has
  // met its row since and may have appended one under it.
  void release(const AppendKeyUse& use, std::function<void()> told);

  // Blocks on the disk. Errors: `unavailable`, `internal`.
  [[nodiscard]] model::Result<std::optional<AppendKeyRow>> find(const std::string& scope,
                                                                const std::string& key,
                                                                model::Timestamp now) const;

 private:
  void write_at_once(Committer::Work work, std::function<void()> told);

  Database& database_;
  Committer& committer_;
};

}  // namespace conversed::store
