#include "store/text/webhook_secret.h"

#include "store/text/base64.h"

namespace conversed::text {
namespace {

constexpr std::string_view prefix = "whsec_";
constexpr std::size_t least_bytes = 24;
constexpr std::size_t most_bytes = 64;

auto refused(const std::string& reason) {
  return model::fail(model::Errc::invalid_argument, "a webhook's secret " + reason +
                                                        "; `conversectl webhook-secret` makes a "
                                                        "good one");
}

}  // namespace

model::Result<std::string> webhook_key(std::string_view secret) {
  if (!secret.starts_with(prefix)) {
    return refused("begins with 'whsec_', else receivers' libraries sign differently");
  }
  const auto written = secret.substr(prefix.size());
  auto key = decode_base64(written, Base64::standard);
  // Receivers' decoders may want the padding.
  if (!key || key->empty() || encode_base64(*key, Base64::standard) != written) {
    return refused("has base64 with its padding behind 'whsec_'");
  }
  if (key->size() < least_bytes || key->size() > most_bytes) {
    return refused("stands for 24 to 64 bytes, not " + std::to_string(key->size()));
  }
  return std::move(*key);
}

}  // namespace conversed::text
