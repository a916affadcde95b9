#include "store/text/base64.h"

#include <openssl/evp.h>
#include <sodium.h>

#include <algorithm>
#include <array>

#include "store/model/hex.h"

namespace conversed::text {

std::optional<std::string> decode_base64(std::string_view text, Base64 alphabet) {
  if (alphabet == Base64::standard) {
    while (!text.empty() && text.back() == '=') text.remove_suffix(1);
  }
  std::string bytes(text.size() / 4 * 3 + 3, '\0');
  std::size_t size = 0;
  const int variant = alphabet == Base64::url ? sodium_base64_VARIANT_URLSAFE_NO_PADDING
                                              : sodium_base64_VARIANT_ORIGINAL_NO_PADDING;
  if (sodium_base642bin(reinterpret_cast<unsigned char*>(bytes.data()), bytes.size(), text.data(),
                        text.size(), nullptr, &size, nullptr, variant) != 0) {
    return std::nullopt;
  }
  bytes.resize(size);
  return bytes;
}

// OpenSSL encodes nine times as fast as libsodium, whose time does not depend on the bytes.
std::string encode_base64(std::string_view bytes, Base64 alphabet) {
  std::string text((bytes.size() + 2) / 3 * 4 + 1, '\0');
  const auto size = EVP_EncodeBlock(reinterpret_cast<unsigned char*>(text.data()),
                                    model::bytes_of(bytes), static_cast<int>(bytes.size()));
  text.resize(static_cast<std::size_t>(size));
  if (alphabet == Base64::url) {
    std::ranges::replace(text, '+', '-');
    std::ranges::replace(text, '/', '_');
    text.resize(std::min(text.size(), text.find('=')));
  }
  return text;
}

std::string sha256_in_base64(std::string_view text, Base64 alphabet) {
  std::array<char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(hash.data()), model::bytes_of(text),
                     text.size());
  return encode_base64({hash.data(), hash.size()}, alphabet);
}

}  // namespace conversed::text
