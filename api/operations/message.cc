// POST /{URLToken}: a user's own message; answers with what the execution that it begins has said,
// when that waits or ends.
#include <memory>
#include <string>
#include <utility>

#include "api/live/answer.h"
#include "api/live/blocking_pool.h"
#include "api/live/events.h"
#include "api/live/waiters.h"
#include "api/openapi/description.h"
#include "api/openapi/messages.h"
#include "api/operations/accept.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/model/ids.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Error;
using model::Event;
using model::Result;

// An answer's text. A kept one of a user who was erased is empty: the message had its effects, and
// what was said to it is gone.
std::string body_of(std::string stored, const model::SessionKey& session) {
  return stored.empty() ? compose_answer({}, session.user_id, session.session_id)
                        : std::move(stored);
}

// A message with an Idempotency-Key on its way to the one id that the key stands for.
class KeyedMessage : public std::enable_shared_from_this<KeyedMessage> {
 public:
  KeyedMessage(Services& services, Event event, queue::AppendKey key, AnswerWaiters::Ticket ticket)
      : services_(services), event_(std::move(event)), key_(std::move(key)), ticket_(ticket) {}

  void append() {
    event_.claim = model::Claim{model::Claim::Kind::keyed_event, event_.id};
    services_.events.append_keyed(event_, key_, [self = shared_from_this()](auto appended) {
      if (!appended) return self->end(append_error(appended.error()));
      if (appended->repeated) self->follow(appended->id);
    });
  }

 private:
  // Superseding a failed one is a race with others who do the same; losing it once more than this
  // means that the key's messages keep failing.
  static constexpr int max_rounds = 4;

  void end(Error error) { services_.waiters.end(ticket_, model::fail(std::move(error))); }

  // On a thread of the log, which must not block: the rest is the pool's.
  void follow(const std::string& first_id) {
    // Waiting before looking: an answer that comes in between finds the waiter.
    if (!services_.waiters.move(ticket_, first_id)) return;
    const bool posted =
        services_.pool.post([self = shared_from_this(), first_id] { self->look(first_id); });
    if (!posted) end({Errc::unavailable, "too many requests wait; try again later"});
  }

  void look(const std::string& first_id) {
    auto stored = services_.store.answers().find(first_id, services_.store.timer_now());
    if (!stored) return end(store_error(stored.error()));
    if (!*stored) return append_again(first_id);
    if ((*stored)->status < 400) {
      services_.waiters.end(ticket_, Answer{(*stored)->status, std::move((*stored)->body)});
      return;
    }
    supersede(first_id);
  }

  // Unanswered: it runs, or its answer was committed after the look and before the wait, or its
  // record is lost. Another record under its id settles all three: its claim has been taken, and
  // the worker answers with what is stored, or it has not.
  void append_again(const std::string& first_id) {
    event_.id = first_id;
    event_.claim = model::Claim{model::Claim::Kind::keyed_event, first_id};
    services_.events.append(event_, [self = shared_from_this()](auto appended) {
      if (!appended) self->end(append_error(appended.error()));
    });
  }

  // The first one failed, and failures are not kept: this one takes its place under a new id.
  void supersede(const std::string& failed_id) {
    if (++rounds_ > max_rounds) return end({Errc::conflict, "the Idempotency-Key is in use"});
    key_.supersedes = failed_id;
    event_.id = model::new_id();
    if (services_.waiters.move(ticket_, event_.id)) append();
  }

  Services& services_;
  Event event_;
  queue::AppendKey key_;
  const AnswerWaiters::Ticket ticket_;
  int rounds_ = 0;
};

// A message that is refused, unless its key stands for one that was answered: then that answer is
// given again. One that is still unanswered is not appended once more, as it would be otherwise:
// what refuses it is that its session can take no more.
struct Refused {
  Services& services;
  Error refusal;
  model::SessionKey session;
  Reply reply;

  void refuse(const Error& error) { send_error(reply, message_operation, error); }

  void replay(const std::string& first_id) {
    auto stored = services.store.answers().find(first_id, services.store.timer_now());
    if (!stored) return refuse(store_error(stored.error()));
    if (!*stored || (*stored)->status >= 400) return refuse(refusal);
    send_json_text(reply, (*stored)->status, body_of(std::move((*stored)->body), session));
  }
};

void refuse_unless_answered(Services& services, const queue::AppendKey& key, const Error& refusal,
                            const model::SessionKey& session, Reply reply) {
  auto refused = std::make_shared<Refused>(Refused{services, refusal, session, std::move(reply)});
  services.events.look_up(key, [refused](auto found) {
    if (!found) return refused->refuse(append_error(found.error()));
    if (!*found) return refused->refuse(refused->refusal);
    // This may be a thread of the log, which must not block on the store.
    const bool posted = refused->services.pool.post(
        refused->session.project_id, BlockingPool::Line::others,
        [refused, first_id = (*found)->id] { refused->replay(first_id); });
    if (!posted) refused->refuse({Errc::unavailable, "too many requests wait; try again later"});
  });
}

AnswerWaiters::Ticket wait_for_answer(Services& services, const Event& event, Reply reply) {
  auto waiting = std::make_shared<Reply>(std::move(reply));
  const auto deadline = services.options.steady_now() + services.options.api.turn_timeout;
  const auto until = event.awaited_by ? event.awaited_by->until : model::Timestamp{};
  return services.waiters.wait(
      event.id, deadline,
      [waiting, key = event.session](Result<Answer> answer) {
        if (!answer) return send_error(*waiting, message_operation, answer.error());
        send_json_text(*waiting, answer->status, body_of(std::move(answer->body), key));
      },
      // What the session holds for this client goes to the webhook, as soon as its lane runs.
      [&services, key = event.session, until](const std::string& input_id) {
        if (services.left) services.left(input_id, key, until);
      });
}

void message(Call call, Services& services, Reply reply) {
  auto body = parse_message(call.request.body, UrlTokenIn::path);
  if (!body) return send_error(reply, message_operation, body.error());
  auto token = normal_url_token(call.parameters["URLToken"]);
  if (!token) return send_error(reply, message_operation, {Errc::not_found, "no such Endpoint"});
  auto endpoint = find_endpoint(services, *token);
  if (!endpoint) return send_error(reply, message_operation, endpoint.error());
  auto key = append_key(call.request, (*endpoint)->organisation_id, "message " + *token);
  if (!key) return send_error(reply, message_operation, key.error());
  auto event = make_event(services, model::EventType::user_message, **endpoint, std::move(*body),
                          call.request.trace_id);
  if (auto open = check_session(services, **endpoint, event); !open) {
    if (!*key) return send_error(reply, message_operation, open.error());
    return refuse_unless_answered(services, **key, open.error(), event.session, std::move(reply));
  }

  if (services.awaited_for) {
    event.awaited_by = services.awaited_for(services.options.api.turn_timeout);
  }
  // The waiter is there before the record is: no answer can come too early.
  const auto ticket = wait_for_answer(services, event, std::move(reply));
  if (*key) {
    std::make_shared<KeyedMessage>(services, std::move(event), std::move(**key), ticket)->append();
    return;
  }
  services.events.append(event, [&services, ticket](auto appended) {
    if (!appended) services.waiters.end(ticket, model::fail(append_error(appended.error())));
  });
}

openapi::Description describe_message() {
  const auto output = openapi::object({{"text", openapi::text()},
                                       {"data", openapi::anything()},
                                       {"traceId", openapi::text()},
                                       {"source", openapi::text(1)}});
  const auto answer = openapi::object({{"text", openapi::text()},
                                       {"data", openapi::anything()},
                                       {"outputStack", openapi::list_of(output)},
                                       {"userId", openapi::text(1)},
                                       {"sessionId", openapi::text(1)}});
  return {.tag = "Conversations",
          .summary = "Send a user's own message",
          .details =
              "Begins or continues a conversation; answered when what it sets off waits or "
              "ends. 504: it still runs, and what it says goes the other ways.",
          .parameters = {openapi::url_token_parameter(), openapi::idempotency_parameter()},
          .body = openapi::json_content(openapi::message_schema(UrlTokenIn::path)),
          .answers = {{.description = "What the Flow said.",
                       .content = openapi::json_content(openapi::named("Answer", answer))}},
          .errors = {404, 409, 502, 504}};
}

}  // namespace

constinit const Operation message_operation{.id = "message",
                                            .method = Method::post,
                                            .path = "/{URLToken}",
                                            .credential = Credential::open,
                                            .run = message,
                                            .describe = describe_message};

}  // namespace conversed::api
