#pragma once

#include <chrono>
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

// The key of a webhook's signatures: the bytes that `model::webhook_key` makes of its secret. Wiped
// when destroyed. Immutable, hence thread-safe.
class WebhookKey {
 public:
  [[nodiscard]] static model::Result<WebhookKey> of(std::string_view secret);
  ~WebhookKey();
  WebhookKey(WebhookKey&& other) noexcept;
  WebhookKey& operator=(WebhookKey&& other) noexcept;
  WebhookKey(const WebhookKey&) = delete;
  WebhookKey& operator=(const WebhookKey&) = delete;

  // `v1,` and the base64 of HMAC-SHA256 over "<id>.<timestamp>.<body>".
  [[nodiscard]] std::string sign(std::string_view id, std::int64_t unix_seconds,
                                 std::string_view body) const;

 private:
  WebhookKey() = default;

  std::string bytes_;
};

// A new secret of 32 random bytes.
[[nodiscard]] std::string new_webhook_secret();

// {"userId","sessionId","output":{"text","data","traceId","source"}}, compact, UTF-8.
[[nodiscard]] std::string webhook_body(const model::SessionKey& session,
                                       const model::Output& output);

// Content-Type, webhook-id (the output's id, the same at each attempt), webhook-timestamp (of this
// attempt), X-Conversed-Sequence (the output's number within its session), traceparent, and, if
// there are keys, webhook-signature: one signature a key in their order, with blanks between them.
// `body`: the bytes that are sent.
[[nodiscard]] std::vector<std::pair<std::string, std::string>> webhook_headers(
    const model::Output& output, std::span<const WebhookKey> keys, model::Timestamp now,
    std::string_view body);

// RFC 4648 §4, with padding.
[[nodiscard]] std::string base64(std::string_view bytes);

// The traceparent header (W3C Trace Context) of a trace id: version 00, a span of its own, sampled.
// Replaces a text that is no trace id by a new trace id.
[[nodiscard]] std::string traceparent(std::string_view trace_id);

}  // namespace conversed::daemon
