// POST /{URLToken}: a user's own message. Answers with the outputs of its execution when the
// execution waits or ends, or at the deadline.
#include <algorithm>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <utility>

#include "api/http/http_syntax.h"
#include "api/live/answer.h"
#include "api/live/blocking_pool.h"
#include "api/live/events.h"
#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/model/trace.h"
#include "store/runtime/guarded.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Error;
using model::Event;
using model::Result;

Error unprocessed_error() {
  return {Errc::internal, "The message could not be processed."};
}

Error too_many_wait() {
  return {Errc::unavailable, "too many requests wait; try again later"};
}

// An answer's text. The stored answer of an erased user is empty: the message had its effects, and
// its outputs are erased.
std::string body_of(std::string stored, const model::SessionKey& session) {
  return stored.empty() ? compose_answer({}, session.user_id, session.session_id)
                        : std::move(stored);
}

// Whether the request has `Prefer: respond-async` (RFC 7240), maybe among other preferences.
bool prefers_async(const Request& request) {
  bool prefers = false;
  for (const auto& [name, value] : request.headers) {
    if (name != "prefer") continue;
    for_each_element(value, [&](std::string_view preference) {
      const auto wanted = trim(preference.substr(0, preference.find(';')));
      prefers = prefers || equals_ignoring_case(wanted, "respond-async");
    });
  }
  return prefers;
}

std::string said_by(const store::InputState& state, const model::SessionKey& session) {
  return compose_answer(state.said, session.user_id, session.session_id);
}

// The answer to the client of a message in this state. None: the client keeps waiting.
std::optional<Result<Answer>> answer_to_first(store::InputState state,
                                              const model::SessionKey& session) {
  using Stage = store::InputState::Stage;
  if (state.cut_behind) {
    std::erase_if(state.said, [&](const auto& output) { return output.seq > *state.cut_behind; });
    return Answer{status::accepted, said_by(state, session)};
  }
  if (state.stage == Stage::failed) return model::fail(unprocessed_error());
  if (state.stage == Stage::at_rest) return Answer{status::ok, said_by(state, session)};
  return std::nullopt;
}

// The answer to a repeat: all outputs. None if the first message failed, which frees the key.
std::optional<Result<Answer>> answer_to_repeat(const store::InputState& state,
                                               const model::SessionKey& session) {
  if (state.kept) return Answer{status::ok, *state.kept};
  if (state.stage == store::InputState::Stage::at_rest) {
    return Answer{status::ok, said_by(state, session)};
  }
  if (state.cut_behind) return Answer{status::accepted, said_by(state, session)};
  return std::nullopt;
}

// A message until its answer. A message with an Idempotency-Key waits for the input of its key. Its
// functions run one after the other, except `look` and `cut`.
class PendingReply : public std::enable_shared_from_this<PendingReply> {
 public:
  enum class Wanted : std::uint8_t { answer, acceptance };

  PendingReply(MessageServices& services, Event event, std::optional<queue::AppendKey> key,
               Reply reply, Wanted wanted)
      : services_(services),
        event_(std::move(event)),
        key_(std::move(key)),
        reply_(std::move(reply)),
        wanted_(wanted) {
    set_input(event_.id);
  }

  void begin() {
    // With respond-async a keyed record carries the deadline, too: the append may give it the id of
    // a message whose client waits at another daemon. Under its own id it is cut, so its outputs go
    // to the webhook.
    if (wanted_ == Wanted::answer || key_) {
      event_.answer_until = services_.store.timer_now() + services_.options.api.turn_timeout;
    }
    if (wanted_ == Wanted::answer) {
      // The wait begins before the append, so no answer comes before the wait.
      ticket_ = wait_for(event_.id);
    }
    if (wanted_ == Wanted::acceptance && key_) return accept_keyed();
    append();
  }

 private:
  using Wait = std::pair<store::AwaitedInput,
                         bool>;  // the awaited input, and whether this request repeats it

  // A repeat that supersedes a failed message races with other repeats. If it loses this many
  // times, the key's messages keep failing.
  static constexpr int max_rounds = 4;

  struct State {
    store::AwaitedInput input;
    bool repeats = false;
    bool heard_early = false;  // heard before the position was known
  };

  void set_input(const std::string& id) {
    state_.with([&](State& state) { state = {{event_.session, id}, false, false}; });
  }

  Ticket wait_for(const std::string& input_id) {
    const auto self = shared_from_this();
    return services_.pending_replies.wait(
        input_id, services_.options.steady_now() + services_.options.api.turn_timeout,
        {.answered = [self](Result<Answer> answer) { self->send(std::move(answer)); },
         .overdue = [self](Ticket ticket, Overdue why) { self->cut(ticket, why); },
         .heard = [self](Ticket ticket) { self->look(ticket); }});
  }

  void append() {
    const auto self = shared_from_this();
    if (!key_) {
      return services_.events.append(event_, [self](auto appended) {
        appended ? self->accepted(appended->position) : self->end(append_error(appended.error()));
      });
    }
    wanted_ == Wanted::answer ? append_keyed() : cut_and_append_keyed();
  }

  // A repeat stores no cut, because its key belongs to an input already.
  void accept_keyed() {
    services_.events.look_up(*key_, [self = shared_from_this()](auto found) {
      if (!found) return self->end(append_error(found.error()));
      *found ? self->follow(**found) : self->cut_and_append_keyed();
    });
  }

  // A request at another daemon may append this input, too, and wait for its answer. The cut is
  // stored first, so the outputs of either record go to the webhook, as the 202 promises. `pool`
  // stores it: this thread may be one of HTTP or of the log, and a write may block.
  void cut_and_append_keyed() {
    const bool posted = services_.pool.post(
        event_.session.project_id, BlockingPool::Line::others, [self = shared_from_this()] {
          const auto& session = self->event_.session;
          auto& answers = self->services_.store.of(session).answers();
          answers.cut({session, self->event_.id}, [self](const auto& cut) {
            cut ? self->append_keyed() : self->end(store_error(cut.error()));
          });
        });
    if (!posted) end(too_many_wait());
  }

  void append_keyed() {
    event_.claim = model::Claim{model::Claim::Kind::keyed_event, event_.id};
    services_.events.append_keyed(event_, *key_, [self = shared_from_this()](auto appended) {
      if (!appended) return self->end(append_error(appended.error()));
      // An append with an unknown outcome may have given the key another id.
      const bool own = !appended->repeated && appended->id == self->event_.id;
      own ? self->accepted(appended->position) : self->follow(*appended);
    });
  }

  void accepted(const model::Position& position) {
    if (wanted_ == Wanted::acceptance) {
      return end(Answer{status::accepted,
                        compose_answer({}, event_.session.user_id, event_.session.session_id)});
    }
    // The log has the message. Frees it, because its data may be large and the wait long.
    event_.text.reset();
    event_.data = nullptr;
    const bool heard = state_.with([&](State& state) {
      state.input.position = position;
      return state.heard_early;
    });
    if (heard) services_.pending_replies.look(*ticket_);
  }

  void end(Result<Answer> outcome) {
    if (!ticket_) return send(std::move(outcome));
    services_.pending_replies.end(*ticket_, std::move(outcome));
  }
  void end(Error error) { end(Result<Answer>(model::fail(std::move(error)))); }

  void send(Result<Answer> answer) {
    if (!answer) return reply_.fail(answer.error());
    HeaderList headers;
    // The preference of the first request under a key holds, and is not known here.
    const bool repeats = state_.with([](const State& state) { return state.repeats; });
    if (answer->status == status::accepted && wanted_ == Wanted::acceptance && !repeats) {
      headers.emplace_back("Preference-Applied", "respond-async");
    }
    auto response = json_text_response(
        answer->status, body_of(std::move(answer->body), event_.session), std::move(headers));
    response.event_id = event_.id;
    reply_.send(std::move(response));
  }

  // Runs on a thread of the log, which must not block, so `pending_replies` reads the store.
  void follow(const queue::KeyedAppended& first) {
    // The append that gave the key another id has put this message into the log.
    appended_again_ = !first.repeated;
    state_.with([&](State& state) {
      state = {{event_.session, first.id, first.position}, true, false};
    });
    // Waits before it looks, so an answer in between ends the wait.
    if (!ticket_) {
      ticket_ = wait_for(first.id);
    } else if (!services_.pending_replies.move(*ticket_, first.id)) {
      return;
    }
    services_.pending_replies.look(*ticket_);
  }

  Wait waits_for() {
    return state_.with([](State& state) -> Wait {
      if (!state.input.position) state.heard_early = true;
      return {state.input, state.repeats};
    });
  }

  void look(Ticket ticket) {
    const auto [input, repeats] = waits_for();
    auto& answers = services_.store.of(input.session).answers();
    auto found = answers.look(input, services_.store.timer_now());
    if (!found) {
      // The first message still has its deadline.
      if (repeats) services_.pending_replies.end(ticket, model::fail(store_error(found.error())));
      return;
    }
    const auto stage = found->stage;
    const auto until = found->answer_until;
    auto answer = repeats ? answer_to_repeat(*found, input.session)
                          : answer_to_first(*std::move(found), input.session);
    if (answer) {
      services_.pending_replies.end(ticket, *std::move(answer));
    } else if (repeats) {
      go_on(ticket, input, stage, until);
    }
  }

  // Continues a repeat whose input has no answer yet.
  void go_on(Ticket ticket, const store::AwaitedInput& input, store::InputState::Stage stage,
             std::optional<model::Timestamp> until) {
    using Stage = store::InputState::Stage;
    if (stage == Stage::failed) return supersede(ticket, input.id);
    if (stage == Stage::unseen) return append_again(ticket, input.id);
    if (until) {  // the first message's deadline applies
      services_.pending_replies.hasten(
          ticket, services_.options.steady_now() + (*until - services_.store.timer_now()));
    }
  }

  // No Turn has run the input: its record waits in the log, or is lost. Appends another record
  // under its id. Only one of the two gets the claim.
  void append_again(Ticket ticket, const std::string& first_id) {
    if (std::exchange(appended_again_, true)) return;
    event_.id = first_id;
    event_.claim = model::Claim{model::Claim::Kind::keyed_event, first_id};
    services_.events.append(event_, [self = shared_from_this(), ticket](auto appended) {
      if (appended) return;
      self->services_.pending_replies.end(ticket, model::fail(append_error(appended.error())));
    });
  }

  // The first message failed, which is not stored. This one takes its place under a new id.
  void supersede(Ticket ticket, const std::string& failed_id) {
    if (++rounds_ > max_rounds) {
      services_.pending_replies.end(
          ticket, model::fail(Error{Errc::conflict, "the Idempotency-Key is in use"}));
      return;
    }
    key_->supersedes = failed_id;
    event_.id = model::new_event_id(services_.clock.now(), model::is_sampled(event_.id));
    set_input(event_.id);
    if (services_.pending_replies.move(ticket, event_.id)) append();
  }

  // Giving up a repeat does not end the first client's wait, maybe at another daemon.
  void cut(Ticket ticket, Overdue why) {
    const auto [input, repeats] = waits_for();
    if (repeats && why == Overdue::stop) {
      services_.pending_replies.end(
          ticket, model::fail(Errc::unavailable,
                              "the server is stopping; repeat the request under the same "
                              "Idempotency-Key"));
      return;
    }
    if (!input.position) {
      services_.pending_replies.end(
          ticket, model::fail(Errc::timed_out, "the log takes too long; try again"));
      return;
    }
    auto& answers = services_.store.of(input.session).answers();
    answers.cut(input, [self = shared_from_this(), ticket, repeated = repeats](auto state) {
      auto& pending_replies = self->services_.pending_replies;
      if (!state) return void(pending_replies.end(ticket, model::fail(store_error(state.error()))));
      const auto& session = self->event_.session;
      auto answer = repeated ? answer_to_repeat(*state, session)
                             : answer_to_first(*std::move(state), session);
      pending_replies.end(ticket, answer ? *std::move(answer) : model::fail(unprocessed_error()));
    });
  }

  MessageServices& services_;
  Event event_;
  std::optional<queue::AppendKey> key_;
  Reply reply_;
  const Wanted wanted_;
  std::optional<Ticket> ticket_;
  bool appended_again_ = false;
  int rounds_ = 0;
  model::Guarded<State> state_;
};

// Refuses a message, unless its key belongs to an answered one: then it gets that answer. An
// unanswered message is not appended again, because its session takes no more events.
void refuse_unless_answered(MessageServices& services, const queue::AppendKey& key,
                            const Error& refusal, const model::SessionKey& session, Reply reply) {
  const auto kept = std::make_shared<Reply>(std::move(reply));
  const auto replay = [&services, refusal, session, kept](const queue::KeyedAppended& first) {
    auto& answers = services.store.of(session).answers();
    const auto state =
        answers.look({session, first.id, first.position}, services.store.timer_now());
    if (!state) return kept->fail(store_error(state.error()));
    auto answer = answer_to_repeat(*state, session);
    if (!answer) return kept->fail(refusal);
    kept->send(json_text_response((*answer)->status, body_of(std::move((*answer)->body), session)));
  };
  services.events.look_up(key, [&services, refusal, session, kept, replay](auto found) {
    if (!found) return kept->fail(append_error(found.error()));
    if (!*found) return kept->fail(refusal);
    // This thread may be one of the log, which must not block on the store.
    const bool posted = services.pool.post(session.project_id, BlockingPool::Line::others,
                                           [replay, first = **found] { replay(first); });
    if (!posted) kept->fail(too_many_wait());
  });
}

void message(Call call, MessageServices& services, Reply reply) {
  auto body = parse_message(call.request.body, UrlTokenIn::path);
  if (!body) return reply.fail(body.error());
  auto token = normal_url_token(call.parameters["URLToken"]);
  if (!token) return reply.fail({Errc::not_found, "there is no Endpoint with this URLToken"});
  auto endpoint = find_endpoint(services.assets, *token);
  if (!endpoint) return reply.fail(endpoint.error());
  auto key = append_key(call.request, (*endpoint)->organisation_id, "message " + *token);
  if (!key) return reply.fail(key.error());
  auto event = make_event(services.clock.now(), model::EventType::user_message, **endpoint,
                          std::move(*body), call.request, *key);
  if (auto open = check_session(services, **endpoint, event); !open) {
    if (!*key) return reply.fail(open.error());
    return refuse_unless_answered(services, **key, open.error(), event.session, std::move(reply));
  }
  using Wanted = PendingReply::Wanted;
  const auto wanted = prefers_async(call.request) ? Wanted::acceptance : Wanted::answer;
  std::make_shared<PendingReply>(services, std::move(event), *std::move(key), std::move(reply),
                                 wanted)
      ->begin();
}

openapi::Description describe_message() {
  using namespace openapi;
  const auto output =
      object({{"text", text()}, {"data", anything()}, {"traceId", text()}, {"source", text(1)}});
  const auto answer = object({{"text", text()},
                              {"data", anything()},
                              {"outputStack", list_of(output)},
                              {"userId", text(1)},
                              {"sessionId", text(1)}});
  return {.summary = "Send a user's own message",
          .details =
              "Begins or continues a conversation. The answer comes when the execution waits for "
              "the next message or ends. 202: processing continues. Read the rest from `/outputs` "
              "or the webhook.",
          .parameters = {idempotency_parameter(),
                         header_parameter(
                             "Prefer", "`respond-async`: answer 202 once the message is accepted.",
                             text())},
          .body = json_content(message_schema(UrlTokenIn::path)),
          .answers = {{.description = "The Flow's outputs.",
                       .content = json_content(named("Answer", answer))},
                      {.status = status::accepted,
                       .description = "The Flow's outputs so far.",
                       .content = json_content(named("Answer", answer)),
                       .headers = {{"Preference-Applied", "`respond-async`, if the request had it.",
                                    text(), Need::optional}}}},
          .errors = {404, 409, 502, 504}};
}

}  // namespace

Operations message_operations() {
  static constexpr Operation rows[] = {
      for_all("message", Method::post, "/{URLToken}", message, describe_message),
  };
  return rows;
}

}  // namespace conversed::api
