#include "daemon/delivery/webhook.h"

#include <openssl/core_names.h>
#include <openssl/evp.h>
#include <openssl/params.h>
#include <sodium.h>

#include <array>
#include <memory>
#include <mutex>
#include <new>
#include <nlohmann/json.hpp>
#include <utility>

#include "store/model/hex.h"
#include "store/model/json.h"
#include "store/model/trace.h"
#include "store/text/base64.h"
#include "store/text/webhook_secret.h"

namespace conversed::daemon {
namespace {

using model::append_json;
using model::append_quoted;
using model::bytes_of;

}  // namespace

// HMAC-SHA256 by OpenSSL, which uses the processor's instructions for SHA-256 and takes a third of
// libsodium's time. The context keeps the key, and is wiped when freed.
struct WebhookKey::Hashed {
  struct Free {
    void operator()(EVP_MAC* freed) const { EVP_MAC_free(freed); }
    void operator()(EVP_MAC_CTX* freed) const { EVP_MAC_CTX_free(freed); }
  };

  std::mutex mutex;
  std::unique_ptr<EVP_MAC_CTX, Free> context;
};

namespace {

// A failure means that memory is short.
void check(int done) {
  if (done != 1) throw std::bad_alloc();
}

}  // namespace

model::Result<WebhookKey> WebhookKey::of(std::string_view secret) {
  auto bytes = text::webhook_key(secret);
  if (!bytes) return model::fail(std::move(bytes.error()));
  auto hashed = std::make_unique<Hashed>();
  const std::unique_ptr<EVP_MAC, Hashed::Free> hmac(
      EVP_MAC_fetch(nullptr, OSSL_MAC_NAME_HMAC, nullptr));
  if (hmac) hashed->context.reset(EVP_MAC_CTX_new(hmac.get()));
  std::string digest = OSSL_DIGEST_NAME_SHA2_256;
  const std::array parameters{
      OSSL_PARAM_construct_utf8_string(OSSL_MAC_PARAM_DIGEST, digest.data(), 0),
      OSSL_PARAM_construct_end()};
  const bool is_good = hashed->context && EVP_MAC_init(hashed->context.get(), bytes_of(*bytes),
                                                       bytes->size(), parameters.data()) == 1;
  sodium_memzero(bytes->data(), bytes->size());
  if (!is_good) {
    return model::fail(model::Errc::internal,
                       "OpenSSL can't compute HMAC-SHA256: check its providers in openssl.cnf");
  }
  return WebhookKey(std::move(hashed));
}

WebhookKey::WebhookKey(std::unique_ptr<Hashed> hashed) : hashed_(std::move(hashed)) {}
WebhookKey::WebhookKey(WebhookKey&&) noexcept = default;
WebhookKey::~WebhookKey() = default;

std::string WebhookKey::sign(std::string_view id, std::int64_t unix_seconds,
                             std::string_view body) const {
  const std::string time = std::to_string(unix_seconds);
  std::array<unsigned char, 32> signature{};
  std::size_t size = 0;
  const std::lock_guard lock(hashed_->mutex);
  EVP_MAC_CTX* const context = hashed_->context.get();
  check(EVP_MAC_init(context, nullptr, 0, nullptr));  // with the same key
  for (const std::string_view part :
       {id, std::string_view("."), std::string_view(time), std::string_view("."), body}) {
    check(EVP_MAC_update(context, bytes_of(part), part.size()));
  }
  check(EVP_MAC_final(context, signature.data(), &size, signature.size()));
  return "v1," + text::encode_base64({reinterpret_cast<const char*>(signature.data()), size},
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
