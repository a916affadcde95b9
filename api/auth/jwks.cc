#include "api/auth/jwks.h"

#include <openssl/bn.h>
#include <openssl/core_names.h>
#include <openssl/crypto.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/hmac.h>
#include <openssl/param_build.h>
#include <sys/stat.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "store/model/hex.h"
#include "store/model/json.h"
#include "store/text/base64.h"

namespace conversed::api {
namespace {

using model::bytes_of;
using model::Errc;
using model::Result;
using nlohmann::json;

constexpr int min_rsa_bits = 2048;
constexpr std::size_t coordinate_bytes = 32;
constexpr std::size_t min_secret_bytes = 32;
constexpr std::size_t max_keys = 64;
constexpr std::size_t max_file_bytes = 256 * 1024;
constexpr std::string_view setting = "contact_center.jwks_file";

struct Deleter {
  void operator()(BIGNUM* number) const { BN_free(number); }
  void operator()(OSSL_PARAM_BLD* builder) const { OSSL_PARAM_BLD_free(builder); }
  void operator()(OSSL_PARAM* parameters) const { OSSL_PARAM_free(parameters); }
  void operator()(EVP_PKEY_CTX* context) const { EVP_PKEY_CTX_free(context); }
  void operator()(EVP_MD_CTX* context) const { EVP_MD_CTX_free(context); }
  void operator()(ECDSA_SIG* signature) const { ECDSA_SIG_free(signature); }
};
template <typename T>
using Owned = std::unique_ptr<T, Deleter>;

Owned<BIGNUM> number_of(std::string_view bytes) {
  return Owned<BIGNUM>(BN_bin2bn(bytes_of(bytes), static_cast<int>(bytes.size()), nullptr));
}

// Makes a public key of the parameters and checks it, for example that its point is on the curve.
std::shared_ptr<EVP_PKEY> public_key(const char* type, OSSL_PARAM_BLD* builder) {
  const Owned<OSSL_PARAM> parameters(OSSL_PARAM_BLD_to_param(builder));
  const Owned<EVP_PKEY_CTX> context(EVP_PKEY_CTX_new_from_name(nullptr, type, nullptr));
  EVP_PKEY* raw = nullptr;
  if (!parameters || !context || EVP_PKEY_fromdata_init(context.get()) <= 0 ||
      EVP_PKEY_fromdata(context.get(), &raw, EVP_PKEY_PUBLIC_KEY, parameters.get()) <= 0) {
    return nullptr;
  }
  std::shared_ptr<EVP_PKEY> key(raw, EVP_PKEY_free);
  const Owned<EVP_PKEY_CTX> check(EVP_PKEY_CTX_new_from_pkey(nullptr, raw, nullptr));
  if (!check || EVP_PKEY_public_check(check.get()) <= 0) return nullptr;
  return key;
}

// Converts the two numbers of an ES256 signature (RFC 7518 §3.4) to the form that OpenSSL reads.
// Empty if the signature is malformed.
std::string der_of(std::string_view signature) {
  if (signature.size() != 2 * coordinate_bytes) return {};
  const Owned<ECDSA_SIG> numbers(ECDSA_SIG_new());
  auto r = number_of(signature.substr(0, coordinate_bytes));
  auto s = number_of(signature.substr(coordinate_bytes));
  if (!numbers || !r || !s || ECDSA_SIG_set0(numbers.get(), r.get(), s.get()) != 1) return {};
  (void)r.release();  // the signature owns it now
  (void)s.release();
  unsigned char* encoded = nullptr;
  const int size = i2d_ECDSA_SIG(numbers.get(), &encoded);
  if (size <= 0) return {};
  std::string der(reinterpret_cast<const char*>(encoded), static_cast<std::size_t>(size));
  OPENSSL_free(encoded);
  return der;
}

bool verify_with(EVP_PKEY* key, std::string_view text, std::string_view signature) {
  const Owned<EVP_MD_CTX> context(EVP_MD_CTX_new());
  return context && EVP_DigestVerifyInit(context.get(), nullptr, EVP_sha256(), nullptr, key) == 1 &&
         EVP_DigestVerify(context.get(), bytes_of(signature), signature.size(), bytes_of(text),
                          text.size()) == 1;
}

bool verify_hmac(std::string_view secret, std::string_view text, std::string_view signature) {
  std::array<unsigned char, EVP_MAX_MD_SIZE> mac{};
  unsigned int size = 0;
  if (HMAC(EVP_sha256(), secret.data(), static_cast<int>(secret.size()), bytes_of(text),
           text.size(), mac.data(), &size) == nullptr) {
    return false;
  }
  return signature.size() == size && CRYPTO_memcmp(mac.data(), signature.data(), size) == 0;
}

std::string text_of(const json& key, const char* name) {
  const auto member = key.find(name);
  return member != key.end() && member->is_string() ? member->get<std::string>() : std::string();
}

bool is_or_lacks(const json& key, const char* name, std::string_view wanted) {
  return !key.contains(name) || text_of(key, name) == wanted;
}

bool is_for_verifying(const json& key) {
  if (!is_or_lacks(key, "use", "sig")) return false;
  const auto operations = key.find("key_ops");
  if (operations == key.end()) return true;
  return operations->is_array() &&
         std::find(operations->begin(), operations->end(), json("verify")) != operations->end();
}

// An RSA key for RS256, of 2048 bits or more. The arguments are big-endian numbers.
std::shared_ptr<EVP_PKEY> rsa_key(std::string_view modulus, std::string_view exponent) {
  const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  const auto n = number_of(modulus);
  const auto e = number_of(exponent);
  if (!builder || !n || !e || BN_num_bits(n.get()) < min_rsa_bits ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_N, n.get()) != 1 ||
      OSSL_PARAM_BLD_push_BN(builder.get(), OSSL_PKEY_PARAM_RSA_E, e.get()) != 1) {
    return nullptr;
  }
  return public_key("RSA", builder.get());
}

// A P-256 key for ES256. The coordinates have 32 bytes each.
std::shared_ptr<EVP_PKEY> p256_key(std::string_view x, std::string_view y) {
  const Owned<OSSL_PARAM_BLD> builder(OSSL_PARAM_BLD_new());
  const std::string point = "\x04" + std::string(x) + std::string(y);  // uncompressed (SEC 1)
  if (!builder || x.size() != coordinate_bytes || y.size() != coordinate_bytes ||
      OSSL_PARAM_BLD_push_utf8_string(builder.get(), OSSL_PKEY_PARAM_GROUP_NAME, "prime256v1", 0) !=
          1 ||
      OSSL_PARAM_BLD_push_octet_string(builder.get(), OSSL_PKEY_PARAM_PUB_KEY, point.data(),
                                       point.size()) != 1) {
    return nullptr;
  }
  return public_key("EC", builder.get());
}

// Nothing for a key that fits none of the supported algorithms.
std::optional<JwtKey> key_of(const json& key) {
  if (!key.is_object() || !is_for_verifying(key)) return std::nullopt;
  const auto part = [&](const char* name) {
    return text::decode_base64(text_of(key, name), text::Base64::url).value_or("");
  };
  JwtKey made{.id = text_of(key, "kid")};
  const auto type = text_of(key, "kty");
  if (type == "RSA" && is_or_lacks(key, "alg", "RS256")) {
    made.algorithm = JwtAlgorithm::rs256;
    made.public_key = rsa_key(part("n"), part("e"));
  } else if (type == "EC" && text_of(key, "crv") == "P-256" && is_or_lacks(key, "alg", "ES256")) {
    made.algorithm = JwtAlgorithm::es256;
    made.public_key = p256_key(part("x"), part("y"));
  }
  return made.public_key ? std::optional(std::move(made)) : std::nullopt;
}

}  // namespace

Result<JwtKey> shared_key(std::string secret) {
  if (secret.size() < min_secret_bytes) {
    return model::fail(Errc::invalid_argument, "a shared secret has 32 bytes or more");
  }
  return JwtKey{.id = "", .algorithm = JwtAlgorithm::hs256, .secret = std::move(secret)};
}

bool JwtKey::verifies(std::string_view text, std::string_view signature) const {
  switch (algorithm) {
    case JwtAlgorithm::rs256:
      return verify_with(public_key.get(), text, signature);
    case JwtAlgorithm::es256: {
      const auto der = der_of(signature);
      return !der.empty() && verify_with(public_key.get(), text, der);
    }
    case JwtAlgorithm::hs256:
      return verify_hmac(secret, text, signature);
  }
  return false;
}

Result<std::vector<JwtKey>> parse_jwks(std::string_view text) {
  auto set = model::parse_json(text);
  if (!set) return model::fail(Errc::invalid_argument, "no JSON: " + set.error().message);
  const auto list = set->is_object() ? set->find("keys") : set->end();
  if (list == set->end() || !list->is_array()) {
    return model::fail(Errc::invalid_argument, "not a JSON Web Key Set: it has no list of keys");
  }
  if (list->size() > max_keys) {
    return model::fail(Errc::invalid_argument, "more than " + std::to_string(max_keys) + " keys");
  }
  std::vector<JwtKey> keys;
  for (const json& each : *list) {
    if (auto key = key_of(each)) keys.push_back(std::move(*key));
  }
  if (keys.empty()) {
    return model::fail(Errc::invalid_argument,
                       "none of its keys is for RS256 (RSA of 2048 bits or more) or ES256 (P-256)");
  }
  return keys;
}

Result<std::string> read_setting_file(const std::string& path, std::string_view named) {
  const auto refuse = [&](const char* why) {
    return model::fail(Errc::invalid_argument, std::string(named) + ": " + path + " " + why);
  };
  std::ifstream file(path, std::ios::binary);
  if (!file) return refuse("can't be read");
  std::string text(max_file_bytes + 1, '\0');
  file.read(text.data(), static_cast<std::streamsize>(text.size()));
  text.resize(static_cast<std::size_t>(file.gcount()));
  if (file.bad() || text.empty()) return refuse("can't be read, or is empty");
  if (text.size() > max_file_bytes) return refuse("is too large");
  return text;
}

Result<std::unique_ptr<JwksFile>> JwksFile::open(std::string path, KeyFileListener listener) {
  std::unique_ptr<JwksFile> file(new JwksFile(std::move(path), std::move(listener)));
  // The version comes first: if the file changes during the read, the next look finds it.
  auto version = file->version();
  auto keys = file->read();
  if (!keys) return model::fail(keys.error());
  file->state_.with([&](State& state) {
    state.keys = *std::move(keys);
    state.version = version;
  });
  return file;
}

JwksFile::Keys JwksFile::keys(TimePoint now, std::chrono::milliseconds interval) {
  Keys known;
  std::optional<Version> before;
  const bool mine = state_.with([&](State& state) {
    known = state.keys;
    if (state.looking || (state.looked_at && now - *state.looked_at < interval)) return false;
    state.looking = true;
    state.looked_at = now;
    before = state.version;
    return true;
  });
  if (!mine) return known;
  auto found = version();
  if (found == before) {
    state_.with([](State& state) { state.looking = false; });
    return known;
  }
  take(found, read());
  return state_.with([](const State& state) { return state.keys; });
}

void JwksFile::take(std::optional<Version> version, Result<Keys> read) {
  const bool was_unusable = state_.with([&](State& state) {
    state.looking = false;
    state.version = version;
    if (read) state.keys = *read;
    return std::exchange(state.unusable, !read.has_value());
  });
  if (!listener_) return;
  if (read) {
    listener_(KeyFileNews::reloaded, std::string(setting) + ": " + path_ + " was read again");
  } else if (!was_unusable) {
    listener_(KeyFileNews::unusable, read.error().message + "; the keys read before stay in use");
  }
}

std::optional<JwksFile::Version> JwksFile::version() const {
  struct stat status {};
  if (::stat(path_.c_str(), &status) != 0) return std::nullopt;
  return Version{static_cast<std::int64_t>(status.st_ino),
                 status.st_size,
                 status.st_mtim.tv_sec,
                 status.st_mtim.tv_nsec,
                 status.st_ctim.tv_sec,
                 status.st_ctim.tv_nsec};
}

Result<JwksFile::Keys> JwksFile::read() const {
  const auto text = read_setting_file(path_, setting);
  if (!text) return model::fail(text.error());
  auto keys = parse_jwks(*text);
  if (!keys) {
    return model::fail(Errc::invalid_argument,
                       std::string(setting) + ": " + path_ + ": " + keys.error().message);
  }
  return std::make_shared<const std::vector<JwtKey>>(*std::move(keys));
}

}  // namespace conversed::api
