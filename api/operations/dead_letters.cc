// /management/deadletters: operators list events that failed and outputs that were not delivered,
// and replay or discard them.
#include <algorithm>
#include <array>
#include <chrono>
#include <exception>
#include <functional>
#include <limits>
#include <memory>
#include <nlohmann/json.hpp>
#include <tuple>
#include <utility>
#include <vector>

#include "api/live/assets_cache.h"
#include "api/live/blocking_pool.h"
#include "api/live/events.h"
#include "api/live/project_library.h"
#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/row_filter.h"
#include "api/operations/tasks.h"
#include "api/replies.h"
#include "flows/flow.h"
#include "flows/tools/trial.h"
#include "flows/turn/follow_up.h"
#include "store/conversation/filters.h"
#include "store/model/url.h"
#include "store/shards/across_shards.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using store::DeadLetter;
using store::DeadLetters;
using namespace openapi;

constexpr std::array states{store::DeadLetterState::fresh, store::DeadLetterState::replayed,
                            store::DeadLetterState::discarded};

Schema state_schema() {
  std::vector<std::string_view> names;
  names.reserve(states.size());
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
                 {"flow", described("Whose Turn failed; null: no Flow ran.", nullable(text(1))),
                  null_if_empty(&DeadLetter::flow)},
                 {"flowVersion", nullable(integer(1)), null_if_empty(&DeadLetter::flow_version)},
                 {"node", nullable(text(1)), null_if_empty(&DeadLetter::node)},
                 {"attempts", described("Failed tries of an output.", integer(0)),
                  &DeadLetter::attempts},
                 {"createdAt", unix_time(), &DeadLetter::created_at},
                 {"type", text(1),
                  [](const DeadLetter& letter) {
                    return letter.output_seq ? "output" : letter.event.type;
                  }},
                 {"eventId", nullable(text()),
                  [](const DeadLetter& letter) {
                    return letter.output_seq ? Value() : Value(letter.event.event_id);
                  }},
                 {"replayable",
                  described("False: nothing waits for the event any more, so the dead letter can "
                            "only be discarded.",
                            boolean()),
                  &DeadLetter::can_be_replayed},
                 {"outputSeq", nullable(integer(0)), null_if_absent(&DeadLetter::output_seq)},
                 {"traceId", text(),
                  [](const DeadLetter& letter) { return letter.event.trace_id; }}});
  return shape;
}

Result<model::Event> decode(const DeadLetter& letter) {
  return model::decode_event(letter.key.encode(), letter.event.event_id, letter.event.type,
                             letter.event.trace_id, letter.event.value);
}

// The part of the dead letters that the query names.
Result<DeadLetters::Filter> dead_letter_filter(const Call& call, SessionServices& services) {
  auto common = row_filter(call, services);
  if (!common) return model::fail(common.error());
  auto version =
      number_parameter(call.request, "flowVersion", 1, std::numeric_limits<std::int64_t>::max(), 0);
  if (!version) return model::fail(version.error());
  const auto text = [&](const char* name) {
    return std::string(call.request.parameter(name).value_or(""));
  };
  return DeadLetters::Filter{.project_id = std::move(common->project_id),
                             .reason = text("reason"),
                             .flow = text("flow"),
                             .flow_version = *version,
                             .node = text("node"),
                             .endpoint_id = std::move(common->endpoint_id),
                             .session = std::move(common->session),
                             .created_from = common->created_from,
                             .created_before = common->created_before};
}

std::vector<Parameter> dead_letter_parameters() {
  return row_filter_parameters(
      {query_parameter("reason", "Only dead letters with this reason.", form_text()),
       query_parameter("flow", "Only events that failed in this Flow.", form_text()),
       query_parameter("flowVersion", "Only events that failed in this version of their Flow.",
                       integer(1)),
       query_parameter("node", "Only events that failed at this Node, by its address.",
                       form_text())});
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
  auto filter = dead_letter_filter(call, services);
  if (!filter) return model::fail(filter.error());
  auto page = page_query(call.request);
  if (!page) return model::fail(page.error());
  auto state = state_filter(call.request);
  if (!state) return model::fail(state.error());
  filter->state = *state;
  const auto list = [&](store::Shard& shard) {
    return shard.dead_letters().list(*filter, page->after, page->limit);
  };
  if (filter->session) {
    return page_response(list(services.store.of(*filter->session)), letter_shape());
  }
  return page_response(
      merge_pages(services.store.shards(), page->limit, list, &DeadLetter::row, std::less<>()),
      letter_shape());
}

// Limits of one answer, because it reads every examined letter.
constexpr std::size_t examined_letters = 20'000;
constexpr std::size_t max_groups = 200;

using LetterGroup = DeadLetters::Group;

const Shape<LetterGroup>& group_shape() {
  static const Shape<LetterGroup> shape(
      "DeadLetterGroup",
      {{"reason", text(), &LetterGroup::reason},
       {"flow", nullable(text(1)), null_if_empty(&LetterGroup::flow)},
       {"flowVersion", nullable(integer(1)), null_if_empty(&LetterGroup::flow_version)},
       {"node", nullable(text(1)), null_if_empty(&LetterGroup::node)},
       {"kind", one_of({"event", "output"}),
        [](const LetterGroup& group) { return group.of_outputs ? "output" : "event"; }},
       {"count", integer(1), &LetterGroup::count},
       {"first", unix_time(), &LetterGroup::first},
       {"last", unix_time(), &LetterGroup::last}});
  return shape;
}

// Adds the letters of another shard's group.
void add_letters(std::vector<LetterGroup>& all, LetterGroup&& more) {
  const auto name = [](const LetterGroup& group) {
    return std::tie(group.reason, group.flow, group.flow_version, group.node, group.of_outputs);
  };
  const auto same = std::ranges::find(all, name(more), name);
  if (same == all.end()) return all.push_back(std::move(more));
  same->count += more.count;
  same->first = std::min(same->first, more.first);
  same->last = std::max(same->last, more.last);
}

// The largest groups of each shard, added up. The largest come first.
Result<std::vector<LetterGroup>> groups_of_letters(store::Store& store,
                                                   const std::string& project_id,
                                                   store::DeadLetterState state) {
  const auto& shards = store.shards();
  const auto of_shard = [&](store::Shard& shard) {
    return shard.dead_letters().groups(project_id, state, examined_letters, max_groups);
  };
  auto all = of_shard(*shards.front());
  if (!all || shards.size() == 1) return all;
  for (std::size_t at = 1; at < shards.size(); ++at) {
    auto more = of_shard(*shards[at]);
    if (!more) return more;
    for (LetterGroup& group : *more) add_letters(*all, std::move(group));
  }
  std::ranges::stable_sort(*all, std::greater<>(), &LetterGroup::count);
  all->resize(std::min(all->size(), max_groups));
  return all;
}

Result<Response> group_dead_letters(const Call& call, SessionServices& services) {
  auto project = project_of(services.store, call, Role::conversation_admin);
  if (!project) return model::fail(project.error());
  auto state = state_filter(call.request);
  if (!state) return model::fail(state.error());
  return items_response(
      groups_of_letters(services.store, project->id, state->value_or(states.front())),
      group_shape());
}

Result<DeadLetter> find_dead_letter(const Call& call, SessionServices& services) {
  const auto find = [&, id = std::string(call.parameters["deadLetterId"])](const auto& project_id) {
    return find_in_shards(services.store.shards(), [&](store::Shard& shard) {
      return shard.dead_letters().get(project_id, id);
    });
  };
  return find_in_projects(services.store, call, find, "there is no such dead letter");
}

// Adds the content of the letter's event or output, and its destination. Leaves out an output that
// is not kept any more, and an event that can't be decoded, which may be the reason for the dead
// letter.
Result<void> add_payload(json& body, const DeadLetter& letter, SessionServices& services) {
  if (letter.output_seq) {
    const auto output =
        services.store.of(letter.key).outbox().outputs(letter.key, *letter.output_seq - 1, 1);
    if (!output) return model::fail(store_error(output.error()));
    if (!output->empty() && output->front().seq == *letter.output_seq) {
      body["text"] = output->front().text;
      body["data"] = output->front().data;
    }
    const auto endpoint = services.assets.endpoint(letter.key.endpoint_id);
    const bool has_url = endpoint && !(*endpoint)->webhook_url.empty();
    // The webhook's path and query may hold secrets.
    body["server"] = has_url ? json(model::authority_of((*endpoint)->webhook_url)) : json();
  } else if (auto event = decode(letter)) {
    body["text"] = event->text ? json(*event->text) : json(nullptr);
    body["data"] = event->data;
    body["acceptedAt"] = unix_seconds(event->accepted_at);
  }
  return {};
}

Result<Response> show_dead_letter(const Call& call, SessionServices& services) {
  auto letter = find_dead_letter(call, services);
  if (!letter) return model::fail(letter.error());
  json body = letter_shape()(*letter);
  if (auto added = add_payload(body, *letter, services); !added) return model::fail(added.error());
  return ok(body);
}

// ---- Trials

constexpr std::chrono::seconds longest_trial{5};
constexpr std::size_t most_trial_answers = 50;

struct TrialBody {
  std::int64_t version = 0;  // 0: the newest
  std::vector<model::CallResult> answers;
};

Result<TrialBody> read_trial(const Request& request) {
  const auto wrong = [](const char* message) {
    return model::fail(Errc::invalid_argument, message);
  };
  auto body = read_object(request);
  if (!body) return model::fail(body.error());
  TrialBody trial;
  if (!body->value("flowVersion", json()).is_null()) {
    const auto version = whole_number(*body, "flowVersion", 1);
    if (!version) return model::fail(version.error());
    trial.version = *version;
  }
  const auto answers = body->value("answers", json::array());
  if (!answers.is_array() || answers.size() > most_trial_answers) {
    return wrong("answers must be a list of at most 50 objects");
  }
  for (std::size_t n = 0; n < answers.size(); ++n) {
    const auto& each = answers[n];
    if (!each.is_object()) return wrong("answers must be a list of objects");
    model::CallResult answer;
    answer.status = 200;
    if (each.contains("status")) {
      const auto status = whole_number(each, "status", 100, 599);
      if (!status) {
        return model::fail(status.error().code,
                           "answers[" + std::to_string(n) + "]." + status.error().message);
      }
      answer.status = static_cast<int>(*status);
    }
    answer.body = each.value("body", json());
    if (answer.status >= 400) {
      answer.error_code = "status";
      answer.error_message = "the upstream answered with status " + std::to_string(answer.status);
    }
    trial.answers.push_back(std::move(answer));
  }
  return trial;
}

// The project's library with one Flow in a version of its own.
class TrialLibrary final : public flows::Library {
 public:
  // All must outlive it. Version 0: the session's.
  TrialLibrary(const ProjectLibrary& project, const std::string& name, std::int64_t version)
      : project_(project), name_(name), version_(version) {}

  [[nodiscard]] Result<FoundFlow> flow(const std::string& name,
                                       std::int64_t version) const override {
    return project_.flow(name, version == 0 && name == name_ ? version_ : version);
  }
  [[nodiscard]] Result<std::shared_ptr<const flows::lexicon::Lexicon>> find_lexicon(
      const std::string& name) const override {
    return project_.find_lexicon(name);
  }

 private:
  const ProjectLibrary& project_;
  const std::string& name_;
  const std::int64_t version_;
};

json trial_json(const flows::tools::Trial& trial, const CompiledFlow& flow) {
  json outputs = json::array();
  for (const auto& output : trial.done.outputs) {
    outputs.push_back({{"text", output.text}, {"data", output.data}});
  }
  json nodes = json::array();
  for (const auto& node : trial.nodes) nodes.push_back(to_json(node));
  const auto or_null = [](const std::string& text) { return text.empty() ? json() : json(text); };
  return {{"flow", flow.flow->name()},
          {"flowVersion", flow.version.version},
          {"nodes", std::move(nodes)},
          {"outputs", std::move(outputs)},
          {"calls", trial.calls},
          {"log", trial.done.log},
          {"error", or_null(trial.done.error)},
          {"failedAt", or_null(trial.done.failed_at)},
          {"waitsAt", or_null(trial.waits_at)}};
}

Result<Response> try_letter(const Call& call, SessionServices& services) {
  auto letter = find_dead_letter(call, services);
  if (!letter) return model::fail(letter.error());
  auto body = read_trial(call.request);
  if (!body) return model::fail(body.error());
  if (letter->output_seq) {
    return model::fail(Errc::conflict, "an output has no Flow to try; replay it");
  }
  letter->state = store::DeadLetterState::fresh;  // a try needs no replay
  auto event = store::event_to_replay(*letter, services.clock.now());
  if (!event) return model::fail(event.error());
  if (event->type == model::EventType::notify) {
    return model::fail(Errc::conflict, "no Flow runs for a notify");
  }
  auto& assets = services.assets;
  auto endpoint = assets.endpoint(letter->key.endpoint_id);
  if (!endpoint) return model::fail(Errc::conflict, "the Endpoint of the event is gone");
  auto project = assets.project(letter->key.project_id);
  if (!project) return model::fail(store_error(project.error()));
  auto loaded = services.store.of(letter->key).sessions().load_with_profile(letter->key);
  if (!loaded) return model::fail(store_error(loaded.error()));
  model::Session session = loaded->session.value_or(model::Session());
  session.key = letter->key;
  session.execution.reset();  // as if it had ended
  // The replay begins with the root Flow, which may enter the Flow that failed.
  const auto root = flows::flow_of_input(session, *event, **endpoint, **project);
  const auto named = (*project)->flow_ids.find(letter->flow);
  const auto& tried = named == (*project)->flow_ids.end() ? root : named->second;
  auto shown = body->version == 0 ? assets.flow_for(**project, tried, letter->key)
                                  : assets.flow(tried, body->version);
  if (!shown && shown.error().code == Errc::not_found) {
    return model::fail(Errc::conflict, "the Flow has no such version");
  }
  if (!shown) return model::fail(store_error(shown.error()));
  const auto flow = tried == root ? shown : assets.flow_for(**project, root, letter->key);
  if (!flow) return model::fail(store_error(flow.error()));
  const ProjectLibrary project_library(assets, **project, letter->key);
  const auto until = std::chrono::steady_clock::now() + longest_trial;
  const flows::tools::Stage stage{
      .library = std::make_shared<TrialLibrary>(project_library, letter->flow, body->version),
      .flow = (*flow)->flow,
      .assets = **project,
      .endpoint = **endpoint,
      .is_overdue = [until] { return std::chrono::steady_clock::now() > until; }};
  return ok(trial_json(flows::tools::run_trial(stage, std::move(session), loaded->profile, *event,
                                               services.clock.now(), std::move(body->answers)),
                       **shown));
}

// Runs on the pool of imports, so that tries don't delay the management.
void try_in_turn(Call call, SessionServices& services, Reply reply) {
  struct Waiting {
    Call call;
    Reply reply;
  };
  const auto waiting = std::make_shared<Waiting>(Waiting{std::move(call), std::move(reply)});
  const auto run = [waiting, &services] {
    try {
      auto answer = try_letter(waiting->call, services);
      answer ? waiting->reply.send(*std::move(answer)) : waiting->reply.fail(answer.error());
    } catch (const std::exception&) {
      waiting->reply.fail({Errc::internal, "the try ended with an internal error"});
    }
  };
  if (services.imports.post(waiting->call.principal->organisation_id, BlockingPool::Line::others,
                            run)) {
    return;
  }
  waiting->reply.fail({Errc::unavailable, "too many tries wait for their turn; try again later"});
}

Schema tried_node_schema() {
  const auto evaluation = object({{"source", described("The expression.", text())},
                                  {"value", anything()},
                                  {"error", text(1), Need::optional}});
  const auto change = object({{"path", text(1)}, {"before", anything()}, {"after", anything()}});
  return object({{"flow", text(1)},
                 {"node", described("Its address.", text(1))},
                 {"type", text(1)},
                 {"label", described("Its text or condition; may be empty.", text())},
                 {"evaluations", list_of(evaluation, 20)},
                 {"changes", list_of(change, 20)},
                 {"call", described("What it asks for.", anything()), Need::optional},
                 {"answer", anything(), Need::optional}});
}

Description describe_try_letter() {
  const auto answer = object({{"status", with_default(200, integer(100, 599)), Need::optional},
                              {"body", anything(), Need::optional}});
  const auto body = object(
      {{"flowVersion",
        described("Of the Flow that failed. Default: the newest.",
                  nullable(integer(1, max_whole_number))),
        Need::optional},
       {"answers", described("Of the Flow's calls, in order.", list_of(answer, most_trial_answers)),
        Need::optional}});
  const auto output = object({{"text", text()}, {"data", anything()}});
  const auto trial = object(
      {{"flow", text(1)},
       {"flowVersion", integer(1)},
       {"nodes",
        described("The last 200 Nodes that ran, in order. A value of more than 200 bytes is cut.",
                  list_of(tried_node_schema(), 200))},
       {"outputs", list_of(output)},
       {"calls", described("What the Flow asks for.", list_of(free_object()))},
       {"log", list_of(text())},
       {"error",
        described("Why a Turn fails, or why the try was ended; null: neither. The user then gets "
                  "the Endpoint's error text.",
                  nullable(text(1)))},
       {"failedAt", described("The Node at which it fails.", nullable(text(1)))},
       {"waitsAt", described("The Node that waits at the end; null: the Flow has ended.",
                             nullable(text(1)))}});
  return {
      .summary = "Try a dead letter without effects",
      .details =
          "Runs the event in the session as it is now, as if no execution were under way. No "
          "call is made: each gets the next of `answers`, then a refusal. Nothing is stored or "
          "sent. A try ends after 60 Turns, 200 outputs, 200 lines of log or 4 MiB. 409 for an "
          "event that can't be replayed, or a version that does not exist. It shows parts of the "
          "Flow, so it needs the role of those who may read Flows.",
      .body =
          json_content(named("DeadLetterTrial", with_example({{"flowVersion", nullptr}}, body))),
      .answers = {json_answer("What it would do.", named("DeadLetterTried", trial))},
      .errors = {404, 409}};
}

// ---- Replay and discard

void replay(Call call, SessionServices& services, Reply reply) {
  auto letter = find_dead_letter(call, services);
  if (!letter) return reply.fail(letter.error());
  if (letter->output_seq) {
    const auto deliver = [&services, key = letter->key] {
      if (services.deliver) services.deliver(key);
    };
    auto& letters = services.store.of(letter->key).dead_letters();
    auto done =
        letters.replay_output(letter->key.project_id, letter->id, deliver, call.principal->user_id);
    if (!done) return reply.fail(store_error(done.error()));
    return reply.send(json_response(202, {{"_id", letter->id}}));
  }
  auto event = store::event_to_replay(*letter, services.clock.now());
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
  auto& letters = services.store.of(letter->key).dead_letters();
  return from_store(letters.discard(letter->key.project_id, letter->id, call.principal->user_id))
      .map(no_content);
}

Result<Response> change_all(const Call& call, SessionServices& services, std::string_view type,
                            const char* name) {
  auto filter = dead_letter_filter(call, services);
  if (!filter) return model::fail(filter.error());
  return start_bulk_job(call, services, {type, name, filter->project_id, to_json(*filter)});
}

Result<Response> replay_all(const Call& call, SessionServices& services) {
  return change_all(call, services, model::replay_dead_letters, "Replay of dead letters");
}

Result<Response> discard_all(const Call& call, SessionServices& services) {
  return change_all(call, services, model::discard_dead_letters, "Discard of dead letters");
}

Link link(std::string_view name, std::string_view operation) {
  return {name, operation, "deadLetterId", "$response.body#/items/0/_id"};
}

Description describe_list_dead_letters() {
  auto parameters = row_parameters(dead_letter_parameters());
  parameters.push_back(
      query_parameter("state", "Only dead letters in this state.", state_schema()));
  return {.summary = "List dead letters",
          .details = "A page may have fewer items than `limit`, even none, although `next` is set.",
          .parameters = std::move(parameters),
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
      with_members(letter_shape().schema(),
                   {{"text", nullable(text()), Need::optional},
                    {"data", anything(), Need::optional},
                    {"acceptedAt", unix_time(), Need::optional},
                    {"server", described("The server of an output's webhook.", nullable(text(1))),
                     Need::optional}});
  return {.summary = "Show a dead letter",
          .answers = {json_answer("The dead letter, with its event or output if that can be read.",
                                  named("DeadLetterWithEvent", letter))}};
}

Description describe_replay() {
  return {.summary = "Replay a dead letter",
          .answers = {json_answer("The event runs again, under this id.", accepted_schema(), 202)},
          .errors = {409, 502}};
}

Description describe_replay_all() {
  return {
      .summary = "Replay all dead letters that fit",
      .details =
          "Begins a job that replays the dead letters that are new when it begins, oldest first. "
          "Dead letters that can only be discarded are skipped. A cancelled job keeps "
          "what it has done. 409 while such a job runs, with its id in `details.taskId`.",
      .parameters = dead_letter_parameters(),
      .answers = {bulk_job_answer()},
      .errors = {404, 409}};
}

Description describe_discard_all() {
  return {
      .summary = "Discard all dead letters that fit",
      .details =
          "Begins a job that discards the dead letters that are new when it begins. A cancelled "
          "job keeps what it has done. 409 while such a job runs, with its id in "
          "`details.taskId`.",
      .parameters = dead_letter_parameters(),
      .answers = {bulk_job_answer()},
      .errors = {404, 409}};
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
                    Audited::views),
      for_operators("replayDeadLetters", Method::post, "/management/deadletters/replay",
                    Role::conversation_admin, replay_all, describe_replay_all),
      for_operators("discardDeadLetters", Method::post, "/management/deadletters/discard",
                    Role::conversation_admin, discard_all, describe_discard_all),
      for_operators("showDeadLetter", Method::get, "/management/deadletters/{deadLetterId}",
                    Role::conversation_admin, show_dead_letter, describe_show_dead_letter,
                    Audited::always),
      for_operators("tryDeadLetter", Method::post, "/management/deadletters/{deadLetterId}/try",
                    Role::project_admin, try_in_turn, describe_try_letter),
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
