#pragma once

#include <cstdint>
#include <mutex>

#include "store/commit/committer.h"
#include "store/model/result.h"

namespace conversed::store {

class Sealer;

// Changes the key that seals the store's secrets, while all else goes on: a new key is added to
// the key file, every sealed value is sealed anew by batches of bounded size, and only when the
// last one is done the old keys leave the file. Whatever ends the process in between, both keys
// are in the file then, and `resume` goes on. Thread-safe; blocks on the disk.
class KeyRotation {
 public:
  // All must outlive it.
  KeyRotation(Database& database, Committer& committer, Sealer& sealer)
      : database_(database), committer_(committer), sealer_(sealer) {}

  struct Report {
    std::uint32_t key = 0;      // the one that seals now
    std::int64_t resealed = 0;  // values
  };

  // Errors: `conflict` while one runs, or a backup is being made; `not_supported` if the key file
  // is given from outside, its message says what to do; `internal` if a value can't be opened, so
  // that the old keys had to be kept; `unavailable`, `resume` goes on then.
  [[nodiscard]] model::Result<Report> rotate();

  // The rest of a rotation that was cut short; seals nothing if there was none. Waits for one that
  // runs. Errors: as rotate.
  [[nodiscard]] model::Result<Report> resume();

  // Whether the key file holds more than the newest key.
  [[nodiscard]] bool is_unfinished() const;

  // While the lock is held no rotation runs, and the file holds one key: a backup that is made then
  // needs that one alone (or more, where values could not be sealed anew, or the file is somebody
  // else's). To be released by the thread that got it. `conflict` if one runs, or has to go on.
  [[nodiscard]] model::Result<std::unique_lock<std::mutex>> hold();

  // How many sealed values the keys at hand open, and how many they do not.
  struct Check {
    std::int64_t opened = 0;
    std::int64_t unreadable = 0;
  };
  [[nodiscard]] model::Result<Check> check() const;

 private:
  [[nodiscard]] model::Result<Report> reseal_all();

  Database& database_;
  Committer& committer_;
  Sealer& sealer_;
  std::mutex running_;
  bool settled_ = false;  // under `running_`: what can be sealed by the newest key is
};

}  // namespace conversed::store
