// /management/deadletters: operators list events that failed and outputs that were not delivered,
// and replay or discard them.
#include <array>
#include <memory>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/live/events.h"
#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/model/trace.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using store::DeadLetter;
using namespace openapi;

constexpr std::array states{store::DeadLetterState::fresh, store::DeadLetterState::replayed,
                            store::DeadLetterState::discarded};

Schema state_schema() {
  std::vector<std::string_view> names;
  for (const auto state : states) names.push_back(store::to_string(state));
  return one_of(names);
}

const Shape<DeadLetter>& letter_shape() {
  static const auto shape =
      session_shape(&DeadLetter::key)
          .with("DeadLetter",
                {{"_id", id(), &DeadLetter::id},
                 {"state", state_schema(),
                  [](const DeadLetter& letter) { return store::to_string(letter.state); }},
                 {"reason", text(), &DeadLetter::reason},
                 {"createdAt", unix_time(), &DeadLetter::created_at},
                 {"type", text(1),
                  [](const DeadLetter& letter) {
                    return letter.output_seq ? "output" : letter.event.type;
                  }},
                 {"eventId", nullable(text()),
                  [](const DeadLetter& letter) {
                    return letter.output_seq ? Value() : Value(letter.event.event_id);
                  }},
                 {"outputSeq", nullable(integer(0)), null_if_absent(&DeadLetter::output_seq)},
                 {"traceId", text(),
                  [](const DeadLetter& letter) { return letter.event.trace_id; }}});
  return shape;
}

Result<model::Event> decode(const DeadLetter& letter) {
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
  const std::string reason(call.request.parameter("reason").value_or(""));
  auto letters =
      services.store.dead_letters().list(project->id, *state, page->after, page->limit, reason);
  return rows_response(letters, *page, &DeadLetter::row, letter_shape());
}

// Limits of one answer, because it reads every examined letter.
constexpr std::size_t examined_letters = 100'000;
constexpr std::size_t max_groups = 200;

const Shape<store::DeadLetters::Group>& group_shape() {
  using Group = store::DeadLetters::Group;
  static const Shape<Group> shape(
      "DeadLetterGroup",
      {{"reason", text(), &Group::reason},
       {"kind", one_of({"event", "output"}),
        [](const Group& group) { return group.of_outputs ? "output" : "event"; }},
       {"count", integer(1), &Group::count},
       {"first", unix_time(), &Group::first},
       {"last", unix_time(), &Group::last}});
  return shape;
}

Result<Response> group_dead_letters(const Call& call, SessionServices& services) {
  auto project = project_of(services.store, call, Role::conversation_admin);
  if (!project) return model::fail(project.error());
  auto state = state_filter(call.request);
  if (!state) return model::fail(state.error());
  return items_response(
      services.store.dead_letters().groups(project->id, state->value_or(states.front()),
                                           examined_letters, max_groups),
      group_shape());
}

Result<DeadLetter> find_dead_letter(const Call& call, SessionServices& services) {
  const auto find = [&, id = std::string(call.parameters["deadLetterId"])](const auto& project_id) {
    return services.store.dead_letters().get(project_id, id);
  };
  return find_in_projects(services.store, *call.principal, find, "there is no such dead letter");
}

Result<Response> show_dead_letter(const Call& call, SessionServices& services) {
  auto letter = find_dead_letter(call, services);
  if (!letter) return model::fail(letter.error());
  json body = letter_shape()(*letter);
  // An event that can't be decoded, maybe the reason for the dead letter, is left out.
  if (auto event = decode(*letter); event && !letter->output_seq) {
    body["text"] = event->text ? json(*event->text) : json(nullptr);
    body["data"] = event->data;
    body["acceptedAt"] = unix_seconds(event->accepted_at);
  }
  return ok(body);
}

// The event for the replay. It is appended at the tail of the log under a new id. Its claim is the
// dead letter, so two replays have one effect.
Result<model::Event> replayed(const DeadLetter& letter, SessionServices& services) {
  if (letter.state != store::DeadLetterState::fresh) {
    return model::fail(Errc::conflict, "the dead letter was replayed or discarded before");
  }
  auto event = decode(letter);
  if (!event) {
    return model::fail(Errc::conflict, "the event can't be read; it can only be discarded");
  }
  if (event->type == model::EventType::call_result || event->type == model::EventType::timer ||
      event->type == model::EventType::time_out) {
    return model::fail(Errc::conflict,
                       "nothing waits for this event any more; it can only be discarded");
  }
  event->answer_until.reset();  // no client waits, so its outputs go to the webhook
  event->accepted_at = services.clock.now();
  event->id = model::new_event_id(event->accepted_at, model::is_sampled(event->id));
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
    return reply.send(json_response(202, {{"_id", letter->id}}));
  }
  auto event = replayed(*letter, services);
  if (!event) return reply.fail(event.error());
  auto waiting = std::make_shared<Reply>(std::move(reply));
  services.events.append(*event, [waiting, id = event->id](auto appended) {
    if (!appended) return waiting->fail(append_error(appended.error()));
    waiting->send(json_response(202, {{"_id", id}}));
  });
}

Result<Response> discard(const Call& call, SessionServices& services) {
  auto letter = find_dead_letter(call, services);
  if (!letter) return model::fail(letter.error());
  return from_store(services.store.dead_letters().discard(letter->key.project_id, letter->id))
      .map(no_content);
}

Link link(std::string_view name, std::string_view operation) {
  return {name, operation, "deadLetterId", "$response.body#/items/0/_id"};
}

Description describe_list_dead_letters() {
  return {.summary = "List dead letters",
          .parameters = row_parameters(
              {project_parameter(),
               query_parameter("state", "Only dead letters in this state.", state_schema()),
               query_parameter("reason", "Only dead letters with this reason.", form_text())}),
          .answers = {{.description = "A page of dead letters, the oldest first.",
                       .content = json_content(row_page(letter_shape().schema())),
                       .links = {link("show", "showDeadLetter"), link("replay", "replayDeadLetter"),
                                 link("discard", "discardDeadLetter")}}},
          .errors = {404}};
}

Description describe_group_dead_letters() {
  return {
      .summary = "Group dead letters",
      .details = "Groups the newest " + std::to_string(examined_letters) +
                 " dead letters of the project. At most " + std::to_string(max_groups) + " groups.",
      .parameters = {project_parameter(),
                     query_parameter("state", "Default: new.", state_schema())},
      .answers = {json_answer("The groups, the largest first.", items_of(group_shape().schema()))},
      .errors = {404}};
}

Description describe_show_dead_letter() {
  const auto letter =
      with_members(letter_shape().schema(), {{"text", nullable(text()), Need::optional},
                                             {"data", anything(), Need::optional},
                                             {"acceptedAt", unix_time(), Need::optional}});
  return {.summary = "Show a dead letter",
          .answers = {json_answer("The dead letter, with its event if the event can be read.",
                                  named("DeadLetterWithEvent", letter))}};
}

Description describe_replay() {
  return {.summary = "Replay a dead letter",
          .answers = {json_answer("The event runs again, under this id.", accepted_schema(), 202)},
          .errors = {409, 502}};
}

Description describe_discard() {
  return {.summary = "Discard a dead letter",
          .answers = {empty_answer("The dead letter is discarded.")},
          .errors = {409}};
}

}  // namespace

Operations dead_letters_operations() {
  static constexpr Operation rows[] = {
      for_operators("listDeadLetters", Method::get, "/management/deadletters",
                    Role::conversation_admin, list_dead_letters, describe_list_dead_letters,
                    Audited::always),
      for_operators("groupDeadLetters", Method::get, "/management/deadletters/groups",
                    Role::conversation_admin, group_dead_letters, describe_group_dead_letters,
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
