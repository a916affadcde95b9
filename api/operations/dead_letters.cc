// /management/deadletters: what could not be processed or delivered, with its reason; operators
// have it run again or discard it.
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/live/events.h"
#include "api/openapi/lists.h"
#include "api/openapi/messages.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/model/ids.h"
#include "store/store.h"

namespace conversed::api {

namespace {

using model::Errc;
using model::Result;
using nlohmann::json;

constexpr std::array states{store::DeadLetterState::fresh, store::DeadLetterState::replayed,
                            store::DeadLetterState::discarded};

json letter_json(const store::DeadLetter& letter) {
  json body = session_names(letter.key);
  body["_id"] = letter.id;
  body["state"] = store::to_string(letter.state);
  body["reason"] = letter.reason;
  body["createdAt"] = unix_seconds(letter.created_at);
  body["type"] = letter.output_seq ? "output" : letter.event.type;
  body["eventId"] = letter.output_seq ? json(nullptr) : json(letter.event.event_id);
  body["outputSeq"] = letter.output_seq ? json(*letter.output_seq) : json(nullptr);
  body["traceId"] = letter.event.trace_id;
  return body;
}

Result<model::Event> decode(const store::DeadLetter& letter) {
  return model::decode_event(letter.key.encode(), letter.event.event_id, letter.event.type,
                             letter.event.trace_id, letter.event.value);
}

Result<std::optional<store::DeadLetterState>> state_filter(const Request& request) {
  const auto text = request.parameter("state");
  if (!text) return std::nullopt;
  for (const auto state : states) {
    if (store::to_string(state) == *text) return state;
  }
  return model::fail(Errc::invalid_argument, "state must be new, replayed or discarded");
}

Result<Response> list_dead_letters(const Call& call, SessionServices& services) {
  auto project = project_of(services.store, call, Role::conversation_admin);
  if (!project) return model::fail(project.error());
  auto page = page_query(call.request);
  if (!page) return model::fail(page.error());
  auto state = state_filter(call.request);
  if (!state) return model::fail(state.error());
  auto letters = services.store.dead_letters().list(project->id, *state, page->after, page->limit);
  if (!letters) return model::fail(store_error(letters.error()));
  return rows_response(*letters, *page, &store::DeadLetter::row, letter_json);
}

Result<store::DeadLetter> find_dead_letter(const Call& call, SessionServices& services) {
  const auto find = [&, id = std::string(call.parameters["deadLetterId"])](const auto& project_id) {
    return services.store.dead_letters().get(project_id, id);
  };
  return find_in_projects(services.store, *call.principal, find, "there is no such dead letter");
}

Result<Response> show_dead_letter(const Call& call, SessionServices& services) {
  auto letter = find_dead_letter(call, services);
  if (!letter) return model::fail(letter.error());
  json body = letter_json(*letter);
  // An event that can't be decoded is shown without its content: that may be why it is here.
  if (auto event = decode(*letter); event && !letter->output_seq) {
    body["text"] = event->text ? json(*event->text) : json(nullptr);
    body["data"] = event->data;
    body["acceptedAt"] = unix_seconds(event->accepted_at);
  }
  return ok(body);
}

// The event as it is appended again: at the tail, under a new id. Its claim is the dead letter, so
// that two replays have one effect.
Result<model::Event> replayed(const store::DeadLetter& letter, SessionServices& services) {
  if (letter.state != store::DeadLetterState::fresh) {
    return model::fail(Errc::conflict, "the dead letter was replayed or discarded before");
  }
  auto event = decode(letter);
  if (!event) {
    return model::fail(Errc::conflict, "the event can't be read; it can only be discarded");
  }
  if (event->type == model::EventType::call_result || event->type == model::EventType::timer ||
      event->type == model::EventType::time_out) {
    return model::fail(Errc::conflict, "what waited for it is over; it can only be discarded");
  }
  event->id = model::new_id();
  event->answer_until.reset();  // no client waits: its outputs go to the webhook
  event->accepted_at = services.clock.now();
  event->claim = model::Claim{model::Claim::Kind::dead_letter, letter.id};
  return event;
}

void replay(Call call, SessionServices& services, Reply reply) {
  auto letter = find_dead_letter(call, services);
  if (!letter) return reply.fail(letter.error());
  if (letter->output_seq) {
    const auto deliver = [&services, key = letter->key] {
      if (services.deliver) services.deliver(key);
    };
    auto done =
        services.store.dead_letters().replay_output(letter->key.project_id, letter->id, deliver);
    if (!done) return reply.fail(store_error(done.error()));
    return send_json(reply, 202, {{"_id", letter->id}});
  }
  auto event = replayed(*letter, services);
  if (!event) return reply.fail(event.error());
  auto waiting = std::make_shared<Reply>(std::move(reply));
  services.events.append(*event, [waiting, id = event->id](auto appended) {
    if (!appended) {
      return waiting->fail(append_error(appended.error()));
    }
    send_json(*waiting, 202, {{"_id", id}});
  });
}

Result<Response> discard(const Call& call, SessionServices& services) {
  auto letter = find_dead_letter(call, services);
  if (!letter) return model::fail(letter.error());
  auto done = services.store.dead_letters().discard(letter->key.project_id, letter->id);
  if (!done) return model::fail(store_error(done.error()));
  return no_content();
}

openapi::Schema dead_letter_state_schema() {
  std::vector<std::string_view> names;
  names.reserve(states.size());
  for (const auto state : states) names.push_back(store::to_string(state));
  return openapi::one_of(names);
}

openapi::Schema letter_schema() {
  using namespace openapi;
  return with_members(session_names_schema(), {{"_id", id()},
                                               {"state", dead_letter_state_schema()},
                                               {"reason", text()},
                                               {"createdAt", unix_time()},
                                               {"type", text(1)},
                                               {"eventId", nullable(text())},
                                               {"outputSeq", nullable(integer(0))},
                                               {"traceId", text()}});
}

openapi::Link link(std::string_view name, std::string_view operation) {
  return {name, operation, "deadLetterId", "$response.body#/items/0/_id"};
}

openapi::Description describe_list_dead_letters() {
  using namespace openapi;
  auto parameters = row_parameters();
  parameters.push_back(project_parameter());
  parameters.push_back(
      query_parameter("state", "Only those of this state.", dead_letter_state_schema()));
  return {.summary = "List dead letters",
          .parameters = std::move(parameters),
          .answers = {{.description = "A page of them, the oldest first.",
                       .content = json_content(row_page(named("DeadLetter", letter_schema()))),
                       .links = {link("show", "showDeadLetter"), link("replay", "replayDeadLetter"),
                                 link("discard", "discardDeadLetter")}}},
          .errors = {404}};
}

openapi::Description describe_show_dead_letter() {
  using namespace openapi;
  const auto letter = with_members(letter_schema(), {{"text", nullable(text()), Need::optional},
                                                     {"data", anything(), Need::optional},
                                                     {"acceptedAt", unix_time(), Need::optional}});
  return {.summary = "Show a dead letter",
          .answers = {{.description = "The dead letter, with its event if that can be read.",
                       .content = json_content(named("DeadLetterWithEvent", letter))}},
          .errors = {404}};
}

openapi::Description describe_replay() {
  using namespace openapi;
  return {.summary = "Replay a dead letter",
          .answers = {{.status = 202,
                       .description = "It runs again, under this id.",
                       .content = json_content(accepted_schema())}},
          .errors = {404, 409, 502, 504}};
}

openapi::Description describe_discard() {
  return {.summary = "Discard a dead letter",
          .answers = {{.status = status::no_content, .description = "It is discarded."}},
          .errors = {404, 409}};
}

}  // namespace

Operations dead_letters_operations() {
  static constexpr Operation rows[] = {
      for_operators("listDeadLetters", Method::get, "/management/deadletters",
                    Role::conversation_admin, list_dead_letters, describe_list_dead_letters,
                    Audited::always),
      for_operators("showDeadLetter", Method::get, "/management/deadletters/{deadLetterId}",
                    Role::conversation_admin, show_dead_letter, describe_show_dead_letter,
                    Audited::always),
      for_operators("replayDeadLetter", Method::post,
                    "/management/deadletters/{deadLetterId}/replay", Role::conversation_admin,
                    replay, describe_replay),
      for_operators("discardDeadLetter", Method::post,
                    "/management/deadletters/{deadLetterId}/discard", Role::conversation_admin,
                    discard, describe_discard),
  };
  return rows;
}

}  // namespace conversed::api
