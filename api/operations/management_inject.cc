// POST /management/inject: the operators' inject, with a password in place of a key; answers 202
// with the id once the log holds it durably.
#include <nlohmann/json.hpp>
#include <utility>

#include "api/operations.h"
#include "api/operations/inject.h"
#include "api/operations/replies.h"

namespace conversed::api {
namespace {

void answer_id(Reply& reply, const std::string& inject_id) {
  send_json(reply, 202, {{"_id", inject_id}}, {{"X-Inject-Id", inject_id}});
}

void management_inject(Call call, Services& services, Reply reply) {
  accept_message(model::EventType::inject, management_inject_operation, call, UrlTokenIn::body,
                 services, std::move(reply), answer_id);
}

}  // namespace

constinit const Operation management_inject_operation{.id = "managementInject",
                                                      .method = Method::post,
                                                      .path = "/management/inject",
                                                      .credential = Credential::basic,
                                                      .role = Role::conversation_admin,
                                                      .is_inject = true,
                                                      .run = management_inject};

}  // namespace conversed::api
