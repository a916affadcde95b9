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

// The algorithms that tokens may be signed with (RFC 7518 §3.1). Each key has one algorithm. A
// token that names another one for the key is refused.
enum class JwtAlgorithm : std::uint8_t { rs256, es256, hs256 };

// A key that signatures are checked with. Immutable, hence thread-safe.
struct JwtKey {
  std::string id;  // "" if it has none
  JwtAlgorithm algorithm = JwtAlgorithm::hs256;
  std::shared_ptr<evp_pkey_st> public_key = nullptr;  // RSA or P-256; shared by copies
  std::string secret = {};                            // for HS256

  [[nodiscard]] bool verifies(std::string_view text, std::string_view signature) const;
};

// Of 32 bytes or more, for HS256; else `invalid_argument`.
[[nodiscard]] model::Result<JwtKey> shared_key(std::string secret);

// The keys of a JSON Web Key Set (RFC 7517) that can check one of our algorithms; others in it are
// passed over. `invalid_argument` if the text is no such set, or none of its keys is of use.
[[nodiscard]] model::Result<std::vector<JwtKey>> parse_jwks(std::string_view text);

// The text of a file of 1 byte to 256 KiB. `setting` names it in errors, which are all
// `invalid_argument`.
[[nodiscard]] model::Result<std::string> read_setting_file(const std::string& path,
                                                           std::string_view setting);

// What happened to a file of keys that was fine when the daemon started.
enum class KeyFileNews : std::uint8_t { reloaded, unusable };
// `message` says which file and why, and never what is in it.
using KeyFileListener = std::function<void(KeyFileNews news, std::string_view message)>;

// The keys of a JWKS file, read again when the file has changed. If a file becomes unusable, the
// keys that were read last stay in use, and the listener is told once until the file is good again.
// Thread-safe; the listener is called on the thread that looked, and must not block.
class JwksFile {
 public:
  using TimePoint = std::chrono::steady_clock::time_point;
  using Keys = std::shared_ptr<const std::vector<JwtKey>>;

  // The time between two looks at the file: usually, and when a token names an unknown key.
  static constexpr std::chrono::milliseconds usual_interval{1'000};
  static constexpr std::chrono::milliseconds soon_interval{100};

  // `invalid_argument` if the file can't be read or has no key of use.
  [[nodiscard]] static model::Result<std::unique_ptr<JwksFile>> open(std::string path,
                                                                     KeyFileListener listener);

  // The keys to check a token with. Costs a stat() once an interval, and a read if the file has
  // changed; other threads get the known keys meanwhile.
  [[nodiscard]] Keys keys(TimePoint now, std::chrono::milliseconds interval);

 private:
  // Tells one version of a file from another: inode, size, and the times at which the content and
  // the inode changed (the latter also for a copy that keeps times). Nothing if there is no file.
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
