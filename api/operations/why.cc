// GET /management/why/{id}: why an event, output, timer, call or job has not happened yet.
// GET /management/why: the same of a session.
#include "api/operations/why.h"

#include <algorithm>
#include <nlohmann/json.hpp>
#include <utility>

#include "api/openapi/description.h"
#include "api/openapi/shape.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/reasons/reasons.h"
#include "api/replies.h"
#include "store/store.h"
#include "store/text/joined.h"

namespace conversed::api {

using model::Errc;
using model::Result;
using model::Wait;
using nlohmann::json;
using namespace openapi;

namespace {

std::vector<std::string_view> reason_names() {
  std::vector<std::string_view> names;
  for (const auto& each : model::all_reasons()) names.push_back(each.name);
  return names;
}

std::vector<std::string_view> reason_names_of(model::Listed list) {
  std::vector<std::string_view> names;
  for (const auto reason : model::reasons_of(list)) names.push_back(model::info_of(reason).name);
  return names;
}

const Shape<Wait>& wait_shape() {
  const auto info = [](const Wait& wait) -> const model::ReasonInfo& {
    return model::info_of(wait.reason);
  };
  static const Shape<Wait> shape(
      "Wait",
      {{"reason", one_of(reason_names()), [info](const Wait& wait) { return info(wait).name; }},
       {"code", described("The exit code of `conversectl why`.", integer(10)),
        [](const Wait& wait) { return static_cast<int>(wait.reason); }},
       {"subject", text(), &Wait::subject},
       {"since", described("Null: not known.", nullable(unix_time())),
        null_if_absent(&Wait::since)},
       {"expectedAt", described("Null: not known.", nullable(unix_time())),
        null_if_absent(&Wait::expected_at)},
       {"remedy", text(1), [info](const Wait& wait) {
          return wait.remedy.empty() ? info(wait).remedy : wait.remedy;
        }}});
  return shape;
}

json unix_seconds_or_null(std::optional<model::Timestamp> time) {
  return time ? json(model::to_unix_ms(*time) / 1000) : json(nullptr);
}

Response answer_why(std::string_view kind, const model::Waits& waits,
                    std::optional<model::Timestamp> delivered_at = {}, json ending = nullptr) {
  return ok({{"kind", kind},
             {"waits", json(waits_json(waits))},
             {"deliveredAt", unix_seconds_or_null(delivered_at)},
             {"ending", std::move(ending)}});
}

// How the delivery of the output ended, with the user's e-mail address.
json ending_json(const Call& call, SessionServices& services, const Reasons::Found& found) {
  if (!found.ending) return nullptr;
  const auto& [done, by, letter, at] = *found.ending;
  const auto user = services.store.accounts().user(call.principal->organisation_id, by);
  return {{"done", done},
          {"by", by.empty() ? json(nullptr) : json(user ? user->email : by)},
          {"deadLetter", letter},
          {"at", unix_seconds_or_null(at)}};
}

constexpr std::string_view nothing_has_it =
    "nothing that waits has this id; it may be done, or not be run yet";

Result<Response> why_id(const Call& call, SessionServices& services) {
  auto found = services.reasons.of(std::string(call.parameters["id"]));
  if (!found) return model::fail(store_error(found.error()));
  if (!found->kind.empty()) {
    auto project = open_project(services.store, *call.principal, found->project_id,
                                Role::conversation_admin, nothing_has_it);
    if (!project) return model::fail(project.error());
  } else if (found->waits.empty()) {
    return model::fail(Errc::not_found, std::string(nothing_has_it));
  }
  return answer_why(found->kind.empty() ? "unknown" : found->kind, found->waits,
                    found->delivered_at, ending_json(call, services, *found));
}

Result<Response> why_session(const Call& call, SessionServices& services) {
  auto token = required_parameter(call.request, "URLToken");
  if (!token) return model::fail(token.error());
  auto key = session_of(services.assets, *call.principal, *token,
                        call.request.parameter("userId").value_or(""),
                        call.request.parameter("sessionId").value_or(""));
  if (!key) return model::fail(key.error());
  auto waits = services.reasons.of_session_and_outputs(*key);
  if (!waits) return model::fail(store_error(waits.error()));
  if (!*waits) {
    return model::fail(Errc::not_found,
                       "there is no such session; its first event may not be run yet");
  }
  return answer_why("session", **waits);
}

Schema why_schema() {
  const auto ending = object({{"done", one_of({"givenUp", "dropped", "replayed", "discarded"})},
                              {"by", described("Who did it; null: the daemon.", nullable(text(1)))},
                              {"deadLetter", id()},
                              {"at", unix_time()}});
  return named("Why",
               object({{"kind", one_of({"session", "event", "delivery", "timer", "call", "job",
                                        "deadLetter", "unknown"})},
                       {"waits", waits_schema()},
                       {"deliveredAt", described("When the output, or the event's last one, was "
                                                 "delivered; null: not by a webhook, or not known.",
                                                 nullable(unix_time()))},
                       {"ending", described("How the delivery of the output, or of one of the "
                                            "event's outputs, ended without the webhook; otherwise "
                                            "null.",
                                            nullable(ending))}}));
}

Description describe_why_id() {
  return {.summary = "Tell why something has not happened yet",
          .details =
              "The id of an inject or another event, of an output (`webhook-id`), a timer, a "
              "call, a job or a dead letter. While the store or the log fails, an unknown id "
              "has the kind `unknown`: its event may wait in the log.",
          .answers = {json_answer("Its reasons; none: nothing waits.", why_schema())}};
}

Description describe_why_session() {
  const auto name = [](const char* parameter, const char* what) {
    return query_parameter(parameter, what, conversation_name(), Need::required);
  };
  return {.summary = "Tell why a session's next event does not run",
          .details =
              "If the session is not busy, the reasons of its next output stand before its own. A "
              "question without a time-out is a reason without `expectedAt`: the session's next "
              "input runs at once.",
          .parameters = {query_parameter("URLToken", "The Endpoint.", url_token(), Need::required),
                         name("userId", "The user."), name("sessionId", "The session.")},
          .answers = {json_answer("Its reasons; none: nothing waits.", why_schema())},
          .errors = {404}};
}

}  // namespace

Value waits_json(const model::Waits& waits) {
  return wait_shape()(waits);
}

Value waits_json(const Result<model::Waits>& waits) {
  return waits ? waits_json(*waits) : Value();
}

Schema waits_schema() {
  return described("Why it waits: its own reason first, then the reason of its subject.",
                   list_of(wait_shape().schema()));
}

openapi::Parameter reason_parameter(model::Listed list) {
  return query_parameter("reason", "Only those that wait for this reason.",
                         one_of(reason_names_of(list)));
}

Result<std::optional<model::Reason>> reason_filter(const Request& request, model::Listed list) {
  const auto name = request.parameter("reason");
  if (!name) return std::nullopt;
  for (const auto reason : model::reasons_of(list)) {
    if (model::info_of(reason).name == *name) return reason;
  }
  return model::fail(Errc::invalid_argument,
                     "reason must be one of: " + text::joined(reason_names_of(list)));
}

bool has_reason(const model::Waits& waits, const std::optional<model::Reason>& wanted) {
  return !wanted || std::ranges::find(waits, *wanted, &Wait::reason) != waits.end();
}

Operations why_operations() {
  static constexpr Operation rows[] = {
      for_operators("whySession", Method::get, "/management/why", Role::conversation_admin,
                    why_session, describe_why_session),
      for_operators("why", Method::get, "/management/why/{id}", Role::conversation_admin, why_id,
                    describe_why_id),
  };
  return rows;
}

}  // namespace conversed::api
