// POST /management/inject: the operators' inject, with a password in place of a key; answers 202
// with the id once the log holds it durably.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/openapi/messages.h"
#include "api/operations/inject.h"
#include "api/operations/operations.h"
#include "api/replies.h"

namespace conversed::api {
namespace {

void answer_id(Reply& reply, const std::string& inject_id) {
  send_json(reply, 202, {{"_id", inject_id}}, {{"X-Inject-Id", inject_id}});
}

void management_inject(Call call, MessageServices& services, Reply reply) {
  accept_message(model::EventType::inject, management_inject_operation, call, UrlTokenIn::body,
                 services, std::move(reply), answer_id);
}

openapi::Description describe_management_inject() {
  return {.summary = "Inject a message with a password in place of a key",
          .parameters = {openapi::idempotency_parameter()},
          .body = openapi::json_content(openapi::message_schema(UrlTokenIn::body)),
          .answers = {{.status = 202,
                       .description = "The message is durable.",
                       .content = openapi::json_content(openapi::accepted_schema()),
                       .headers = {openapi::inject_id_header()}}},
          .errors = {402, 404, 409, 502, 504}};
}

}  // namespace

constinit const Operation management_inject_operation{.id = "managementInject",
                                                      .method = Method::post,
                                                      .path = "/management/inject",
                                                      .credential = Credential::basic,
                                                      .role = Role::conversation_admin,
                                                      .is_inject = true,
                                                      .run = management_inject,
                                                      .describe = describe_management_inject};

}  // namespace conversed::api
