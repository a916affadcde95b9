#include "store/model/webhook_secret.h"

#include <cstdint>
#include <optional>

namespace conversed::model {
namespace {

constexpr std::string_view prefix = "whsec_";
constexpr std::size_t least_bytes = 24;
constexpr std::size_t most_bytes = 64;

int digit_of(char c) {
  constexpr std::string_view alphabet =
      "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789+/";
  const auto at = alphabet.find(c);
  return at == std::string_view::npos ? -1 : static_cast<int>(at);
}

// Of the one spelling only that encoders write.
std::optional<std::string> decoded(std::string_view text) {
  if (text.empty() || text.size() % 4 != 0) return std::nullopt;
  const std::size_t padding = text.ends_with("==") ? 2 : text.ends_with('=') ? 1 : 0;
  text.remove_suffix(padding);
  std::string bytes;
  bytes.reserve(text.size());
  std::uint32_t bits = 0;
  int count = 0;
  for (const char c : text) {
    const int digit = digit_of(c);
    if (digit < 0) return std::nullopt;
    bits = (bits << 6) | static_cast<std::uint32_t>(digit);
    count += 6;
    if (count < 8) continue;
    count -= 8;
    bytes += static_cast<char>((bits >> count) & 0xFF);
  }
  if ((bits & ((1U << count) - 1)) != 0) return std::nullopt;
  return bytes;
}

auto refused(const std::string& reason) {
  return fail(Errc::invalid_argument,
              "a webhook's secret " + reason + "; `conversectl webhook-secret` makes a good one");
}

}  // namespace

Result<std::string> webhook_key(std::string_view secret) {
  if (!secret.starts_with(prefix)) {
    return refused("begins with 'whsec_', else receivers' libraries sign differently");
  }
  auto key = decoded(secret.substr(prefix.size()));
  if (!key) return refused("has base64 with its padding behind 'whsec_'");
  if (key->size() < least_bytes || key->size() > most_bytes) {
    return refused("stands for 24 to 64 bytes, not " + std::to_string(key->size()));
  }
  return std::move(*key);
}

}  // namespace conversed::model
