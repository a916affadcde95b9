// POST /v2.0/endpoint/inject and POST /inject/{URLToken}: take a message into a conversation;
// answer once the log holds it durably.
#include "api/operations/inject.h"

#include <memory>
#include <utility>

#include "api/events.h"
#include "api/inject_quota.h"
#include "api/operations.h"
#include "api/operations/accept.h"
#include "api/operations/replies.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Error;
using model::Result;

struct Admitted {
  model::Event event;
  std::optional<queue::AppendKey> key;
  std::string organisation_id;
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

// Everything that can be said against the message before it is appended. On success one inject of
// the quota is taken; what is only said to the user is none.
Result<Admitted> admit(model::EventType type, const Operation& operation, const Call& call,
                       UrlTokenIn place, Services& services) {
  auto body = read_body(call, place);
  if (!body) return model::fail(body.error());
  auto endpoint = find_endpoint_for(services, *call.principal, body->url_token);
  if (!endpoint) return model::fail(endpoint.error());
  const std::string& organisation = (*endpoint)->organisation_id;
  auto key = append_key(call.request, organisation, route_of(operation, call));
  if (!key) return model::fail(key.error());
  auto event = make_event(services, type, **endpoint, std::move(*body), call.request.trace_id);
  Admitted admitted{std::move(event), std::move(*key), organisation};
  if (type == model::EventType::notify) return admitted;
  if (auto open = check_session(services, **endpoint, admitted.event); !open) {
    return model::fail(open.error());
  }
  if (auto taken = services.quota.take(organisation, services.options.steady_now()); !taken) {
    return model::fail(taken.error());
  }
  return admitted;
}

// A message between its append and the log's answer.
struct Waiting {
  Services& services;
  const Operation& operation;
  std::string organisation_id;
  model::EventType type;
  Reply reply;
  void (*accepted)(Reply& reply, const std::string& id);

  void give_back() {
    if (type == model::EventType::inject) services.quota.give_back(organisation_id);
  }
  void refuse(const Error& error) {
    give_back();
    send_error(reply, operation, append_error(error));
  }
};

void answer_text(Reply& reply, const std::string& inject_id) {
  reply.send({.status = status::ok,
              .content_type = "text/plain; charset=utf-8",
              .headers = {{"X-Inject-Id", inject_id}},
              .body = "Message was sent to AI for Flow processing"});
}

void inject(Call call, Services& services, Reply reply) {
  accept_message(model::EventType::inject, inject_operation, call, UrlTokenIn::body, services,
                 std::move(reply), answer_text);
}

void inject_by_token(Call call, Services& services, Reply reply) {
  accept_message(model::EventType::inject, inject_by_token_operation, call, UrlTokenIn::path,
                 services, std::move(reply), answer_text);
}

}  // namespace

void accept_message(model::EventType type, const Operation& operation, const Call& call,
                    UrlTokenIn place, Services& services, Reply reply,
                    void (*accepted)(Reply& reply, const std::string& id)) {
  auto admitted = admit(type, operation, call, place, services);
  if (!admitted) return send_error(reply, operation, admitted.error());

  // Nothing is promised before the log calls back: a crash above this line owes the client nothing,
  // a crash after it loses nothing.
  auto waiting = std::make_shared<Waiting>(Waiting{
      services, operation, std::move(admitted->organisation_id), type, std::move(reply), accepted});
  if (!admitted->key) {
    services.events.append(admitted->event, [id = admitted->event.id, waiting](auto appended) {
      if (!appended) return waiting->refuse(appended.error());
      waiting->accepted(waiting->reply, id);
    });
    return;
  }
  // Should a broken append be repeated, two records may come of it: the claim lets one have
  // effects.
  admitted->event.claim = model::Claim{model::Claim::Kind::keyed_event, admitted->event.id};
  services.events.append_keyed(admitted->event, *admitted->key, [waiting](auto appended) {
    if (!appended) return waiting->refuse(appended.error());
    if (appended->repeated) waiting->give_back();
    waiting->accepted(waiting->reply, appended->id);
  });
}

constinit const Operation inject_operation{.id = "inject",
                                           .method = Method::post,
                                           .path = "/v2.0/endpoint/inject",
                                           .credential = Credential::api_key,
                                           .role = Role::conversation_admin,
                                           .error_shape = ErrorShape::reduced,
                                           .run = inject};

constinit const Operation inject_by_token_operation{.id = "injectByToken",
                                                    .method = Method::post,
                                                    .path = "/inject/{URLToken}",
                                                    .credential = Credential::api_key,
                                                    .role = Role::conversation_admin,
                                                    .error_shape = ErrorShape::reduced,
                                                    .run = inject_by_token};

}  // namespace conversed::api
