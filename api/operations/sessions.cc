// /management/sessions: operators list sessions, look into one, and end one's conversation.
#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/live/answer.h"
#include "api/live/assets_cache.h"
#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "store/store.h"

namespace conversed::api {

namespace {

using model::Errc;
using model::Result;
using nlohmann::json;

constexpr std::int64_t shown_outputs = 20;  // the last ones

json summary_json(const store::SessionSummary& session, AssetsCache& assets) {
  json item = session_names(session.key);
  const auto endpoint = assets.endpoint(session.key.endpoint_id);
  item["endpoint"] = endpoint ? json((*endpoint)->name) : json(nullptr);
  item["URLToken"] = endpoint ? json((*endpoint)->url_token) : json(nullptr);
  item["state"] = session.busy ? "busy" : "idle";
  item["inboxSize"] = session.inbox_size;
  item["outputs"] = session.last_output_seq;
  item["startedAt"] = unix_seconds(session.started_at);
  item["lastActivityAt"] = unix_seconds(session.last_activity_at);
  return item;
}

Result<Response> list_sessions(const Call& call, SessionServices& services) {
  auto project = project_of(services.store, call, Role::conversation_admin);
  if (!project) return model::fail(project.error());
  auto page = page_query(call.request);
  if (!page) return model::fail(page.error());
  auto sessions = services.store.sessions().list(project->id, page->after, page->limit);
  return rows_response(sessions, *page, &store::SessionSummary::row,
                       [&](const auto& session) { return summary_json(session, services.assets); });
}

json session_json(const model::Session& session, const std::vector<model::Output>& outputs) {
  json body = session_names(session.key);
  body["version"] = session.version;
  body["state"] = session.busy() ? "busy" : "idle";
  body["inboxSize"] = session.inbox_size;
  body["startedAt"] = unix_seconds(session.started_at);
  body["lastActivityAt"] = unix_seconds(session.last_activity_at);
  body["context"] = session.context;
  body["flowState"] = session.flow_state;
  body["execution"] = nullptr;
  if (session.execution) {
    body["execution"] = {{"inputId", session.execution->input_id},
                         {"source", model::to_string(session.execution->source)},
                         {"beganAt", unix_seconds(session.execution->began_at)},
                         {"traceId", session.execution->trace_id},
                         {"pendingCallId", session.execution->pending_call_id}};
  }
  json items = json::array();
  for (const model::Output& output : outputs) items.push_back(output_item(output));
  body["outputs"] = std::move(items);
  return body;
}

Result<Response> show_session(const Call& call, SessionServices& services) {
  auto token = required_parameter(call.request, "URLToken");
  if (!token) return model::fail(token.error());
  auto key = session_of(services.assets, *call.principal, *token,
                        call.request.parameter("userId").value_or(""),
                        call.request.parameter("sessionId").value_or(""));
  if (!key) return model::fail(key.error());
  auto session = services.store.sessions().load(*key);
  if (!session) return model::fail(store_error(session.error()));
  if (!*session) return model::fail(Errc::not_found, "there is no such session");
  const std::int64_t after = std::max<std::int64_t>(0, (*session)->last_output_seq - shown_outputs);
  auto outputs = services.store.outbox().outputs(*key, after, shown_outputs);
  if (!outputs) return model::fail(store_error(outputs.error()));
  return ok(session_json(**session, *outputs));
}

Result<model::SessionKey> read_key(const Call& call, SessionServices& services) {
  std::string url_token;
  std::string user;
  std::string session;
  auto body = read_object(call.request,
                          {{"URLToken", &url_token}, {"userId", &user}, {"sessionId", &session}});
  if (!body) return model::fail(body.error());
  return session_of(services.assets, *call.principal, url_token, user, session);
}

Result<Response> reset_session(const Call& call, SessionServices& services) {
  auto key = read_key(call, services);
  if (!key) return model::fail(key.error());
  const auto tell = [&services](const std::string& ended_input) {
    if (!ended_input.empty()) {
      services.pending_replies.finish(
          ended_input,
          model::fail(Errc::internal, "The conversation was reset before it answered."));
    }
  };
  auto done = services.store.sessions().reset(*key, tell);
  if (!done) return model::fail(store_error(done.error()));
  // What waited for the execution that is gone runs now.
  if (services.touch) services.touch(*key);
  return no_content();
}

openapi::Schema session_schema() {
  using namespace openapi;
  return with_members(session_names_schema(), {{"state", one_of({"busy", "idle"})},
                                               {"inboxSize", integer(0)},
                                               {"startedAt", unix_time()},
                                               {"lastActivityAt", unix_time()}});
}

openapi::Description describe_list_sessions() {
  using namespace openapi;
  auto parameters = row_parameters();
  parameters.push_back(project_parameter());
  const auto session = with_members(session_schema(), {{"endpoint", nullable(text(1))},
                                                       {"URLToken", nullable(url_token())},
                                                       {"outputs", integer(0)}});
  return {.summary = "List sessions",
          .parameters = std::move(parameters),
          .answers = {json_answer("A page of them.", row_page(named("SessionSummary", session)))},
          .errors = {404}};
}

openapi::Description describe_show_session() {
  using namespace openapi;
  const auto execution = object({{"inputId", text()},
                                 {"source", text()},
                                 {"beganAt", unix_time()},
                                 {"traceId", text()},
                                 {"pendingCallId", text()}});
  const auto session = with_members(session_schema(), {{"version", integer(0)},
                                                       {"context", anything()},
                                                       {"flowState", anything()},
                                                       {"execution", nullable(execution)},
                                                       {"outputs", list_of(output_schema())}});
  const auto name = [](const char* parameter, const char* what) {
    return query_parameter(parameter, what, conversation_name(), Need::required);
  };
  return {.summary = "Show a session",
          .details = "With its last " + std::to_string(shown_outputs) + " outputs.",
          .parameters = {query_parameter("URLToken", "The Endpoint.", url_token(), Need::required),
                         name("userId", "The user."), name("sessionId", "The session.")},
          .answers = {json_answer("The session.", named("Session", session))},
          .errors = {404}};
}

openapi::Description describe_reset_session() {
  using namespace openapi;
  const auto body = object({{"URLToken", url_token()},
                            {"userId", conversation_name()},
                            {"sessionId", conversation_name()}});
  return {.summary = "End a conversation",
          .details = "The session's next message begins anew.",
          .body = json_content(named("SessionName", body)),
          .answers = {empty_answer("It is over.")},
          .errors = {404}};
}

}  // namespace

Operations sessions_operations() {
  static constexpr Operation rows[] = {
      for_operators("listSessions", Method::get, "/management/sessions", Role::conversation_admin,
                    list_sessions, describe_list_sessions),
      for_operators("showSession", Method::get, "/management/sessions/show",
                    Role::conversation_admin, show_session, describe_show_session, Audited::always),
      for_operators("resetSession", Method::post, "/management/sessions/reset",
                    Role::conversation_admin, reset_session, describe_reset_session),
  };
  return rows;
}

}  // namespace conversed::api
