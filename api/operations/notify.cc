// POST /v2.0/endpoint/notify and POST /notify/{URLToken}: have a message said to the user as an AI
// Agent output, past the Flow; answer once the log holds it durably.
#include <utility>

#include "api/openapi/description.h"
#include "api/openapi/messages.h"
#include "api/operations/inject.h"
#include "api/operations/operations.h"

namespace conversed::api {
namespace {

constexpr std::string_view notify_answer = "Message was sent to the user as an AI Agent output";

void answer_notify(Reply& reply, const std::string& id) {
  answer_text(reply, id, std::string(notify_answer));
}

void notify(Call call, MessageServices& services, Reply reply) {
  accept_message(model::EventType::notify, notify_operation, call, UrlTokenIn::body, services,
                 std::move(reply), answer_notify);
}

void notify_by_token(Call call, MessageServices& services, Reply reply) {
  accept_message(model::EventType::notify, notify_by_token_operation, call, UrlTokenIn::path,
                 services, std::move(reply), answer_notify);
}

openapi::Description describe_notify() {
  return {.summary = "Send a message as an AI Agent output",
          .details = "Delivers the message to the user of a conversation, past the Flow.",
          .parameters = {openapi::idempotency_parameter()},
          .body = openapi::json_content(openapi::message_schema(UrlTokenIn::body)),
          .answers = {openapi::accepted_answer(notify_answer)},
          .errors = openapi::specified_errors()};
}

openapi::Description describe_notify_by_token() {
  auto description = describe_notify();
  description.summary += ", the URLToken in the path";
  description.parameters.push_back(openapi::url_token_parameter());
  description.body = openapi::json_content(openapi::message_schema(UrlTokenIn::path));
  return description;
}

}  // namespace

constinit const Operation notify_operation{.id = "notify_2_0",
                                           .method = Method::post,
                                           .path = "/v2.0/endpoint/notify",
                                           .credential = Credential::client,
                                           .role = Role::conversation_admin,
                                           .error_shape = ErrorShape::reduced,
                                           .audited = Audited::never,
                                           .run = notify,
                                           .describe = describe_notify};

constinit const Operation notify_by_token_operation{.id = "notifyByToken",
                                                    .method = Method::post,
                                                    .path = "/notify/{URLToken}",
                                                    .credential = Credential::client,
                                                    .role = Role::conversation_admin,
                                                    .error_shape = ErrorShape::reduced,
                                                    .audited = Audited::never,
                                                    .run = notify_by_token,
                                                    .describe = describe_notify_by_token};

}  // namespace conversed::api
