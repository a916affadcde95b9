// /management/timers: everything that waits for its time, of all kinds: follow-ups, sleeping
// executions, questions that want an answer in time, scheduled injects. Operators list them, take
// them back and put them off.
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/schedules.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "store/store.h"

namespace conversed::api {

namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using store::Timers;

constexpr char place_separator = '.';
constexpr std::array session_parameters{"URLToken", "userId", "sessionId"};

json timer_json(const Timers::Row& row) {
  json body = session_names(row.session);
  body["_id"] = row.id;
  body["kind"] = store::to_string(row.kind);
  body["dueAt"] = unix_seconds(row.due_at);
  return body;
}

std::string to_text(const Timers::Place& place) {
  return std::to_string(model::to_unix_ms(place.due)) + place_separator + place.claim;
}

Result<Timers::Place> place_of_timer(const Request& request) {
  const auto text = request.parameter("after");
  if (!text) return Timers::Place{};
  std::int64_t due = 0;
  const auto [end, error] = std::from_chars(text->data(), text->data() + text->size(), due);
  const auto rest = text->substr(static_cast<std::size_t>(end - text->data()));
  if (error != std::errc() || !rest.starts_with(place_separator)) {
    return model::fail(Errc::invalid_argument, "after must be the `next` of the page before");
  }
  return Timers::Place{model::from_unix_ms(due), std::string(rest.substr(1))};
}

// A session is named by all three, or by none.
Result<std::optional<model::SessionKey>> session_filter(const Call& call, SessionServices& services,
                                                        const std::string& project_id) {
  std::array<std::string, session_parameters.size()> names;
  bool any = false;
  for (std::size_t i = 0; i < names.size(); ++i) {
    const auto name = call.request.parameter(session_parameters[i]);
    any = any || name;
    names[i] = name.value_or("");
  }
  if (!any) return std::nullopt;
  auto key = session_of(services.assets, *call.principal, names[0], names[1], names[2]);
  if (!key) return model::fail(key.error());
  if (key->project_id != project_id) {
    return model::fail(Errc::not_found, "the project has no such Endpoint");
  }
  return *std::move(key);
}

Result<Response> list_timers(const Call& call, SessionServices& services) {
  auto project = project_of(services.store, call, Role::conversation_admin);
  if (!project) return model::fail(project.error());
  Timers::Filter filter{.project_id = project->id};
  if (const auto kind = call.request.parameter("kind")) {
    filter.kind = store::timer_kind_from(*kind);
    if (!filter.kind) {
      return model::fail(Errc::invalid_argument,
                         "kind must be journey, followUp, sleep, question or schedule");
    }
  }
  auto session = session_filter(call, services, project->id);
  if (!session) return model::fail(session.error());
  filter.session = *std::move(session);
  auto limit = limit_parameter(call.request);
  if (!limit) return model::fail(limit.error());
  auto after = place_of_timer(call.request);
  if (!after) return model::fail(after.error());
  auto page = services.store.timers().list(filter, *after, static_cast<std::size_t>(*limit));
  if (!page) return model::fail(store_error(page.error()));
  json items = json::array();
  for (const auto& row : page->rows) items.push_back(timer_json(row));
  return ok({{"items", std::move(items)},
             {"next", page->next ? json(to_text(*page->next)) : json(nullptr)}});
}

// The timer of the path, in whichever project of the principal's it is.
Result<Timers::Row> find_timer(const Call& call, SessionServices& services) {
  auto row = services.store.timers().get(std::string(call.parameters["timerId"]));
  if (!row) return model::fail(store_error(row.error()));
  auto project =
      open_project(services.store, *call.principal, row->session.project_id,
                   Role::conversation_admin, "there is no such timer; it may have fallen due");
  if (!project) return model::fail(project.error());
  return row;
}

Result<Response> cancel_timer(const Call& call, SessionServices& services) {
  auto timer = find_timer(call, services);
  if (!timer) return model::fail(timer.error());
  return from_store(services.store.timers().cancel(timer->id)).map(no_content);
}

Result<Response> reschedule_timer(const Call& call, SessionServices& services) {
  auto timer = find_timer(call, services);
  if (!timer) return model::fail(timer.error());
  auto wish = read_times(call.request);
  if (!wish) return model::fail(wish.error());
  if (timer->kind == Timers::Kind::schedule) {
    auto schedule = services.store.schedules().get(timer->session.project_id, timer->id);
    if (!schedule) return model::fail(store_error(schedule.error()));
    auto moved = move_schedule(services, *std::move(schedule), *wish, DryRun::no);
    if (!moved) return model::fail(moved.error());
    timer->due_at = moved->due_at;
    return ok(timer_json(*timer));
  }
  if (!wish->cron.empty()) {
    return model::fail(Errc::invalid_argument, "cron: only schedules come again and again");
  }
  model::Schedule once;
  auto timed = flows::set_times(once, *wish, services.schedule_clock.now());
  if (!timed) return model::fail(timed.error());
  auto moved = services.store.timers().reschedule(timer->id, once.due_at);
  if (!moved) return model::fail(store_error(moved.error()));
  if (services.timer) services.timer(moved->place.due);
  return ok(timer_json(*moved));
}

// ---- What the OpenAPI document says

openapi::Schema timer_schema() {
  using namespace openapi;
  const auto kinds = store::timer_kinds();
  return named("Timer",
               with_members(session_names_schema(),
                            {{"_id", described("Of a schedule, the schedule's.", text(1))},
                             {"kind", described("`journey`: a follow-up of the project's journey. "
                                                "`followUp`: one that a Node asked for. `sleep`: "
                                                "an execution goes on then. `question`: until then "
                                                "a question waits. `schedule`: a scheduled inject.",
                                                one_of(std::span(kinds)))},
                             {"dueAt", unix_time()}}));
}

openapi::Description describe_list_timers() {
  using namespace openapi;
  auto parameters = row_parameters();
  std::erase_if(parameters, [](const Parameter& each) { return each.name != "limit"; });
  parameters.push_back(query_parameter("after", "The `next` of the page before.",
                                       text_like("^-?[0-9]{1,15}\\.[a-z0-9-]{0,200}$")));
  parameters.push_back(project_parameter());
  const auto kinds = store::timer_kinds();
  parameters.push_back(query_parameter("kind", "Of this kind only.", one_of(std::span(kinds))));
  parameters.push_back(query_parameter(
      "URLToken", "With `userId` and `sessionId`: of this session only.", url_token()));
  parameters.push_back(query_parameter("userId", "The session's user.", conversation_name()));
  parameters.push_back(query_parameter("sessionId", "The session.", conversation_name()));
  const auto page =
      object({{"items", list_of(timer_schema())},
              {"next", described("For `after`; null on the last page.", nullable(text(1)))}});
  return {
      .summary = "List what waits for its time",
      .details =
          "In the order in which they fall due. A page may hold fewer than `limit` though "
          "there is a `next`: what belongs to other projects is passed over a part at a time.",
      .parameters = std::move(parameters),
      .answers = {{.description = "A page of timers.",
                   .content = json_content(named("TimerPage", page)),
                   .links = {{"cancel", "cancelTimer", "timerId", "$response.body#/items/0/_id"}}}},
      .errors = {404}};
}

openapi::Description describe_cancel_timer() {
  using namespace openapi;
  return {.summary = "Take a timer back",
          .details =
              "A question goes on waiting, for as long as it takes. A `sleep` can't be taken "
              "back (409): its execution would stand still for ever; put it forward, or reset "
              "the session.",
          .answers = {empty_answer("Nothing comes of it.")},
          .errors = {404, 409}};
}

openapi::Description describe_reschedule_timer() {
  using namespace openapi;
  return {.summary = "Have a timer fall due at another time",
          .details =
              "`cron` is for schedules only. A follow-up can't be put off past its expiry. What "
              "has just fallen due comes in any case.",
          .body = json_content(schedule_times_schema()),
          .answers = {json_answer("The timer, as it waits now.", timer_schema())},
          .errors = {404, 409}};
}

}  // namespace

Operations timers_operations() {
  static constexpr Operation rows[] = {
      for_operators("listTimers", Method::get, "/management/timers", Role::conversation_admin,
                    list_timers, describe_list_timers),
      for_operators("cancelTimer", Method::delete_, "/management/timers/{timerId}",
                    Role::conversation_admin, cancel_timer, describe_cancel_timer),
      for_operators("rescheduleTimer", Method::post, "/management/timers/{timerId}/reschedule",
                    Role::conversation_admin, reschedule_timer, describe_reschedule_timer),
  };
  return rows;
}

}  // namespace conversed::api
