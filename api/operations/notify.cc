// POST /v2.0/endpoint/notify and POST /notify/{URLToken}: have a message said to the user as an AI
// Agent output, past the Flow; answer once the log holds it durably.
#include <utility>

#include "api/operations.h"
#include "api/operations/inject.h"

namespace conversed::api {
namespace {

void answer_notify(Reply& reply, const std::string& id) {
  answer_text(reply, id, "Message was sent to the user as an AI Agent output");
}

void notify(Call call, Services& services, Reply reply) {
  accept_message(model::EventType::notify, notify_operation, call, UrlTokenIn::body, services,
                 std::move(reply), answer_notify);
}

void notify_by_token(Call call, Services& services, Reply reply) {
  accept_message(model::EventType::notify, notify_by_token_operation, call, UrlTokenIn::path,
                 services, std::move(reply), answer_notify);
}

}  // namespace

constinit const Operation notify_operation{.id = "notify",
                                           .method = Method::post,
                                           .path = "/v2.0/endpoint/notify",
                                           .credential = Credential::client,
                                           .role = Role::conversation_admin,
                                           .error_shape = ErrorShape::reduced,
                                           .run = notify};

constinit const Operation notify_by_token_operation{.id = "notifyByToken",
                                                    .method = Method::post,
                                                    .path = "/notify/{URLToken}",
                                                    .credential = Credential::client,
                                                    .role = Role::conversation_admin,
                                                    .error_shape = ErrorShape::reduced,
                                                    .run = notify_by_token};

}  // namespace conversed::api
