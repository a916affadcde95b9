#pragma once

#include <memory>
#include <span>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "store/model/clock.h"
#include "store/model/effects.h"
#include "store/model/event.h"
#include "store/model/result.h"

// The content of a POST to a webhook: https://www.standardwebhooks.com, and the session's order.
namespace conversed::daemon {

// The key of a webhook's signatures: the bytes that `text::webhook_key` makes of its secret. Wiped
// when destroyed. Thread-safe.
class WebhookKey {
 public:
  // `invalid_argument`: the secret is none. `internal`: OpenSSL has no HMAC.
  [[nodiscard]] static model::Result<WebhookKey> of(std::string_view secret);
  ~WebhookKey();
  WebhookKey(WebhookKey&&) noexcept;
  WebhookKey& operator=(WebhookKey&&) = delete;

  // `v1,` and the base64 of HMAC-SHA256 over "<id>.<timestamp>.<body>".
  [[nodiscard]] std::string sign(std::string_view id, std::int64_t unix_seconds,
                                 std::string_view body) const;

 private:
  struct Hashed;
  explicit WebhookKey(std::unique_ptr<Hashed> hashed);

  std::unique_ptr<Hashed> hashed_;
};

[[nodiscard]] std::string new_webhook_secret();

// {"userId","sessionId","output":{"text","data","traceId","source"}}, compact, UTF-8.
[[nodiscard]] std::string webhook_body(const model::SessionKey& session,
                                       const model::Output& output);

// Content-Type, webhook-id (the output's id, the same at each attempt), webhook-timestamp (of this
// attempt), X-Conversed-Sequence (the output's number within its session), traceparent, tracestate
// if there is one, and, if there are keys, webhook-signature: one signature per key, in the order
// of the keys, separated by blanks. `body`: the bytes that are sent. `span_id`: of this attempt.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> webhook_headers(
    const model::Output& output, std::span<const WebhookKey> keys, model::Timestamp now,
    std::string_view body, std::string_view span_id);

}  // namespace conversed::daemon
