#include "store/text/base64.h"

#include <sodium.h>

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

std::string encode_base64(std::string_view bytes, Base64 alphabet) {
  const int variant = alphabet == Base64::url ? sodium_base64_VARIANT_URLSAFE_NO_PADDING
                                              : sodium_base64_VARIANT_ORIGINAL;
  std::string text(sodium_base64_encoded_len(bytes.size(), variant), '\0');
  sodium_bin2base64(text.data(), text.size(), model::bytes_of(bytes), bytes.size(), variant);
  text.pop_back();  // the NUL that the library counts
  return text;
}

std::string sha256_in_base64(std::string_view text, Base64 alphabet) {
  std::array<char, crypto_hash_sha256_BYTES> hash{};
  crypto_hash_sha256(reinterpret_cast<unsigned char*>(hash.data()), model::bytes_of(text),
                     text.size());
  return encode_base64({hash.data(), hash.size()}, alphabet);
}

}  // namespace conversed::text
