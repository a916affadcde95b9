// POST /v2.0/endpoint/inject and POST /inject/{URLToken}: take a message into a conversation;
// answer once the log holds it durably.
#include "api/operations/inject.h"

#include <memory>
#include <optional>
#include <utility>

#include "api/live/events.h"
#include "api/live/inject_quota.h"
#include "api/openapi/description.h"
#include "api/openapi/messages.h"
#include "api/operations/accept.h"
#include "api/operations/operations.h"
#include "api/replies.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Error;
using model::Result;

// What would be appended, if nothing speaks against it.
struct Prepared {
  std::shared_ptr<const model::Endpoint> endpoint;
  model::Event event;
  std::optional<queue::AppendKey> key;
};

Result<MessageBody> read_body(const Call& call, UrlTokenIn place) {
  auto body = parse_message(call.request.body, place);
  if (!body || place == UrlTokenIn::body) return body;
  auto token = normal_url_token(call.parameters["URLToken"]);
  // In a path a wrong token is just one that nobody has.
  if (!token) return model::fail(Errc::not_found, "there is no Endpoint with this URLToken");
  body->url_token = std::move(*token);
  return body;
}

std::string route_of(const Operation& operation, const Call& call) {
  std::string route(operation.id);
  if (const auto token = call.parameters["URLToken"]; !token.empty()) {
    route.append(" ").append(token);
  }
  return route;
}

// What the request itself can be refused for: its body, its Endpoint, its key.
Result<Prepared> prepare(model::EventType type, const Operation& operation, const Call& call,
                         UrlTokenIn place, MessageServices& services) {
  auto body = read_body(call, place);
  if (!body) return model::fail(body.error());
  auto endpoint = find_endpoint_for(services.assets, *call.principal, body->url_token);
  if (!endpoint) return model::fail(endpoint.error());
  auto key = append_key(call.request, (*endpoint)->organisation_id, route_of(operation, call));
  if (!key) return model::fail(key.error());
  auto event =
      make_event(services.clock.now(), type, **endpoint, std::move(*body), call.request.trace_id);
  return Prepared{std::move(*endpoint), std::move(event), std::move(*key)};
}

// What it can be refused for at this moment only. On success one inject of the quota is taken; what
// is only said to the user is none.
Result<void> admit(const Prepared& message, MessageServices& services) {
  if (message.event.type == model::EventType::notify) return {};
  if (auto open = check_session(services, *message.endpoint, message.event); !open) return open;
  return services.quota.take(message.endpoint->organisation_id, services.options.steady_now());
}

// A message between its append, or the look-up of its key, and the log's answer.
struct Waiting {
  MessageServices& services;
  const Operation& operation;
  std::string organisation_id;
  model::EventType type;
  Reply reply;
  void (*accepted)(Reply& reply, const std::string& id);

  void give_back() {
    if (type == model::EventType::inject) services.quota.give_back(organisation_id);
  }
  void refuse(const Error& error) { send_error(reply, operation, error); }
  void append_failed(const Error& error) {
    give_back();
    refuse(append_error(error));
  }
};

// Whatever has become of the inbox, the conversation or the quota: one that was accepted under the
// key is answered as it was then.
void refuse_unless_repeated(const std::shared_ptr<Waiting>& waiting, const queue::AppendKey& key,
                            const Error& refusal) {
  waiting->services.events.look_up(key, [waiting, refusal](auto found) {
    if (!found) return waiting->refuse(append_error(found.error()));
    if (!*found) return waiting->refuse(refusal);
    waiting->accepted(waiting->reply, (*found)->id);
  });
}

constexpr std::string_view inject_answer = "Message was sent to AI for Flow processing";

void answer_inject(Reply& reply, const std::string& id) {
  answer_text(reply, id, std::string(inject_answer));
}

void inject(Call call, MessageServices& services, Reply reply) {
  accept_message(model::EventType::inject, inject_operation, call, UrlTokenIn::body, services,
                 std::move(reply), answer_inject);
}

void inject_by_token(Call call, MessageServices& services, Reply reply) {
  accept_message(model::EventType::inject, inject_by_token_operation, call, UrlTokenIn::path,
                 services, std::move(reply), answer_inject);
}

openapi::Description describe_inject() {
  return {.summary = "Send a message as a user input",
          .details =
              "Passes the message to the Flow of an active conversation. Once it is "
              "answered, the message is durable and has its effects exactly once.",
          .parameters = {openapi::idempotency_parameter()},
          .body = openapi::json_content(openapi::message_schema(UrlTokenIn::body)),
          .answers = {openapi::accepted_answer(inject_answer)},
          .errors = openapi::specified_errors()};
}

openapi::Description describe_inject_by_token() {
  auto description = describe_inject();
  description.summary += ", the URLToken in the path";
  description.parameters.push_back(openapi::url_token_parameter());
  description.body = openapi::json_content(openapi::message_schema(UrlTokenIn::path));
  return description;
}

}  // namespace

void accept_message(model::EventType type, const Operation& operation, const Call& call,
                    UrlTokenIn place, MessageServices& services, Reply reply,
                    void (*accepted)(Reply& reply, const std::string& id)) {
  auto prepared = prepare(type, operation, call, place, services);
  if (!prepared) return send_error(reply, operation, prepared.error());
  auto waiting = std::make_shared<Waiting>(Waiting{
      services, operation, prepared->endpoint->organisation_id, type, std::move(reply), accepted});
  if (auto admitted = admit(*prepared, services); !admitted) {
    if (!prepared->key) return waiting->refuse(admitted.error());
    return refuse_unless_repeated(waiting, *prepared->key, admitted.error());
  }

  // Nothing is promised before the log calls back: a crash above this line owes the client nothing,
  // a crash after it loses nothing.
  if (!prepared->key) {
    services.events.append(prepared->event, [id = prepared->event.id, waiting](auto appended) {
      if (!appended) return waiting->append_failed(appended.error());
      waiting->accepted(waiting->reply, id);
    });
    return;
  }
  // Should a broken append be repeated, two records may come of it: the claim lets one have
  // effects.
  prepared->event.claim = model::Claim{model::Claim::Kind::keyed_event, prepared->event.id};
  services.events.append_keyed(prepared->event, *prepared->key, [waiting](auto appended) {
    if (!appended) return waiting->append_failed(appended.error());
    if (appended->repeated) waiting->give_back();
    waiting->accepted(waiting->reply, appended->id);
  });
}

void answer_text(Reply& reply, const std::string& id, std::string text) {
  reply.send({.status = status::ok,
              .content_type = "text/plain; charset=utf-8",
              .headers = {{"X-Inject-Id", id}},
              .body = std::move(text)});
}

constinit const Operation inject_operation{.id = "inject_2_0",
                                           .method = Method::post,
                                           .path = "/v2.0/endpoint/inject",
                                           .credential = Credential::client,
                                           .role = Role::conversation_admin,
                                           .error_shape = ErrorShape::reduced,
                                           .is_inject = true,
                                           .audited = Audited::never,
                                           .run = inject,
                                           .describe = describe_inject};

constinit const Operation inject_by_token_operation{.id = "injectByToken",
                                                    .method = Method::post,
                                                    .path = "/inject/{URLToken}",
                                                    .credential = Credential::client,
                                                    .role = Role::conversation_admin,
                                                    .error_shape = ErrorShape::reduced,
                                                    .is_inject = true,
                                                    .audited = Audited::never,
                                                    .run = inject_by_token,
                                                    .describe = describe_inject_by_token};

}  // namespace conversed::api
