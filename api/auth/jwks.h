#pragma once

#include <cstdint>
#include <memory>
#include <string>
#include <string_view>
#include <vector>

#include "store/model/result.h"

// OpenSSL's name for a key; its headers are for the .cc files.
struct evp_pkey_st;

namespace conversed::api {

// The algorithms that tokens may be signed with (RFC 7518 §3.1). Each belongs to one type of key,
// and a key knows its own: what a token says of it can only agree.
enum class JwtAlgorithm : std::uint8_t { rs256, es256, hs256 };

// A key that signatures are checked with. Immutable, hence thread-safe.
class JwtKey {
 public:
  // RSA of 2048 bits or more, for RS256; the parts are big-endian numbers.
  [[nodiscard]] static model::Result<JwtKey> rsa(std::string id, std::string_view modulus,
                                                 std::string_view exponent);
  // A point of P-256, for ES256; 32 bytes each.
  [[nodiscard]] static model::Result<JwtKey> p256(std::string id, std::string_view x,
                                                  std::string_view y);
  // 32 bytes or more, for HS256.
  [[nodiscard]] static model::Result<JwtKey> shared(std::string secret);

  [[nodiscard]] const std::string& id() const { return id_; }  // "" if it has none
  [[nodiscard]] JwtAlgorithm algorithm() const { return algorithm_; }
  [[nodiscard]] bool verifies(std::string_view text, std::string_view signature) const;

 private:
  JwtKey(std::string id, JwtAlgorithm algorithm) : id_(std::move(id)), algorithm_(algorithm) {}

  std::string id_;
  JwtAlgorithm algorithm_;
  std::shared_ptr<evp_pkey_st> public_key_;  // shared by copies
  std::string secret_;
};

// The keys of a JSON Web Key Set (RFC 7517) that can check one of our algorithms; others in it are
// passed over. `invalid_argument` if the text is no such set, or none of its keys is of use.
[[nodiscard]] model::Result<std::vector<JwtKey>> parse_jwks(std::string_view text);

}  // namespace conversed::api
