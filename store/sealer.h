#pragma once

#include <array>
#include <cstdint>
#include <filesystem>
#include <map>
#include <string>
#include <string_view>

#include "store/model/result.h"

namespace conversed::store {

// Encrypts the secrets that the store keeps (Connection fields, webhook secrets) with
// XChaCha20-Poly1305. Every sealed value is bound to its place by associated data, so that a value
// that was moved to another row does not open. A value names the key that sealed it: new values
// take the newest key, older keys stay readable, which makes rotation possible.
//
// The key file holds one line a key, `<key id> <64 hex digits>`, the newest last.
// Immutable after `open`: thread-safe.
class Sealer {
 public:
  // Makes a key file with one random key, mode 0600, durable when it returns. `conflict` if the
  // file exists; `unavailable` if it can't be written.
  [[nodiscard]] static model::Result<void> create_key_file(const std::filesystem::path& file);

  // Adds a key; values that are sealed by a Sealer opened after it use the new key. Replaces the
  // file in one step.
  [[nodiscard]] static model::Result<void> add_key(const std::filesystem::path& file);

  // `permission_denied` if anybody but the owner may read or write the file, `not_found` if there
  // is none, `invalid_argument` if it holds no key.
  [[nodiscard]] static model::Result<Sealer> open(const std::filesystem::path& file);

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

  // Tells installations apart, and nothing about the keys: a hash of the oldest one, which no
  // rotation changes.
  [[nodiscard]] std::int64_t fingerprint() const;

 private:
  using Key = std::array<unsigned char, 32>;
  Sealer() = default;

  std::map<std::uint32_t, Key> keys_;
};

}  // namespace conversed::store
