#include "api/openapi/messages.h"

#include <utility>

#include "api/representation/query.h"
#include "store/model/ids.h"

namespace conversed::api::openapi {

Schema message_schema(UrlTokenIn place) {
  Schema schema = object(
      {{"userId", conversation_name()},
       {"sessionId", conversation_name()},
       {"text", described("What the user says, or is said to.", nullable(text())), Need::optional},
       {"data", described("Sent along with it.", nullable(free_object())), Need::optional}});
  if (place == UrlTokenIn::body)
    schema = with_members(std::move(schema), {{"URLToken", url_token()}});
  schema = with_condition(std::move(schema), has_text("text"), anything(),
                          object({{"data", free_object()}}));
  Value example{{"userId", "bob"},
                {"sessionId", "s1"},
                {"text", "Hello"},
                {"data", {{"event", "packed"}, {"orderId", "A-1"}}}};
  if (place == UrlTokenIn::body) example["URLToken"] = std::string(model::url_token_length, 'a');
  schema = with_example(std::move(example), std::move(schema));
  return named(
      place == UrlTokenIn::body ? "Message" : "MessageToEndpoint",
      described("A message. It needs a `text` that is not empty, or `data`.", std::move(schema)));
}

Schema output_schema() {
  return named("Output", object({{"seq", integer(1)},
                                 {"text", text()},
                                 {"data", anything()},
                                 {"traceId", text()},
                                 {"source", text(1)},
                                 {"createdAt", unix_time()}}));
}

Schema accepted_schema() {
  return named("Accepted", object({{"_id", id()}}));
}

Schema session_names_schema() {
  return object(
      {{"projectId", id()}, {"endpointId", id()}, {"userId", text(1)}, {"sessionId", text(1)}});
}

Parameter idempotency_parameter() {
  // Spaces around a header's value are none of it.
  Schema schema = text_like("^[!-~]([ -~]{0,253}[!-~])?$");
  return header_parameter("Idempotency-Key",
                          "Makes a repetition safe: under the same key the same body has its "
                          "effects once, and another body is a 409.",
                          std::move(schema));
}

Parameter project_parameter() {
  return query_parameter("projectId", "The project; required unless there is just one to see.",
                         id());
}

Parameter wait_until(std::string_view what) {
  return query_parameter("wait", "How many seconds to wait for " + std::string(what) + " at most.",
                         with_default(0, integer(0, max_wait_seconds)));
}

Header inject_id_header() {
  return {"X-Inject-Id", "The id of the accepted message.", id()};
}

Answer accepted_answer(std::string_view says) {
  return {.description = "The message is durable.",
          .content = {{"text/plain", constant(says)}},
          .headers = {inject_id_header()}};
}

}  // namespace conversed::api::openapi
