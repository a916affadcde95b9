// GET /management/flows/{flowId}/recordings: the recorded conversations in which a Flow ran, for
// replays on another version (flows/tools/replay.h).
#include <algorithm>
#include <functional>
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/live/answer.h"
#include "api/live/assets_cache.h"
#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "store/commit/stored_steps.h"
#include "store/model/json.h"
#include "store/shards/across_shards.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using namespace openapi;

// Limits of one page, which is read at once.
constexpr std::size_t examined_recordings = 200;  // sessions
constexpr std::size_t most_events_of_page = 2000;
constexpr std::size_t most_recordings_bytes = std::size_t{2} << 20;
// Limits of one conversation.
constexpr std::size_t most_recorded_events = 200;
constexpr std::size_t most_recording_bytes = std::size_t{1} << 20;
constexpr std::size_t outputs_at_once = 100;

// A session's conversation: the events since it began, with the steps of their receipts.
struct Conversation {
  struct Event {
    std::string input_id;
    std::string trace_id;
    std::vector<json> steps;
  };
  std::vector<Event> events;  // the oldest first; empty: the session has no receipts
  bool is_whole = false;      // the first event has begun it
};

// The member of an object; null if it is missing.
const json& recorded_member(const json& object, const char* name) {
  static const json nothing;
  const auto found = object.is_object() ? object.find(name) : object.end();
  return found == object.end() ? nothing : *found;
}

void copy_member(json& to, const json& from, const char* name) {
  if (const auto& value = recorded_member(from, name); !value.is_null()) to[name] = value;
}

bool is_recorded_turn(const json& step) {
  return recorded_member(step, "what") == "turn";
}

Conversation::Event event_of_receipt(store::Receipt& receipt, std::size_t& bytes) {
  Conversation::Event event{std::move(receipt.input_id), std::move(receipt.trace_id), {}};
  for (auto& row : receipt.rows) {
    store::unpack_answer(row.body);
    bytes += model::json_text(row.body).size();
    event.steps.push_back(std::move(row.body));
  }
  return event;
}

// Follows the chain of the session's receipts back to the event that has begun its conversation.
Result<Conversation> conversation_of(const model::SessionKey& key, store::Store& store) {
  const auto session = store.of(key).sessions().load(key);
  if (!session) return model::fail(store_error(session.error()));
  Conversation found;
  std::string id = *session ? (*session)->last_receipt : "";
  std::size_t bytes = 0;
  while (!id.empty() && !found.is_whole && found.events.size() < most_recorded_events &&
         bytes <= most_recording_bytes) {
    auto receipt = store.of(key).receipts().get(id);
    if (!receipt && receipt.error().code == Errc::not_found) break;  // its time is over
    if (!receipt) return model::fail(store_error(receipt.error()));
    if (receipt->session != key) break;
    id = std::move(receipt->previous);
    found.events.push_back(event_of_receipt(*receipt, bytes));
    found.is_whole = std::ranges::any_of(found.events.back().steps, [](const json& step) {
      return recorded_member(recorded_member(step, "recorded"), "begins") == true;
    });
  }
  std::ranges::reverse(found.events);
  return found;
}

// Whether the Flow ran in the Turn, even if another Flow entered it.
bool ran_in(const std::string& flow, const json& turn) {
  if (recorded_member(turn, "flow") == flow) return true;
  return std::ranges::any_of(recorded_member(turn, "nodes"), [&](const json& node) {
    return node.is_string() && node.get_ref<const std::string&>().starts_with(flow + ": ");
  });
}

// The Flow whose recordings are read.
struct ReplayedFlow {
  std::string id;
  std::string name;
};

// Whether the Flow ran in the conversation. A failed Turn does not name its Flow, so it counts if
// the conversation's Endpoint runs this Flow.
bool ran_in(const ReplayedFlow& flow, const model::SessionKey& key,
            const Conversation& conversation, AssetsCache& assets) {
  const auto endpoint = assets.endpoint(key.endpoint_id);
  const bool is_its_endpoint = endpoint && (*endpoint)->flow_id == flow.id;
  return std::ranges::any_of(conversation.events, [&](const Conversation::Event& event) {
    return std::ranges::any_of(event.steps, [&](const json& step) {
      if (!is_recorded_turn(step)) return false;
      return ran_in(flow.name, step) || (is_its_endpoint && step.contains("deadLetter"));
    });
  });
}

// The first number of the Turn's outputs and their end.
std::pair<std::int64_t, std::int64_t> said_in(const json& turn) {
  const auto& range = recorded_member(turn, "outputs");
  if (range.is_null()) return {0, 0};
  const auto first = range.at(0).get<std::int64_t>();
  return {first, first + range.at(1).get<std::int64_t>()};
}

struct RecordedOutputs {
  std::map<std::int64_t, json> by_number{};
  bool are_all = true;  // false: they are too long
};

// The outputs of the conversation. Withdrawn and old ones are gone.
Result<RecordedOutputs> recorded_outputs(const model::SessionKey& key,
                                         const Conversation& conversation, store::Outbox& outbox) {
  std::int64_t first = 0;
  std::int64_t end = 0;
  for (const auto& event : conversation.events) {
    for (const auto& step : event.steps) {
      const auto [from, to] = is_recorded_turn(step) ? said_in(step) : std::pair(end, end);
      if (from == to) continue;
      first = first == 0 ? from : std::min(first, from);
      end = std::max(end, to);
    }
  }
  RecordedOutputs outputs;
  std::size_t bytes = 0;
  for (auto after = first - 1; after + 1 < end;) {
    auto page = outbox.outputs(key, after, outputs_at_once);
    if (!page) return model::fail(store_error(page.error()));
    for (auto& output : *page) {
      after = output.seq;
      bytes += output.text.size() + model::json_text(output.data).size();
      outputs.by_number.emplace(
          output.seq, json{{"text", std::move(output.text)}, {"data", std::move(output.data)}});
    }
    outputs.are_all = bytes <= most_recording_bytes;
    if (!outputs.are_all || page->size() < outputs_at_once) break;
  }
  return outputs;
}

// The input that a Turn took, from the first step of its receipt.
void add_input(json& turn, const Conversation::Event& event, const json& accepted) {
  turn["event"] = accepted.value("type", "");
  turn["acceptedAtMs"] = accepted.value("at", std::int64_t{0});
  turn["traceId"] = event.trace_id;
  const auto& recorded = recorded_member(accepted, "recorded");
  if (accepted.contains("text")) {
    turn["text"] =
        accepted.value("text", "") + (recorded.is_object() ? recorded.value("rest", "") : "");
  }
  copy_member(turn, recorded, "data");
  copy_member(turn, accepted, "claim");
  if (const auto& left_out = recorded_member(recorded, "bytes"); !left_out.is_null()) {
    turn["missing"] = "an input of more than " + left_out.dump() + " bytes";
  }
}

json recorded_turn(const Conversation::Event& event, const json& accepted, const json& step,
                   const RecordedOutputs& outputs) {
  json turn{{"inputId", event.input_id}, {"atMs", step.value("at", std::int64_t{0})}};
  copy_member(turn, step, "event");
  if (!turn.contains("event")) add_input(turn, event, accepted);
  const auto& recorded = recorded_member(step, "recorded");
  for (const char* name : {"begins", "state", "profile", "profileVersion", "changesProfile",
                           "timer", "eventId", "result"}) {
    copy_member(turn, recorded, name);
  }
  if (const auto& left_out = recorded_member(recorded, "profileBytes"); !left_out.is_null()) {
    turn["missing"] = "a profile of " + left_out.dump() + " bytes";
  }
  for (const char* name : {"flow", "version", "followUps", "ended"}) copy_member(turn, step, name);
  if (const auto& nodes = recorded_member(step, "nodes"); nodes.is_array() && !nodes.empty()) {
    turn["node"] = nodes.back();
  }
  if (step.contains("deadLetter")) turn["failure"] = step.value("reason", "");
  if (const auto& waits = recorded_member(step, "waitsFor"); waits.is_object()) {
    json& shown = turn["waitsFor"] = json::object();
    for (const char* name : {"id", "to", "until"}) copy_member(shown, waits, name);
    copy_member(shown, recorded, "request");
  }
  const auto [first, end] = said_in(step);
  if (first == 0) return turn;
  turn["said"] = {first, end - first};
  json& said = turn["outputs"] = json::array();
  const auto& known = outputs.by_number;
  for (auto each = known.lower_bound(first); each != known.end() && each->first < end; ++each) {
    said.push_back(each->second);
  }
  return turn;
}

// Why the conversation can't be replayed from its begin. Null: it can.
json why_not_whole(const Conversation& conversation) {
  if (conversation.is_whole) return nullptr;
  if (conversation.events.size() >= most_recorded_events) {
    return "it has more than " + std::to_string(most_recorded_events) + " events";
  }
  return "it began before its oldest receipt, or is too long";
}

Result<json> recording_of(const model::SessionKey& key, const Conversation& conversation,
                          SessionServices& services) {
  json item{{"endpointId", key.endpoint_id},
            {"userId", key.user_id},
            {"sessionId", key.session_id},
            {"notWhole", why_not_whole(conversation)}};
  const auto endpoint = services.assets.endpoint(key.endpoint_id);
  item["endpoint"] = endpoint ? json((*endpoint)->name) : json(nullptr);
  item["URLToken"] = endpoint ? json((*endpoint)->url_token) : json(nullptr);
  json& turns = item["turns"] = json::array();
  if (!conversation.is_whole) return item;
  auto outputs = recorded_outputs(key, conversation, services.store.of(key).outbox());
  if (!outputs) return model::fail(outputs.error());
  if (!outputs->are_all) {
    item["notWhole"] = "its outputs are too long";
    return item;
  }
  for (const auto& event : conversation.events) {
    if (event.steps.empty()) continue;
    const json& accepted = recorded_member(event.steps.front(), "accepted");
    if (accepted.is_null()) continue;
    for (const auto& step : event.steps) {
      if (is_recorded_turn(step)) turns.push_back(recorded_turn(event, accepted, step, *outputs));
    }
  }
  std::ranges::stable_sort(turns.get_ref<json::array_t&>(), {},
                           [](const json& turn) { return turn["atMs"].get<std::int64_t>(); });
  return item;
}

struct RecordingsPage {
  json items = json::array();
  std::optional<std::int64_t> next{};
};

Result<RecordingsPage> page_of_recordings(const store::ProjectInfo& project,
                                          const ReplayedFlow& flow,
                                          const store::SessionFilter& filter, const PageQuery& page,
                                          SessionServices& services) {
  const auto list = [&](store::Shard& shard) {
    return shard.sessions().list(project.id, filter, page.after, examined_recordings);
  };
  const auto found = merge_pages(services.store.shards(), examined_recordings, list,
                                 &store::SessionSummary::row, std::greater<>());
  if (!found) return model::fail(store_error(found.error()));
  RecordingsPage answer{.next = found->next};
  std::size_t bytes = 0;
  std::size_t events = 0;
  for (const auto& session : found->rows) {
    const auto conversation = conversation_of(session.key, services.store);
    if (!conversation) return model::fail(conversation.error());
    events += conversation->events.size();
    if (ran_in(flow, session.key, *conversation, services.assets)) {
      auto item = recording_of(session.key, *conversation, services);
      if (!item) return model::fail(item.error());
      bytes += model::json_text(*item).size();
      answer.items.push_back(*std::move(item));
    }
    const bool is_full = answer.items.size() == page.limit || bytes >= most_recordings_bytes ||
                         events >= most_events_of_page;
    if (!is_full) continue;
    if (&session != &found->rows.back()) answer.next = session.row;
    break;
  }
  return answer;
}

Result<Response> list_recordings(const Call& call, SessionServices& services) {
  auto found = path_flow(services.store, call);
  if (!found) return model::fail(found.error());
  const auto& [id, project] = *found;
  auto flow = services.store.assets().flow(id, 0);
  if (!flow) return model::fail(store_error(flow.error()));
  if (!*flow) return model::fail(Errc::not_found, std::string(missing_flow));
  auto page = page_query(call.request);
  if (!page) return model::fail(page.error());
  store::SessionFilter filter;
  if (const auto token = call.request.parameter("URLToken")) {
    auto endpoint = find_endpoint_for(services.assets, *call.principal, *token);
    if (!endpoint) return model::fail(endpoint.error());
    if ((*endpoint)->project_id != project.id) {
      return model::fail(Errc::not_found, "the project has no such Endpoint");
    }
    filter.endpoint_id = (*endpoint)->id;
  }
  auto recordings = page_of_recordings(project, {id, (*flow)->name}, filter, *page, services);
  if (!recordings) return model::fail(recordings.error());
  return ok({{"_id", id},
             {"projectId", project.id},
             {"name", (*flow)->name},
             {"readAtMs", model::to_unix_ms(services.clock.now())},
             {"items", std::move(recordings->items)},
             {"next", recordings->next ? json(*recordings->next) : json(nullptr)}});
}

Schema recorded_turn_schema() {
  constexpr auto may = Need::optional;
  const auto unix_ms = described("Unix time in milliseconds.", integer(0));
  const auto output = object({{"text", text()}, {"data", anything()}});
  const auto call =
      object({{"id", text(1)},
              {"to", described("The host, without its path.", text()), may},
              {"request", described("A hash of the request.", text(1)), may},
              {"until", described("Of a timer: Unix time in milliseconds.", integer(0)), may}});
  const auto result =
      object({{"id", described("The call's.", text(1))},
              {"answer", described("Missing: it is too large.", free_object()), may},
              {"bytes", integer(0), may}});
  const auto turn = object(
      {{"inputId", described("Of the execution.", text(1))},
       {"atMs", unix_ms},
       {"event", described("`callResult` and `timer` continue an execution, the others begin one.",
                           text(1))},
       {"acceptedAtMs", unix_ms, may},
       {"traceId", text(), may},
       {"text", text(), may},
       {"data", anything(), may},
       {"claim",
        described("The schedule, follow-up, timer or dead letter that it comes from.", text(1)),
        may},
       {"begins", described("A conversation begins.", boolean()), may},
       {"state",
        described("What the conversation knows of the conversation before it.", anything()), may},
       {"profile", described("As the conversation finds it.", anything()), may},
       {"profileVersion", described("Before the Turn.", integer(1)), may},
       {"changesProfile", boolean(), may},
       {"timer", text(1), may},
       {"eventId", text(1), may},
       {"result", result, may},
       {"flow", text(1), may},
       {"version", integer(0), may},
       {"node", described("The last Node that ran.", text()), may},
       {"waitsFor", call, may},
       {"followUps", described("When planned follow-ups are due.", list_of(unix_ms)), may},
       {"failure", described("Why the Turn failed.", text()), may},
       {"ended", described("Why nothing ran.", text(1)), may},
       {"said",
        described("The number of its first output, and how many there were.",
                  list_of(integer(0), 2)),
        may},
       {"outputs", described("Withdrawn ones are missing.", list_of(output)), may},
       {"missing", described("What is too large to be recorded.", text(1)), may}});
  return named("RecordedTurn", turn);
}

Description describe_list_recordings() {
  const auto recording =
      object({{"endpointId", id()},
              {"endpoint", described("Its name. Null: it is gone.", nullable(text(1)))},
              {"URLToken", nullable(url_token())},
              {"userId", text(1)},
              {"sessionId", text(1)},
              {"notWhole",
               described("Why its Turns are left out. Null: they are not.", nullable(text(1)))},
              {"turns", list_of(recorded_turn_schema())}});
  const auto page =
      with_members(row_page(named("Recording", recording)),
                   {{"_id", id()},
                    {"projectId", id()},
                    {"name", described("The Flow's.", text(1))},
                    {"readAtMs", described("Unix time in milliseconds.", integer(0))}});
  return {.summary = "List recorded conversations in which a Flow ran",
          .details =
              "Of each session the newest conversation, from its begin, for a replay on "
              "another version of the Flow. The newest sessions come first. A page may have "
              "fewer items than `limit` and still a `next`.",
          .parameters =
              row_parameters({query_parameter("URLToken", "Only this Endpoint's.", url_token())}),
          .answers = {json_answer("A page of recordings.", named("Recordings", page))},
          .errors = {404}};
}

}  // namespace

Operations recordings_operations() {
  static constexpr Operation rows[] = {
      for_operators("listRecordings", Method::get, "/management/flows/{flowId}/recordings",
                    Role::conversation_admin, list_recordings, describe_list_recordings,
                    Audited::views),
  };
  return rows;
}

}  // namespace conversed::api
