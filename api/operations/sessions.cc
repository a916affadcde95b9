// /management/sessions: operators list sessions, show one, and end a conversation.
#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>

#include "api/live/answer.h"
#include "api/live/assets_cache.h"
#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/deliveries.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/why.h"
#include "api/reasons/reasons.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "store/shards/across_shards.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using namespace openapi;

constexpr std::int64_t shown_outputs = 20;  // the last ones

// The common members of a session in a list and of a single session.
template <typename T>
Shape<T> shape_of_sessions() {
  const auto state = [](const T& session) {
    return std::invoke(&T::busy, session) ? "busy" : "idle";
  };
  return session_shape<T>(&T::key).with("",
                                        {{"state", one_of({"busy", "idle"}), state},
                                         {"inboxSize", integer(0), &T::inbox_size},
                                         {"startedAt", unix_time(), &T::started_at},
                                         {"lastActivityAt", unix_time(), &T::last_activity_at}});
}

const Shape<store::SessionSummary>& summary_shape() {
  using store::SessionSummary;
  static const auto shape = shape_of_sessions<SessionSummary>().with(
      "", {{"outputs", integer(0), &SessionSummary::last_output_seq}});
  return shape;
}

json summary_json(const store::SessionSummary& session, AssetsCache& assets) {
  json item = summary_shape()(session);
  const auto endpoint = assets.endpoint(session.key.endpoint_id);
  item["endpoint"] = endpoint ? json((*endpoint)->name) : json(nullptr);
  item["URLToken"] = endpoint ? json((*endpoint)->url_token) : json(nullptr);
  return item;
}

Result<store::SessionFilter> session_filter(const Call& call, SessionServices& services,
                                            const store::ProjectInfo& project) {
  store::SessionFilter filter;
  filter.text = call.request.parameter("text").value_or("");
  if (const auto user = call.request.parameter("userId")) {
    if (auto checked = check_name("userId", *user); !checked) return model::fail(checked.error());
    filter.user_id = *user;
  }
  if (const auto token = call.request.parameter("URLToken")) {
    auto endpoint = find_endpoint_for(services.assets, *call.principal, *token);
    if (!endpoint) return model::fail(endpoint.error());
    if ((*endpoint)->project_id != project.id) {
      return model::fail(Errc::not_found, "the project has no such Endpoint");
    }
    filter.endpoint_id = (*endpoint)->id;
  }
  if (const auto state = call.request.parameter("state")) {
    if (*state != "busy" && *state != "idle") {
      return model::fail(Errc::invalid_argument, "state must be busy or idle");
    }
    filter.busy = *state == "busy";
  }
  return filter;
}

Result<store::Sessions::Page> page_of_sessions(store::Store& store, const std::string& project_id,
                                               const store::SessionFilter& filter,
                                               const PageQuery& page) {
  const auto list = [&](store::Shard& shard) {
    return shard.sessions().list(project_id, filter, page.after, page.limit);
  };
  if (!filter.user_id.empty()) return list(store.of({project_id, "", filter.user_id, ""}));
  return merge_pages(store.shards(), page.limit, list, &store::SessionSummary::row,
                     std::greater<>());
}

Result<Response> list_sessions(const Call& call, SessionServices& services) {
  auto project = project_of(services.store, call, Role::conversation_admin);
  if (!project) return model::fail(project.error());
  auto page = page_query(call.request);
  if (!page) return model::fail(page.error());
  auto filter = session_filter(call, services, *project);
  if (!filter) return model::fail(filter.error());
  auto reason = reason_filter(call.request, model::Listed::sessions);
  if (!reason) return model::fail(reason.error());
  const auto found = page_of_sessions(services.store, project->id, *filter, *page);
  if (!found) return model::fail(store_error(found.error()));
  const auto waits = services.reasons.of_page(found->rows);
  if (!waits) return model::fail(store_error(waits.error()));
  json items = json::array();
  for (std::size_t i = 0; i < found->rows.size(); ++i) {
    if (!has_reason((*waits)[i], *reason)) continue;
    items.push_back(summary_json(found->rows[i], services.assets));
    items.back()["waits"] = json(waits_json((*waits)[i]));
  }
  return ok(
      {{"items", std::move(items)}, {"next", found->next ? json(*found->next) : json(nullptr)}});
}

const Shape<model::Session>& session_details_shape() {
  using model::Execution;
  using model::Session;
  static const Shape<Execution> execution(
      "", {{"inputId", text(), &Execution::input_id},
           {"source", text(), [](const Execution& each) { return model::to_string(each.source); }},
           {"beganAt", unix_time(), &Execution::began_at},
           {"traceId", text(), &Execution::trace_id},
           {"pendingCallId", text(), &Execution::pending_call_id}});
  const auto execution_or_null = [](const Session& session) {
    return session.execution ? execution(*session.execution) : Value();
  };
  static const auto shape = shape_of_sessions<Session>().with(
      "",
      {{"version", integer(0), &Session::version},
       {"context", anything(), &Session::context},
       {"flowState", anything(), &Session::flow_state},
       {"lastReceipt",
        described("The newest event with a receipt, which names the one before it.", nullable_id()),
        null_if_empty(&Session::last_receipt)},
       {"execution", nullable(execution.schema()), execution_or_null}});
  return shape;
}

Result<Response> show_session(const Call& call, SessionServices& services) {
  auto token = required_parameter(call.request, "URLToken");
  if (!token) return model::fail(token.error());
  auto key = session_of(services.assets, *call.principal, *token,
                        call.request.parameter("userId").value_or(""),
                        call.request.parameter("sessionId").value_or(""));
  if (!key) return model::fail(key.error());
  store::Shard& shard = services.store.of(*key);
  auto loaded = shard.sessions().load_with_profile(*key);
  if (!loaded) return model::fail(store_error(loaded.error()));
  if (!loaded->damage.empty()) {
    // A damaged profile does not hide its sessions.
    auto alone = shard.sessions().load(*key);
    if (!alone) return model::fail(store_error(alone.error()));
    loaded->session = *std::move(alone);
  }
  const auto& session = loaded->session;
  if (!session) return model::fail(Errc::not_found, "there is no such session");
  const std::int64_t after = std::max<std::int64_t>(0, session->last_output_seq - shown_outputs);
  auto outputs = shard.outbox().outputs(*key, after, shown_outputs);
  if (!outputs) return model::fail(store_error(outputs.error()));
  json body = session_details_shape()(*session);
  body["profile"] = loaded->damage.empty() ? loaded->profile.data : json();
  body["profileDamage"] = loaded->damage.empty() ? json() : json(loaded->damage);
  store::Deliveries::Place before_shown;
  before_shown.seq = after;
  const auto pending =
      shard.deliveries().list({.project_id = key->project_id, .session = *key}, before_shown,
                              shown_outputs, services.store.timer_now());
  if (!pending) return model::fail(store_error(pending.error()));
  body["waits"] = waits_json(services.reasons.of_session(*session));
  json& items = body["outputs"] = json::array();
  for (const model::Output& output : *outputs) {
    json& item = items.emplace_back(output_item(output));
    const auto waits = std::ranges::find(pending->rows, output.seq, &store::PendingDelivery::seq);
    item["_id"] = output.id;
    item["delivery"] = waits == pending->rows.end() ? json() : json(delivery_progress()(*waits));
  }
  return ok(body);
}

Result<Response> reset_session(const Call& call, SessionServices& services) {
  std::string token;
  std::string user;
  std::string session;
  auto body =
      read_object(call.request, {{"URLToken", &token}, {"userId", &user}, {"sessionId", &session}});
  if (!body) return model::fail(body.error());
  auto key = session_of(services.assets, *call.principal, token, user, session);
  if (!key) return model::fail(key.error());
  const auto tell = [&services](const std::string& ended_input) {
    if (!ended_input.empty()) {
      services.pending_replies.finish(
          ended_input,
          model::fail(Errc::internal, "The conversation was reset before it answered."));
    }
  };
  auto done = services.store.of(*key).sessions().reset(*key, tell);
  if (!done) return model::fail(store_error(done.error()));
  services.watch.notify(outputs_name(*key));
  // The inbox of the ended execution runs now.
  if (services.touch) services.touch(*key);
  return no_content();
}

Description describe_list_sessions() {
  const auto session = with_members(summary_shape().schema(), {{"endpoint", nullable(text(1))},
                                                               {"URLToken", nullable(url_token())},
                                                               {"waits", waits_schema()}});
  return {
      .summary = "List sessions",
      .details =
          "A page may have fewer sessions than `limit` and still a `next`, because a request "
          "examines a bounded number of sessions, and those with another `reason` are left out.",
      .parameters = row_parameters(
          {project_parameter(), query_parameter("userId", "Only this user's.", conversation_name()),
           query_parameter("URLToken", "Only this Endpoint's.", url_token()),
           query_parameter("state", "Only sessions in this state.", one_of({"busy", "idle"})),
           reason_parameter(model::Listed::sessions),
           query_parameter("text", "Only sessions with an output that contains this text.",
                           form_text())}),
      .answers = {json_answer("A page of sessions.", row_page(named("SessionSummary", session)))},
      .errors = {404}};
}

Description describe_show_session() {
  const auto output = with_members(
      output_schema(), {{"_id", text(1)},
                        {"delivery", described("Null: it does not wait for a webhook.",
                                               nullable(delivery_progress().schema()))}});
  const auto session = with_members(
      session_details_shape().schema(),
      {{"outputs", list_of(named("SessionOutput", output))},
       {"profile", described("What Flows remember of the user over all sessions.", anything())},
       {"profileDamage",
        described("Why the stored profile can't be read. Null: it can.", nullable(text(1)))},
       {"waits", nullable(waits_schema())}});
  const auto name = [](const char* parameter, const char* what) {
    return query_parameter(parameter, what, conversation_name(), Need::required);
  };
  return {.summary = "Show a session",
          .details = "Includes its last " + std::to_string(shown_outputs) + " outputs.",
          .parameters = {query_parameter("URLToken", "The Endpoint.", url_token(), Need::required),
                         name("userId", "The user."), name("sessionId", "The session.")},
          .answers = {json_answer("The session.", named("Session", session))},
          .errors = {404}};
}

Description describe_reset_session() {
  const auto body = object({{"URLToken", url_token()},
                            {"userId", conversation_name()},
                            {"sessionId", conversation_name()}});
  return {.summary = "End a conversation",
          .details = "The session's next message begins a new conversation.",
          .body = json_content(named("SessionName", body)),
          .answers = {empty_answer("The conversation has ended.")},
          .errors = {404}};
}

}  // namespace

Operations sessions_operations() {
  static constexpr Operation rows[] = {
      for_operators("listSessions", Method::get, "/management/sessions", Role::conversation_admin,
                    list_sessions, describe_list_sessions),
      for_operators("showSession", Method::get, "/management/sessions/show",
                    Role::conversation_admin, show_session, describe_show_session, Audited::views),
      for_operators("resetSession", Method::post, "/management/sessions/reset",
                    Role::conversation_admin, reset_session, describe_reset_session),
  };
  return rows;
}

}  // namespace conversed::api
