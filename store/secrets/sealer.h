#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <memory>
#include <string>
#include <string_view>

#include "store/model/result.h"
#include "store/runtime/guarded.h"

namespace conversed::store {

// The keeper of a key file decides who may read it.
enum class KeyFile : std::uint8_t {
  own,          // the owner: no other user may read or write it
  handed_over,  // a service manager, which hands over a file with access rules of its own
};

// Encrypts the secrets in the store (Connection fields, webhook secrets) with XChaCha20-Poly1305. A
// value names the key that sealed it. The newest key seals new values; older keys still open
// theirs, which makes rotation possible.
//
// A sealed value is bound to its place `table/column/id` by associated data. Moved to another row
// it does not open. Kept by: SealerTest.SealedValueOpensInItsPlaceOnly,
// AssetsTest.SealedFieldsMovedToAnotherRowDoNotOpen.
//
// The key file holds one line a key, `<key id> <64 hex digits>`, the newest last. Thread-safe.
class Sealer {
 public:
  // Makes a key file with one random key, mode 0600, durable when it returns. `conflict` if the
  // file exists; `unavailable` if it can't be written.
  [[nodiscard]] static model::Result<void> create_key_file(const std::filesystem::path& file);

  // Removes temporary files that a crash during `add_key` or `drop_old_keys` left beside an `own`
  // file. `permission_denied` if others than the owner may read or write an `own` file, `not_found`
  // if there is none, `invalid_argument` if it holds no key.
  [[nodiscard]] static model::Result<Sealer> open(const std::filesystem::path& file,
                                                  KeyFile keeper = KeyFile::own);

  // Whether it opens all values that the other one seals.
  [[nodiscard]] bool has_keys_of(const Sealer& other) const;

  // Adds a key that seals values from now on. The older keys still open theirs. The key file is
  // replaced first, in one step. `not_supported` if the file was handed over; `conflict` if it has
  // no room for another key; `unavailable` if it can't be written.
  [[nodiscard]] model::Result<void> add_key();

  // Moves all keys but the newest to a file beside the key file, `master.key.N` with the number of
  // its newest key (mode 0600): no stored value may need them, but older backups do. Returns that
  // file. Until the process ends they still open values that are not stored, such as sign-in forms.
  // Does nothing to a file that was handed over, and returns an empty path. `unavailable` if a file
  // can't be written.
  [[nodiscard]] model::Result<std::filesystem::path> drop_old_keys();

  // The id of the key that seals, and how many keys the file holds.
  [[nodiscard]] std::uint32_t newest() const;
  [[nodiscard]] std::size_t keys_in_file() const;

  Sealer(Sealer&&) noexcept = default;
  Sealer& operator=(Sealer&&) noexcept = default;
  Sealer(const Sealer&) = delete;
  Sealer& operator=(const Sealer&) = delete;
  ~Sealer();  // wipes the keys

  // `place` is "table/column/row id". The result is ASCII: `1.<key id>.<base64>`.
  [[nodiscard]] std::string seal(std::string_view place, std::string_view value) const;

  // `internal` if the value was altered, moved from another place, or sealed by a key that is gone.
  [[nodiscard]] model::Result<std::string> open_sealed(std::string_view place,
                                                       std::string_view sealed) const;

  // A hash of the value under the newest key, in hex; `purpose` tells uses apart. The same value
  // has the same hash until the key is rotated.
  [[nodiscard]] std::string keyed_hash(std::string_view purpose, std::string_view value) const;

  // A hash of the key that seals, to tell keys apart.
  [[nodiscard]] std::int64_t fingerprint() const;
  [[nodiscard]] bool has_key(std::int64_t fingerprint) const;
  // Whether the newest key sealed this value.
  [[nodiscard]] bool is_current(std::string_view sealed) const;

 private:
  using Key = std::array<unsigned char, 32>;
  [[nodiscard]] static std::int64_t fingerprint_of(const Key& key);
  struct Keys {
    std::map<std::uint32_t, Key> by_id;  // never empty
    std::size_t in_file = 0;             // the newest so many
  };
  Sealer(std::filesystem::path file, KeyFile keeper, Keys keys);

  std::filesystem::path file_;
  KeyFile keeper_;
  std::unique_ptr<model::Guarded<Keys>> keys_;  // null once moved from
};

}  // namespace conversed::store
