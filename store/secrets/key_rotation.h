#pragma once

#include <cstdint>
#include <filesystem>
#include <mutex>

#include "store/commit/committer.h"
#include "store/model/result.h"
#include "store/shards/shard.h"

namespace conversed::store {

class Sealer;

// Changes the key that seals the store's secrets while the daemon works. It adds a new key to the
// key file, seals every value anew in batches of bounded size, and then moves the old keys to a
// file beside it. After a crash in between, the file holds both keys and `resume` goes on. Each
// shard knows the key, so all have to be there at the end. Thread-safe; blocks on the disk.
//
// Values are sealed only on the Committer's thread, so no value with the old key can appear behind
// a rotation that has passed its row. Kept by: KeyRotationTest.AllValuesAreSealedByTheNewKeyAlone,
// KeyRotationTest.RotationThatWasCutShortGoesOn.
class KeyRotation {
 public:
  // Both must outlive it.
  KeyRotation(const Shards& shards, Sealer& sealer)
      : shards_(shards),
        database_(shards.front()->database()),
        committer_(shards.front()->committer()),
        sealer_(sealer) {}

  struct Report {
    std::uint32_t key = 0;      // the id of the key that seals now
    std::int64_t resealed = 0;  // values
    // The file that keeps the replaced keys, which older backups need; empty: there is none.
    std::filesystem::path kept{};
  };

  // Errors: `conflict` during another rotation or a backup; `not_supported` if a service manager
  // hands over the key file (the message says what to do); `internal` if a value can't be opened:
  // the old keys are kept; `unavailable`: `resume` goes on.
  [[nodiscard]] model::Result<Report> rotate();

  // Finishes an interrupted rotation; seals nothing if there is none. Waits for a running one.
  // Errors as rotate.
  [[nodiscard]] model::Result<Report> resume();

  // Whether the key file holds more than the newest key.
  [[nodiscard]] bool is_unfinished() const;

  // No rotation runs while the lock is held, and a backup needs only the one key of the file (or
  // several, if values could not be sealed anew, or a service manager hands over the file). The
  // thread that gets the lock releases it. `conflict` if a rotation runs or is unfinished.
  [[nodiscard]] model::Result<std::unique_lock<std::mutex>> hold();

  // How many sealed values the present keys open, and how many they do not.
  struct Check {
    std::int64_t opened = 0;
    std::int64_t unreadable = 0;
  };
  [[nodiscard]] model::Result<Check> check() const;

 private:
  [[nodiscard]] model::Result<Report> reseal_all();

  const Shards& shards_;
  Database& database_;    // the first shard's, which has all sealed values
  Committer& committer_;  // the first shard's
  Sealer& sealer_;
  std::mutex running_;
  bool settled_ = false;  // under `running_`: the newest key seals all readable values
};

}  // namespace conversed::store
