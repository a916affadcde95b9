// POST /v2.0/endpoint/inject and POST /inject/{URLToken}: take a message into a conversation.
// POST /v2.0/endpoint/notify and POST /notify/{URLToken}: send a message to the user without the
// Flow.
// POST /management/inject: the operators' inject, with a password instead of a key.
// Each answers when the log holds the message durably.
#include <memory>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "api/live/events.h"
#include "api/live/inject_quota.h"
#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/operations.h"
#include "api/replies.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Error;
using model::EventType;
using model::Result;
using namespace openapi;

// A checked message, ready for the append.
struct Prepared {
  std::shared_ptr<const model::Endpoint> endpoint;
  model::Event event;
  std::optional<queue::AppendKey> key;
};

Result<MessageBody> read_body(const Call& call) {
  const std::string_view in_path = call.parameters["URLToken"];
  const auto place = in_path.empty() ? UrlTokenIn::body : UrlTokenIn::path;
  auto body = parse_message(call.request.body, place);
  if (!body || place == UrlTokenIn::body) return body;
  auto token = normal_url_token(in_path);
  // A malformed token in a path belongs to no Endpoint.
  if (!token) return model::fail(Errc::not_found, "there is no Endpoint with this URLToken");
  body->url_token = std::move(*token);
  return body;
}

std::string key_scope(const Call& call) {
  std::string scope(call.operation.id);
  if (const auto token = call.parameters["URLToken"]; !token.empty()) {
    scope.append(" ").append(token);
  }
  return scope;
}

// Reads the body, finds the Endpoint and reads the key. Each step may refuse the request. The event
// gets the request's trace id.
Result<Prepared> prepare(EventType type, Call& call, MessageServices& services) {
  auto body = read_body(call);
  if (!body) return model::fail(body.error());
  auto endpoint = find_endpoint_for(services.assets, *call.principal, body->url_token);
  if (!endpoint) return model::fail(endpoint.error());
  auto key = append_key(call.request, (*endpoint)->organisation_id, key_scope(call));
  if (!key) return model::fail(key.error());
  auto event =
      make_event(services.clock.now(), type, **endpoint, std::move(*body), call.request, *key);
  event.origin.user_id = call.principal->user_id;
  if (type == EventType::inject) event.origin.organisation_id = (*endpoint)->organisation_id;
  return Prepared{std::move(*endpoint), std::move(event), std::move(*key)};
}

// Refuses a message if its session's inbox is full or the quota is used up. On success takes one
// inject of the quota. A notify takes none.
Result<void> admit(const Prepared& message, MessageServices& services) {
  if (message.event.type == EventType::notify) return {};
  if (auto open = check_session(services, *message.endpoint, message.event); !open) return open;
  return services.quota.take(message.endpoint->organisation_id, services.options.steady_now());
}

// Makes the answer to a message with this id in the log.
using Accepted = Response (*)(std::string id);

// A message between its append, or the look-up of its key, and the log's callback.
struct Waiting {
  MessageServices& services;
  std::shared_ptr<const model::Endpoint> endpoint;
  std::string event_id;
  EventType type;
  Reply reply;
  Accepted accepted;

  void give_back() {
    if (type == EventType::inject) services.quota.give_back(endpoint->organisation_id);
  }
  void accept(std::string id) {
    Response response = accepted(id);
    response.event_id = std::move(id);
    reply.send(std::move(response));
  }
  void append_failed(const Error& error) {
    give_back();
    reply.fail(append_error(error));
  }
};

// A repeat of an accepted message gets the same answer again, even if the inbox, the conversation
// or the quota refuses it now.
void refuse_unless_repeated(const std::shared_ptr<Waiting>& waiting, const queue::AppendKey& key,
                            const Error& refusal) {
  waiting->services.events.look_up(key, [waiting, refusal](auto found) {
    if (!found) return waiting->reply.fail(append_error(found.error()));
    if (!*found) return waiting->reply.fail(refusal);
    waiting->reply.send(waiting->accepted((*found)->id));
  });
}

template <EventType type, Accepted accepted>
void accept(Call call, MessageServices& services, Reply reply) {
  auto prepared = prepare(type, call, services);
  if (!prepared) return reply.fail(prepared.error());
  auto waiting = std::make_shared<Waiting>(
      Waiting{services, prepared->endpoint, prepared->event.id, type, std::move(reply), accepted});
  if (auto admitted = admit(*prepared, services); !admitted) {
    if (!prepared->key) return waiting->reply.fail(admitted.error());
    return refuse_unless_repeated(waiting, *prepared->key, admitted.error());
  }

  // The client gets no promise before the log calls back. A crash before the callback owes the
  // client nothing; a crash after it loses nothing.
  if (!prepared->key) {
    services.events.append(std::move(prepared->event), [waiting](auto appended) {
      if (!appended) return waiting->append_failed(appended.error());
      waiting->accept(std::move(waiting->event_id));
    });
    return;
  }
  // The log may repeat a broken append. The claim lets one of two records have effects.
  prepared->event.claim = model::Claim{model::Claim::Kind::keyed_event, prepared->event.id};
  services.events.append_keyed(std::move(prepared->event), *prepared->key,
                               [waiting](auto appended) {
                                 if (!appended) return waiting->append_failed(appended.error());
                                 if (!appended->repeated) {
                                   return waiting->accept(std::move(appended->id));
                                 }
                                 waiting->give_back();
                                 waiting->reply.send(accepted(std::move(appended->id)));
                               });
}

constexpr std::string_view inject_text = "Message was sent to AI for Flow processing";
constexpr std::string_view notify_text = "Message was sent to the user as an AI Agent output";

template <const std::string_view& text>
Response text_answer(std::string id) {
  Response response{.content_type = "text/plain; charset=utf-8", .body = std::string(text)};
  response.headers.emplace_back("X-Inject-Id", std::move(id));
  return response;
}

Response id_answer(std::string id) {
  return json_response(status::accepted, {{"_id", id}}, {{"X-Inject-Id", id}});
}

template <UrlTokenIn place>
Description describe_text(std::string summary, std::string details, std::string_view text) {
  if (place == UrlTokenIn::path) summary += ", the URLToken in the path";
  return {.summary = std::move(summary),
          .details = std::move(details),
          .parameters = {idempotency_parameter()},
          .body = json_content(message_schema(place)),
          .answers = {accepted_answer(text)},
          .errors = specified_errors()};
}

template <UrlTokenIn place>
Description describe_inject() {
  return describe_text<place>(
      "Send a message as a user input",
      "Passes the message to the Flow of an active conversation. After the answer the message "
      "is durable and has its effects exactly once.",
      inject_text);
}

template <UrlTokenIn place>
Description describe_notify() {
  return describe_text<place>(
      "Send a message as an AI Agent output",
      "Delivers the message to the user of a conversation without running the Flow.", notify_text);
}

Description describe_management_inject() {
  return {.summary = "Inject a message with a password instead of a key",
          .parameters = {idempotency_parameter()},
          .body = json_content(message_schema(UrlTokenIn::body)),
          .answers = {{.status = status::accepted,
                       .description = "The message is durable.",
                       .content = json_content(accepted_schema()),
                       .headers = {inject_id_header()}}},
          .errors = {402, 404, 409, 502, 504}};
}

// Rows of events: without an audit entry, and with the API's reduced errors.
constexpr Operation event_row(std::string_view id, std::string_view path, AnyHandler run,
                              Describe describe) {
  Operation row = for_clients(id, Method::post, path, Role::conversation_admin, run, describe);
  row.error_shape = ErrorShape::reduced;
  row.audited = Audited::never;
  return row;
}

constexpr Operation measured(Operation row) {
  row.is_inject = true;
  return row;
}

constexpr auto inject = accept<EventType::inject, text_answer<inject_text>>;
constexpr auto notify = accept<EventType::notify, text_answer<notify_text>>;
constexpr auto management_inject = accept<EventType::inject, id_answer>;

}  // namespace

Operations inject_operations() {
  static constexpr Operation rows[] = {
      measured(event_row("inject_2_0", "/v2.0/endpoint/inject", inject,
                         describe_inject<UrlTokenIn::body>)),
      measured(event_row("injectByToken", "/inject/{URLToken}", inject,
                         describe_inject<UrlTokenIn::path>)),
      event_row("notify_2_0", "/v2.0/endpoint/notify", notify, describe_notify<UrlTokenIn::body>),
      event_row("notifyByToken", "/notify/{URLToken}", notify, describe_notify<UrlTokenIn::path>),
      measured(for_operators("managementInject", Method::post, "/management/inject",
                             Role::conversation_admin, management_inject,
                             describe_management_inject)),
  };
  return rows;
}

}  // namespace conversed::api
