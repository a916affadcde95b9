#pragma once

#include <array>
#include <chrono>
#include <cstdint>
#include <functional>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/result.h"
#include "store/runtime/guarded.h"

// OpenSSL's name for a key; its headers are for the .cc files.
struct evp_pkey_st;

namespace conversed::api {

// The supported signature algorithms (RFC 7518 §3.1). Each key has one algorithm. A token that
// names another algorithm for the key is refused.
enum class JwtAlgorithm : std::uint8_t { rs256, es256, hs256 };

// A key that verifies signatures. Immutable, hence thread-safe.
struct JwtKey {
  std::string id;  // "" if it has none
  JwtAlgorithm algorithm = JwtAlgorithm::hs256;
  std::shared_ptr<evp_pkey_st> public_key = nullptr;  // RSA or P-256; shared by copies
  std::string secret = {};                            // for HS256

  [[nodiscard]] bool verifies(std::string_view text, std::string_view signature) const;
};

// A shared secret for HS256. `invalid_argument` if it is shorter than 32 bytes.
[[nodiscard]] model::Result<JwtKey> shared_key(std::string secret);

// The keys of a JSON Web Key Set (RFC 7517) that fit a supported algorithm. Skips other keys.
// `invalid_argument` if the text is not a key set or has no usable key.
[[nodiscard]] model::Result<std::vector<JwtKey>> parse_jwks(std::string_view text);

// The text of a file of 1 byte to 256 KiB. `setting` names it in errors, which are all
// `invalid_argument`.
[[nodiscard]] model::Result<std::string> read_setting_file(const std::string& path,
                                                           std::string_view setting);

// A change of the key file while the daemon runs.
enum class KeyFileNews : std::uint8_t { reloaded, unusable };
// `message` names the file and the reason, and never the content.
using KeyFileListener = std::function<void(KeyFileNews news, std::string_view message)>;

// The keys of a JWKS file. The file is read again when it has changed. If the file becomes
// unusable, the keys that were read last stay in use. The listener receives one call for that, and
// the next call when the file is good again. Thread-safe. The listener runs on the thread that
// looked at the file, and must not block.
class JwksFile {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Keys = std::shared_ptr<const std::vector<JwtKey>>;

  // The time between two looks at the file: usually, and when a token names an unknown key.
  static constexpr std::chrono::milliseconds usual_interval{1'000};
  static constexpr std::chrono::milliseconds soon_interval{100};

  // `invalid_argument` if the file can't be read or has no usable key.
  [[nodiscard]] static model::Result<std::unique_ptr<JwksFile>> open(std::string path,
                                                                     KeyFileListener listener);

  // The keys that verify a token. Costs a stat() once an interval, and a read if the file has
  // changed. Other threads get the previous keys during the read.
  [[nodiscard]] Keys keys(TimePoint now, std::chrono::milliseconds interval);

 private:
  // Identifies a version of the file: inode, size, and the times at which the content and the inode
  // changed. The inode's time also finds a copy that keeps the content's time. Nothing if the file
  // does not exist.
  using Version = std::array<std::int64_t, 6>;
  struct State {
    Keys keys;
    std::optional<Version> version;
    std::optional<TimePoint> looked_at;
    bool looking = false;
    bool unusable = false;
  };

  JwksFile(std::string path, KeyFileListener listener)
      : path_(std::move(path)), listener_(std::move(listener)) {}

  [[nodiscard]] std::optional<Version> version() const;
  [[nodiscard]] model::Result<Keys> read() const;
  void take(std::optional<Version> version, model::Result<Keys> read);

  const std::string path_;
  const KeyFileListener listener_;
  model::Guarded<State> state_;
};

}  // namespace conversed::api
