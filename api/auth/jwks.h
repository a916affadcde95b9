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

}  // namespace conversed::api
