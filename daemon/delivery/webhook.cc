#include "daemon/delivery/webhook.h"

#include <sodium.h>

#include <array>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/model/hex.h"
#include "store/model/json.h"
#include "store/model/trace.h"
#include "store/text/base64.h"
#include "store/text/utf8.h"
#include "store/text/webhook_secret.h"

namespace conversed::daemon {
namespace {

using model::append_json;
using model::bytes_of;

// Most texts need no escape. A JSON value per text would cost five allocations.
void append_quoted(std::string& body, const std::string& text) {
  bool plain = true;
  bool ascii = true;
  for (const char each : text) {
    const auto c = static_cast<unsigned char>(each);
    plain = plain && c >= 0x20 && c != '"' && c != '\\';
    ascii = ascii && c < 0x80;
  }
  if (!plain || !(ascii || text::is_utf8(text))) return append_json(body, text);
  body += '"';
  body += text;
  body += '"';
}

}  // namespace

// The state of the HMAC after its first block. That block depends on the key alone and is hashed
// once.
struct WebhookKey::Hashed : crypto_auth_hmacsha256_state {
  explicit Hashed(std::string_view key) : crypto_auth_hmacsha256_state() {
    crypto_auth_hmacsha256_init(this, bytes_of(key), key.size());
  }
  ~Hashed() { sodium_memzero(this, sizeof *this); }
  Hashed(const Hashed&) = default;
  Hashed& operator=(const Hashed&) = delete;
};

model::Result<WebhookKey> WebhookKey::of(std::string_view secret) {
  auto bytes = text::webhook_key(secret);
  if (!bytes) return model::fail(std::move(bytes.error()));
  WebhookKey key(*bytes);
  sodium_memzero(bytes->data(), bytes->size());
  return key;
}

WebhookKey::WebhookKey(std::string_view bytes) : hashed_(std::make_unique<const Hashed>(bytes)) {}
WebhookKey::WebhookKey(WebhookKey&&) noexcept = default;
WebhookKey::~WebhookKey() = default;

std::string WebhookKey::sign(std::string_view id, std::int64_t unix_seconds,
                             std::string_view body) const {
  const std::string time = std::to_string(unix_seconds);
  Hashed state = *hashed_;
  const auto add = [&state](std::string_view part) {
    crypto_auth_hmacsha256_update(&state, bytes_of(part), part.size());
  };
  add(id);
  add(".");
  add(time);
  add(".");
  add(body);
  std::array<unsigned char, crypto_auth_hmacsha256_BYTES> mac{};
  crypto_auth_hmacsha256_final(&state, mac.data());
  return "v1," + text::encode_base64({reinterpret_cast<const char*>(mac.data()), mac.size()},
                                     text::Base64::standard);
}

std::string new_webhook_secret() {
  std::string bytes(32, '\0');
  randombytes_buf(bytes.data(), bytes.size());
  return "whsec_" + text::encode_base64(bytes, text::Base64::standard);
}

std::string webhook_body(const model::SessionKey& session, const model::Output& output) {
  // Composed as text: a JSON tree would cost more than all other work here.
  std::string body;
  body.reserve(160 + session.user_id.size() + session.session_id.size() + output.text.size());
  body += R"({"userId":)";
  append_quoted(body, session.user_id);
  body += R"(,"sessionId":)";
  append_quoted(body, session.session_id);
  body += R"(,"output":{"text":)";
  append_quoted(body, output.text);
  body += R"(,"data":)";
  if (output.data.is_null()) {
    body += "null";
  } else {
    append_json(body, output.data);
  }
  body += R"(,"traceId":)";
  append_quoted(body, output.trace_id);
  body += R"(,"source":)";
  append_quoted(body, output.source);
  body += "}}";
  return body;
}

std::vector<std::pair<std::string, std::string>> webhook_headers(const model::Output& output,
                                                                 std::span<const WebhookKey> keys,
                                                                 model::Timestamp now,
                                                                 std::string_view body,
                                                                 std::string_view span_id) {
  const auto seconds = std::chrono::floor<std::chrono::seconds>(now).time_since_epoch().count();
  std::vector<std::pair<std::string, std::string>> headers;
  headers.reserve(6);
  headers.emplace_back("Content-Type", "application/json; charset=utf-8");
  headers.emplace_back("webhook-id", output.id);
  headers.emplace_back("webhook-timestamp", std::to_string(seconds));
  std::string signatures;
  for (const auto& key : keys) {
    if (!signatures.empty()) signatures += ' ';
    signatures += key.sign(output.id, seconds, body);
  }
  if (!signatures.empty()) headers.emplace_back("webhook-signature", std::move(signatures));
  headers.emplace_back("X-Conversed-Sequence", std::to_string(output.seq));
  if (!output.trace_id.empty()) {
    headers.emplace_back("traceparent",
                         model::make_traceparent(model::trace_id_of(output.trace_id), span_id,
                                                 model::is_sampled(output.input_id)));
  }
  if (!output.tracestate.empty()) headers.emplace_back("tracestate", output.tracestate);
  return headers;
}

}  // namespace conversed::daemon
