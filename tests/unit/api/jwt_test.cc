// Contact-center tokens: OpenSSL makes the keys, this file signs the tokens.
#include "api/auth/jwt.h"

#include <gtest/gtest.h>
#include <openssl/ec.h>
#include <openssl/ecdsa.h>
#include <openssl/evp.h>
#include <openssl/pem.h>
#include <openssl/rsa.h>

#include <filesystem>
#include <fstream>
#include <memory>
#include <nlohmann/json.hpp>

#include "tests/support/temp_folder.h"
#include "tests/unit/api/hmac_token.h"

namespace conversed::api {
namespace {

using nlohmann::json;
using test::unsigned_part;
using Key = std::shared_ptr<EVP_PKEY>;

constexpr std::int64_t now_seconds = 1'780'000'000;
const model::Timestamp now = model::from_unix_ms(now_seconds * 1000);
const auto steady = std::chrono::steady_clock::now();
const std::string shared_secret = "a secret of at least 32 bytes, shared";

std::string url(std::string_view bytes) {
  return test::base64_url(bytes);
}

Key make_rsa(unsigned bits = 2048) {
  return {EVP_RSA_gen(bits), EVP_PKEY_free};
}
Key make_ec() {
  return {EVP_EC_gen("P-256"), EVP_PKEY_free};
}
const Key& rsa() {
  static const Key key = make_rsa();
  return key;
}
const Key& ec() {
  static const Key key = make_ec();
  return key;
}

std::string number(const Key& key, const char* name, int size = 0) {
  BIGNUM* raw = nullptr;
  EVP_PKEY_get_bn_param(key.get(), name, &raw);
  const std::unique_ptr<BIGNUM, void (*)(BIGNUM*)> value(raw, BN_free);
  std::string bytes(static_cast<std::size_t>(size > 0 ? size : BN_num_bytes(raw)), '\0');
  BN_bn2binpad(raw, reinterpret_cast<unsigned char*>(bytes.data()), static_cast<int>(bytes.size()));
  return bytes;
}

json rsa_jwk(const Key& key, const char* id = "r") {
  return {{"kty", "RSA"}, {"kid", id}, {"n", url(number(key, "n"))}, {"e", url(number(key, "e"))}};
}
json ec_jwk(const Key& key, const char* id = "e") {
  return {{"kty", "EC"},
          {"crv", "P-256"},
          {"kid", id},
          {"x", url(number(key, "qx", 32))},
          {"y", url(number(key, "qy", 32))}};
}

std::string sign_der(const Key& key, const std::string& text) {
  const std::unique_ptr<EVP_MD_CTX, void (*)(EVP_MD_CTX*)> context(EVP_MD_CTX_new(),
                                                                   EVP_MD_CTX_free);
  EVP_DigestSignInit(context.get(), nullptr, EVP_sha256(), nullptr, key.get());
  std::string signature(1024, '\0');
  std::size_t size = signature.size();
  EVP_DigestSign(context.get(), reinterpret_cast<unsigned char*>(signature.data()), &size,
                 reinterpret_cast<const unsigned char*>(text.data()), text.size());
  signature.resize(size);
  return signature;
}

// The two numbers of the signature side by side, as JWTs have them.
std::string sign_ec(const Key& key, const std::string& text) {
  const std::string der = sign_der(key, text);
  const auto* at = reinterpret_cast<const unsigned char*>(der.data());
  const std::unique_ptr<ECDSA_SIG, void (*)(ECDSA_SIG*)> numbers(
      d2i_ECDSA_SIG(nullptr, &at, static_cast<long>(der.size())), ECDSA_SIG_free);
  std::string raw(64, '\0');
  auto* out = reinterpret_cast<unsigned char*>(raw.data());
  BN_bn2binpad(ECDSA_SIG_get0_r(numbers.get()), out, 32);
  BN_bn2binpad(ECDSA_SIG_get0_s(numbers.get()), out + 32, 32);
  return raw;
}

json claims() {
  return {{"sub", "ann@example.com"}, {"exp", now_seconds + 600}};
}

std::string rs256(const json& body, json header = {{"alg", "RS256"}, {"kid", "r"}}) {
  const auto text = unsigned_part(header, body);
  return text + "." + url(sign_der(rsa(), text));
}
std::string es256(const json& body, json header = {{"alg", "ES256"}, {"kid", "e"}}) {
  const auto text = unsigned_part(header, body);
  return text + "." + url(sign_ec(ec(), text));
}
std::string hs256(const json& body, const std::string& secret = shared_secret,
                  const json& header = {{"alg", "HS256"}}) {
  return test::hs256(body, secret, header);
}

class JwtTest : public testing::Test {
 protected:
  JwtTest() {
    keys_.jwks_file = write("jwks.json", json{{"keys", {rsa_jwk(rsa()), ec_jwk(ec())}}}.dump());
    both_ = keys_;
    both_.secret = config::Secret(shared_secret);
  }

  std::string write(const char* name, const std::string& text) const {
    std::ofstream(folder_ / name) << text;
    return folder_ / name;
  }
  static bool accepts(const config::ContactCenterSettings& settings, const std::string& token) {
    const auto verifier = JwtVerifier::open(settings);
    EXPECT_TRUE(verifier) << verifier.error().message;
    return verifier && verifier->verify(token, now, steady).has_value();
  }

  tests::TempFolder folder_;
  config::ContactCenterSettings keys_;
  config::ContactCenterSettings both_;
};

TEST_F(JwtTest, EachAlgorithmIsTakenWithItsKey) {
  EXPECT_TRUE(accepts(both_, rs256(claims())));
  EXPECT_TRUE(accepts(both_, es256(claims())));
  EXPECT_TRUE(accepts(both_, hs256(claims())));
  EXPECT_TRUE(accepts(both_, rs256(claims(), {{"alg", "RS256"}}))) << "the token names no key id";
  const auto verified = JwtVerifier::open(both_)->verify(es256(claims()), now, steady);
  ASSERT_TRUE(verified);
  EXPECT_EQ(verified->subject, "ann@example.com");
}

TEST_F(JwtTest, WithoutKeysAllAreRefused) {
  EXPECT_FALSE(JwtVerifier().verify(rs256(claims()), now, steady));
  EXPECT_FALSE(accepts({}, hs256(claims(), "")));
  EXPECT_FALSE(accepts(keys_, hs256(claims())));
}

TEST_F(JwtTest, AlgorithmNoneIsRefused) {
  for (const char* name : {"none", "None", "NONE", "nOnE", ""}) {
    const auto text = unsigned_part({{"alg", name}}, claims());
    EXPECT_FALSE(accepts(both_, text + ".")) << name;
    EXPECT_FALSE(accepts(both_, text)) << name;
  }
  EXPECT_FALSE(accepts(both_, unsigned_part(json::object(), claims()) + "."));
}

TEST_F(JwtTest, APublicKeyIsNoSharedSecret) {
  std::unique_ptr<BIO, int (*)(BIO*)> memory(BIO_new(BIO_s_mem()), BIO_free);
  PEM_write_bio_PUBKEY(memory.get(), rsa().get());
  char* data = nullptr;
  const auto size = BIO_get_mem_data(memory.get(), &data);
  const std::string pem(data, static_cast<std::size_t>(size));
  const json as_hmac{{"alg", "HS256"}, {"kid", "r"}};
  for (const std::string& secret : {pem, number(rsa(), "n"), url(number(rsa(), "n"))}) {
    EXPECT_FALSE(accepts(keys_, hs256(claims(), secret, as_hmac)));
    EXPECT_FALSE(accepts(both_, hs256(claims(), secret, as_hmac)));
  }
  EXPECT_FALSE(accepts(both_, rs256(claims(), {{"alg", "ES256"}, {"kid", "r"}})));
  EXPECT_FALSE(accepts(both_, es256(claims(), {{"alg", "RS256"}, {"kid", "e"}})));
}

TEST_F(JwtTest, AnySingleChangeIsNoticed) {
  for (const auto& token : {rs256(claims()), es256(claims()), hs256(claims())}) {
    const auto verifier = JwtVerifier::open(both_);
    ASSERT_TRUE(verifier);
    for (std::size_t i = 0; i < token.size(); i += 7) {
      auto changed = token;
      changed[i] = changed[i] == 'A' ? 'B' : 'A';
      EXPECT_FALSE(verifier->verify(changed, now, steady)) << i;
    }
    EXPECT_FALSE(verifier->verify(token + "A", now, steady));
    EXPECT_FALSE(verifier->verify(token + "=", now, steady));
    EXPECT_FALSE(verifier->verify(token + ".", now, steady));
    EXPECT_FALSE(verifier->verify(token.substr(0, token.rfind('.')), now, steady));
  }
}

TEST_F(JwtTest, TimesAreCheckedWithALittleLeeway) {
  const auto with = [](const char* name, const json& value) {
    auto body = claims();
    body[name] = value;
    return hs256(body);
  };
  const auto leeway = JwtVerifier::leeway.count();
  EXPECT_TRUE(accepts(both_, with("exp", now_seconds - leeway + 1)));
  EXPECT_FALSE(accepts(both_, with("exp", now_seconds - leeway)));
  EXPECT_TRUE(accepts(both_, with("nbf", now_seconds + leeway)));
  EXPECT_FALSE(accepts(both_, with("nbf", now_seconds + leeway + 1)));
  EXPECT_TRUE(accepts(both_, with("exp", static_cast<double>(now_seconds) + 0.5)));
  for (const json& value : {json("1999999999"), json(nullptr), json(-1), json(1e300)}) {
    EXPECT_FALSE(accepts(both_, with("exp", value))) << value;
    EXPECT_FALSE(accepts(both_, with("nbf", value))) << value;
  }
  auto body = claims();
  body.erase("exp");
  EXPECT_FALSE(accepts(both_, hs256(body))) << "a token that never expires";
}

TEST_F(JwtTest, IssuerAudienceAndSubjectAreChecked) {
  auto settings = both_;
  settings.issuer = "https://center.example";
  settings.audience = "conversed";
  const auto token = [](const json& more) {
    auto body = claims();
    body.update(more);
    return hs256(body);
  };
  const json right{{"iss", "https://center.example"}, {"aud", "conversed"}};
  EXPECT_TRUE(accepts(settings, token(right)));
  EXPECT_TRUE(accepts(settings, token({{"iss", right["iss"]}, {"aud", {"other", "conversed"}}})));
  for (const json& wrong :
       {json{{"iss", right["iss"]}}, json{{"aud", "conversed"}},
        json{{"iss", "https://center.example/"}, {"aud", "conversed"}},
        json{{"iss", right["iss"]}, {"aud", "other"}}, json{{"iss", right["iss"]}, {"aud", 1}},
        json{{"iss", {"https://center.example"}}, {"aud", "conversed"}},
        json{{"iss", right["iss"]}, {"aud", json::array()}}}) {
    EXPECT_FALSE(accepts(settings, token(wrong))) << wrong;
  }
  for (const json& subject : {json(""), json(1), json(nullptr)}) {
    EXPECT_FALSE(accepts(both_, token({{"sub", subject}}))) << subject;
  }
}

TEST_F(JwtTest, HeaderThatWeDoNotUnderstandIsRefused) {
  EXPECT_FALSE(
      accepts(both_, rs256(claims(), {{"alg", "RS256"}, {"crit", {"b64"}}, {"b64", true}})));
  EXPECT_FALSE(accepts(both_, rs256(claims(), {{"alg", "RS256"}, {"kid", "unknown"}})));
  EXPECT_FALSE(accepts(both_, rs256(claims(), {{"alg", "RS384"}, {"kid", "r"}})));
  EXPECT_FALSE(accepts(both_, rs256(claims(), {{"alg", {"RS256"}}, {"kid", "r"}})));
}

TEST_F(JwtTest, JunkIsRefused) {
  for (const std::string& junk :
       {std::string(), std::string("."), std::string(".."), std::string("..."),
        std::string("a.b.c"), url("{}") + "." + url("{}") + ".",
        url("[]") + "." + url("1") + "." + url("x"),
        url(std::string(JwtVerifier::max_token_bytes, ' ')) + ".e30.", std::string(100'000, '.')}) {
    EXPECT_FALSE(accepts(both_, junk)) << junk.substr(0, 40);
  }
}

TEST_F(JwtTest, KeysThatAreTooShortOrForAnotherUseAreNotTaken) {
  const auto weak = make_rsa(1024);
  auto off_curve = ec_jwk(ec());
  off_curve["y"] = off_curve["x"];
  auto for_encryption = rsa_jwk(rsa());
  for_encryption["use"] = "enc";
  auto other_algorithm = rsa_jwk(rsa());
  other_algorithm["alg"] = "PS256";
  const json symmetric{{"kty", "oct"}, {"k", url(shared_secret)}, {"alg", "HS256"}};
  for (const json& key : {rsa_jwk(weak), off_curve, for_encryption, other_algorithm, symmetric,
                          json{{"kty", "RSA"}}, json("key"), json::object()}) {
    EXPECT_FALSE(parse_jwks(json{{"keys", {key}}}.dump())) << key;
    EXPECT_TRUE(parse_jwks(json{{"keys", {key, ec_jwk(ec())}}}.dump())) << key;
  }
  for (const char* text : {"", "[]", "{}", R"({"keys":{}})", R"({"keys":[]})", "nonsense"}) {
    EXPECT_FALSE(parse_jwks(text)) << text;
  }
}

class KeyFileTest : public JwtTest {
 protected:
  KeyFileTest() {
    auto opened = JwtVerifier::open(keys_, [this](KeyFileNews came, std::string_view message) {
      news_.push_back(came);
      message_ = message;
    });
    EXPECT_TRUE(opened);
    if (opened) verifier_ = *std::move(opened);
  }
  // Replaces the file atomically, as deployments do.
  void replace(const std::string& text) {
    std::filesystem::rename(write("next", text), keys_.jwks_file);
  }
  void replace(const json& keys) { replace(json{{"keys", keys}}.dump()); }
  bool accepts(const std::string& token) { return verifier_.verify(token, now, time_).has_value(); }
  void pass(std::chrono::milliseconds time) { time_ += time; }

  JwtVerifier verifier_;
  JwtVerifier::TimePoint time_ = steady;
  std::vector<KeyFileNews> news_;
  std::string message_;
};

TEST_F(KeyFileTest, ChangedKeysAreTaken) {
  ASSERT_TRUE(accepts(es256(claims())));
  replace(json::array({rsa_jwk(rsa())}));
  EXPECT_TRUE(accepts(es256(claims()))) << "the file is not read again so soon";
  pass(JwksFile::usual_interval);
  EXPECT_FALSE(accepts(es256(claims()))) << "the key was taken away";
  EXPECT_TRUE(accepts(rs256(claims())));
  EXPECT_EQ(news_, std::vector{KeyFileNews::reloaded});
  pass(JwksFile::usual_interval);
  EXPECT_TRUE(accepts(rs256(claims())));
  EXPECT_EQ(news_.size(), 1U) << "an unchanged file is not read again";
}

TEST_F(KeyFileTest, AnUnknownKeyReloadsTheFileSoon) {
  replace(json::array({rsa_jwk(rsa())}));
  ASSERT_TRUE(accepts(rs256(claims())));
  replace(json::array({rsa_jwk(rsa()), ec_jwk(ec(), "newer")}));
  const auto token = es256(claims(), {{"alg", "ES256"}, {"kid", "newer"}});
  EXPECT_FALSE(accepts(token)) << "strangers can't force a read with each token";
  pass(JwksFile::soon_interval);
  auto forged = token;
  forged[forged.size() - 10] = forged[forged.size() - 10] == 'A' ? 'B' : 'A';
  EXPECT_FALSE(accepts(forged));
  EXPECT_TRUE(accepts(token));
}

TEST_F(KeyFileTest, AnUnusableFileKeepsTheKeysAndIsReportedOnce) {
  const std::string unusable[] = {"nonsense", R"({"keys":[]})", R"({"keys":[{"kty":"oct"}]})"};
  for (const auto& text : unusable) {
    replace(text);
    pass(JwksFile::usual_interval);
    EXPECT_TRUE(accepts(rs256(claims()))) << text;
  }
  std::filesystem::remove(keys_.jwks_file);
  pass(JwksFile::usual_interval);
  EXPECT_TRUE(accepts(es256(claims())));
  EXPECT_EQ(news_, std::vector{KeyFileNews::unusable});
  EXPECT_NE(message_.find("contact_center.jwks_file"), std::string::npos);
  replace(json::array({ec_jwk(ec())}));
  pass(JwksFile::usual_interval);
  EXPECT_FALSE(accepts(rs256(claims())));
  EXPECT_EQ(news_, (std::vector{KeyFileNews::unusable, KeyFileNews::reloaded}));
}

TEST_F(JwtTest, SecretComesFromAFileAsWell) {
  config::ContactCenterSettings settings;
  settings.secret_file = write("secret", shared_secret + "\n");
  EXPECT_TRUE(accepts(settings, hs256(claims())));
  settings.secret_file = write("secret", "short");
  const auto refused = JwtVerifier::open(settings);
  ASSERT_FALSE(refused);
  EXPECT_EQ(refused.error().message.find("short"), std::string::npos);
  settings.secret_file = folder_ / "missing";
  EXPECT_FALSE(JwtVerifier::open(settings));
  settings = {};
  settings.jwks_file = write("jwks.json", "{}");
  EXPECT_NE(JwtVerifier::open(settings).error().message.find("contact_center.jwks_file"),
            std::string::npos);
}

}  // namespace
}  // namespace conversed::api
