#include "api/openapi/document.h"

namespace conversed::api::openapi {
namespace {

constexpr std::string_view details =
    "One output of a session, sent to the `output.webhook.url` of its Endpoint. The outputs of a "
    "session are sent one after the other, in the order of `X-Conversed-Sequence`. Outputs of "
    "different sessions are sent side by side.\n\n**Signature** (Standard Webhooks). The secret of "
    "the Endpoint is `whsec_` and the key in base64. A signature is `v1,` and the base64 of the "
    "HMAC-SHA256, under the key, of `webhook-id`, a period, `webhook-timestamp`, a period and the "
    "body as it was sent. `webhook-signature` has one signature for each secret in use, with a "
    "blank between them. After a change of the secret the signature of the new secret comes first, "
    "and that of the old one follows for `delivery.secret_overlap`. Accept the request if one of "
    "them fits and the timestamp is at most five minutes away; otherwise answer 401. An Endpoint "
    "without a secret has no signature.\n\n**Retries**. Any 2xx accepts a delivery. 410 makes it a "
    "dead letter at once. After any other status, redirects included, and after no status within "
    "`delivery.timeout` (10 s), it is sent again under the same `webhook-id`: after 1 s, 2 s, 4 s "
    "and so on up to 5 minutes, each up to a quarter longer. `Retry-After` can delay it further, "
    "by an hour at most. The session's next outputs wait for it. While an Endpoint fails, one "
    "request at a time shows whether it works again. An output that is not delivered within "
    "`delivery.retry_for` (1 day) of its creation becomes a dead letter, and the session's next "
    "output follows. A delivery whose answer was lost is sent again: ignore a `webhook-id` that "
    "you have seen.";

Value header(std::string_view name, std::string_view description, Need need, Schema schema) {
  return {{"name", name},
          {"in", "header"},
          {"description", description},
          {"required", need == Need::required},
          {"schema", std::move(schema)}};
}

Value headers() {
  return Value::array(
      {header("webhook-id", "The output's id, the same in each try.", Need::required,
              text_like("^[A-Za-z0-9-]+$")),
       header("webhook-timestamp", "When this try was signed: Unix time in seconds.",
              Need::required, integer(0)),
       header("webhook-signature", "One signature, or several with a blank between them.",
              Need::optional, text_like("^v1,[A-Za-z0-9+/]{43}=( v1,[A-Za-z0-9+/]{43}=)*$")),
       header("X-Conversed-Sequence",
              "The output's number in its session, as in `/outputs`. Numbers that the webhook "
              "does not get were the answer to a message.",
              Need::required, integer(1)),
       header("traceparent", "W3C Trace Context; the trace is the output's.", Need::optional,
              text_like("^00-[0-9a-f]{32}-[0-9a-f]{16}-0[01]$")),
       header("tracestate", "As the request that led to the output sent it.", Need::optional,
              text(1))});
}

Schema body() {
  const Schema output = object(
      {{"text", text()},
       {"data", described("Data of the Flow or notify: any JSON value.", anything())},
       {"traceId", described("The trace of the input that led to it; may be empty.", text())},
       {"source", described("`bot`.", text(1))}});
  return with_example({{"userId", "bob"},
                       {"sessionId", "s1"},
                       {"output",
                        {{"text", "Your order A-1 is on its way."},
                         {"data", Value::object()},
                         {"traceId", "0af7651916cd43dd8448eb211c80319c"},
                         {"source", "bot"}}}},
                      object({{"userId", text(1)}, {"sessionId", text(1)}, {"output", output}}));
}

}  // namespace

Value delivery_item() {
  const Value responses{{"2XX", {{"description", "The delivery is accepted."}}},
                        {"410", {{"description", "The delivery becomes a dead letter."}}},
                        {"default", {{"description", "The delivery is sent again later."}}}};
  const Value post{
      {"operationId", "deliverOutput"},
      {"tags", Value::array({webhooks_tag})},
      {"summary", "Deliver an output"},
      {"description", details},
      {"parameters", headers()},
      {"requestBody",
       {{"required", true}, {"content", {{"application/json", {{"schema", body()}}}}}}},
      {"responses", responses},
      {"security", Value::array()}};
  return {{"post", post}};
}

}  // namespace conversed::api::openapi
