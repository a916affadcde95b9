// /management/schedules: injects that come at a time, once or again and again; operators make them,
// look at when they come, put them off and take them back.
#include <nlohmann/json.hpp>
#include <string>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/schedules.h"
#include "api/replies.h"
#include "flows/time/cron.h"
#include "flows/time/schedule_times.h"
#include "store/model/ids.h"
#include "store/store.h"

namespace conversed::api {

namespace {

using model::Errc;
using model::Result;
using model::Schedule;
using nlohmann::json;

constexpr std::size_t previewed = 10;

json schedule_json(const Schedule& schedule) {
  json body = session_names(schedule.session);
  body["_id"] = schedule.id;
  body["text"] = schedule.text ? json(*schedule.text) : json(nullptr);
  body["data"] = schedule.data;
  body["cron"] = schedule.cron.empty() ? json(nullptr) : json(schedule.cron);
  body["timezone"] = schedule.timezone;
  body["dueAt"] = unix_seconds(schedule.due_at);
  body["fired"] = schedule.fired;
  body["createdAt"] = unix_seconds(schedule.created_at);
  body["createdBy"] = schedule.created_by;
  return body;
}

json with_preview(const Schedule& schedule) {
  json body = schedule_json(schedule);
  json next = json::array();
  for (const auto time : flows::next_times(schedule, previewed)) next.push_back(unix_seconds(time));
  body["next"] = std::move(next);
  return body;
}

// What was asked for, unless something speaks against it.
struct WantedSchedule {
  Schedule schedule;
  std::optional<queue::AppendKey> key;
  bool dry_run = false;
};
Result<WantedSchedule> read_wanted_schedule(const Call& call, SessionServices& services) {
  WantedSchedule wanted;
  auto dry_run = read_dry_run(call.request);
  if (!dry_run) return model::fail(dry_run.error());
  wanted.dry_run = *dry_run;
  auto body = parse_message(call.request.body, UrlTokenIn::body);
  if (!body) return model::fail(body.error());
  auto wish = read_times(call.request);
  if (!wish) return model::fail(wish.error());
  auto endpoint = find_endpoint_for(services.assets, *call.principal, body->url_token);
  if (!endpoint) return model::fail(endpoint.error());
  auto key = append_key(call.request, (*endpoint)->organisation_id, "createSchedule");
  if (!key) return model::fail(key.error());
  wanted.key = *std::move(key);
  Schedule& schedule = wanted.schedule;
  schedule.id = model::new_id();
  schedule.session = {(*endpoint)->project_id, (*endpoint)->id, std::move(body->user_id),
                      std::move(body->session_id)};
  schedule.text = std::move(body->text);
  schedule.data = std::move(body->data);
  schedule.created_at = services.clock.now();
  schedule.created_by = call.principal->user_id;
  auto timed = flows::set_times(schedule, *wish, services.schedule_clock.now());
  if (!timed) return model::fail(timed.error());
  return wanted;
}

Result<Response> create_schedule(const Call& call, SessionServices& services) {
  auto wanted = read_wanted_schedule(call, services);
  if (!wanted) return model::fail(wanted.error());
  const Schedule& schedule = wanted->schedule;
  const json body = with_preview(schedule);
  if (wanted->dry_run) return ok(body);
  std::optional<store::KeyedAnswer> keyed;
  if (wanted->key) {
    keyed = store::KeyedAnswer{answer_key(*wanted->key),
                               {status::created, std::string(), body.dump()},
                               schedule.session.encode()};
  }
  auto earlier = services.store.schedules().create(schedule, keyed);
  if (!earlier) return model::fail(store_error(earlier.error()));
  if (*earlier) return json_text_response((*earlier)->status, std::move((*earlier)->body));
  if (services.schedule) services.schedule(schedule);
  return json_response(status::created, body);
}

Result<Response> list_schedules(const Call& call, SessionServices& services) {
  auto project = project_of(services.store, call, Role::conversation_admin);
  if (!project) return model::fail(project.error());
  auto page = page_query(call.request);
  if (!page) return model::fail(page.error());
  auto rows = services.store.schedules().list(project->id, page->after, page->limit);
  return rows_response(rows, *page, &store::Schedules::Row::n,
                       [](const auto& row) { return schedule_json(row.schedule); });
}

Result<Schedule> find_schedule(const Call& call, SessionServices& services) {
  const auto find = [&, id = std::string(call.parameters["scheduleId"])](const auto& project_id) {
    return services.store.schedules().get(project_id, id);
  };
  return find_in_projects(services.store, *call.principal, find, "there is no such schedule");
}

Result<Response> show_schedule(const Call& call, SessionServices& services) {
  auto schedule = find_schedule(call, services);
  if (!schedule) return model::fail(schedule.error());
  return ok(with_preview(*schedule));
}

Result<Response> cancel_schedule(const Call& call, SessionServices& services) {
  auto schedule = find_schedule(call, services);
  if (!schedule) return model::fail(schedule.error());
  return from_store(services.store.schedules().cancel(schedule->session.project_id, schedule->id))
      .map(no_content);
}

Result<Response> reschedule(const Call& call, SessionServices& services) {
  auto dry_run = read_dry_run(call.request);
  if (!dry_run) return model::fail(dry_run.error());
  auto schedule = find_schedule(call, services);
  if (!schedule) return model::fail(schedule.error());
  auto wish = read_times(call.request);
  if (!wish) return model::fail(wish.error());
  auto moved =
      move_schedule(services, *std::move(schedule), *wish, *dry_run ? DryRun::yes : DryRun::no);
  if (!moved) return model::fail(moved.error());
  return ok(with_preview(*moved));
}

// ---- What the OpenAPI document says

openapi::Schema schedule_schema() {
  using namespace openapi;
  return with_members(session_names_schema(),
                      {{"_id", id()},
                       {"text", nullable(text())},
                       {"data", anything()},
                       {"cron", nullable(text(1))},
                       {"timezone", text(1)},
                       {"dueAt", described("When it comes next.", unix_time())},
                       {"fired", described("How often it has come.", integer(0))},
                       {"createdAt", unix_time()},
                       {"createdBy", text(1)}});
}

openapi::Schema previewed_schema() {
  using namespace openapi;
  return named("ScheduleWithPreview",
               with_members(schedule_schema(), {{"next", list_of(unix_time(), previewed)}}));
}

// A time as `at` takes it. The next two: a duration and a time table.
constexpr std::string_view at_expression =
    "^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
    "02-(0[1-9]|[12][0-9]))[Tt ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?"
    "([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?)?$";
constexpr std::string_view in_expression = "^(0*[0-9]{1,12}(ms|s|m|h|d))?$";
constexpr std::string_view cron_expression =
    "^(@(hourly|daily|midnight|weekly|monthly|yearly)|"
    "[ \\t]*[0-9A-Za-z*,/-]+([ \\t]+[0-9A-Za-z*,/-]+){4}[ \\t]*)?$";
constexpr std::string_view timezone_expression = "^[A-Za-z0-9_+:/-]*$";

openapi::Schema with_times(openapi::Schema schema) {
  using namespace openapi;
  Schema cron = text_like(cron_expression);
  cron["maxLength"] = flows::Cron::max_length;
  return with_members(
      std::move(schema),
      {{"at",
        described("2027-03-28T14:30, maybe with seconds, and Z or an offset behind it; not more "
                  "than a day ago, and within ten years.",
                  nullable(text_like(at_expression))),
        Need::optional},
       {"in",
        described("A duration from now on, such as 20m, in ms, s, m, h or d; at most 3660d.",
                  nullable(text_like(in_expression))),
        Need::optional},
       {"cron",
        described("Again and again: minute, hour, day of the month, month, day of the week, as "
                  "crontab(5) has them.",
                  nullable(std::move(cron))),
        Need::optional},
       {"timezone",
        described("The name of a time zone, such as Europe/Berlin, that `at` and `cron` go by.",
                  with_default("UTC", nullable(text_like(timezone_expression)))),
        Need::optional}});
}

// Exactly one of `at`, `in` and `cron` is given; an empty text is none.
openapi::Schema with_one_time(openapi::Schema schema) {
  using namespace openapi;
  const Schema none = nullable(text(0, 0));
  const Schema no_cron = object({{"cron", none, Need::optional}});
  const Schema no_in = with_members(no_cron, {{"in", none, Need::optional}});
  return with_condition(std::move(schema), has_text("at"), no_in,
                        with_condition(anything(), has_text("in"), no_cron, has_text("cron")));
}

openapi::Schema creation_schema() {
  using namespace openapi;
  auto schema = message_schema(UrlTokenIn::body);
  schema.erase(component_mark);
  Value example = schema["examples"][0];
  example["cron"] = "0 9 * * mon-fri";
  example["timezone"] = "Europe/Berlin";
  // An object has one condition. That of times goes into both branches of a message's.
  for (const char* branch : {"then", "else"}) {
    schema[branch] = with_one_time(schema.contains(branch) ? schema[branch] : anything());
  }
  return named("NewSchedule", with_example(std::move(example), with_times(std::move(schema))));
}

openapi::Parameter dry_run_parameter() {
  using namespace openapi;
  return query_parameter("dryRun", "It is only shown when it would come.",
                         with_default(false, boolean()));
}

openapi::Link link(std::string_view name, std::string_view operation, std::string_view from) {
  return {name, operation, "scheduleId", from};
}

openapi::Description describe_create_schedule() {
  using namespace openapi;
  constexpr std::string_view of_it = "$response.body#/_id";
  return {.summary = "Have a message injected at a time, or again and again",
          .details =
              "It counts, and an Endpoint that is `activeOnly` decides, when it comes. Times that "
              "were missed come once, late. By the clock of the time zone: what falls into the "
              "hour that is left out in spring comes an hour later, what falls into the one "
              "that is repeated in autumn comes once; with `*` for the hour it follows the time "
              "that passes.",
          .parameters = {dry_run_parameter(), idempotency_parameter()},
          .body = json_content(creation_schema()),
          .answers = {json_answer("When it would come; of a dry run.", previewed_schema()),
                      {.status = status::created,
                       .description = "The schedule, with its next times.",
                       .content = json_content(previewed_schema()),
                       .links = {link("show", "showSchedule", of_it),
                                 link("cancel", "cancelSchedule", of_it),
                                 link("reschedule", "reschedule", of_it)}}},
          .errors = {404, 409}};
}

openapi::Description describe_list_schedules() {
  using namespace openapi;
  constexpr std::string_view first = "$response.body#/items/0/_id";
  auto parameters = row_parameters();
  parameters.push_back(project_parameter());
  return {.summary = "List scheduled messages",
          .parameters = std::move(parameters),
          .answers = {{.description = "A page of those that are still to come, the oldest first.",
                       .content = json_content(row_page(named("Schedule", schedule_schema()))),
                       .links = {link("show", "showSchedule", first),
                                 link("cancel", "cancelSchedule", first)}}},
          .errors = {404}};
}

openapi::Description describe_show_schedule() {
  using namespace openapi;
  return {.summary = "Show a scheduled message",
          .answers = {json_answer("The schedule, with its next times.", previewed_schema())},
          .errors = {404}};
}

openapi::Description describe_cancel_schedule() {
  return {.summary = "Cancel a scheduled message",
          .answers = {openapi::empty_answer("It comes no more.")},
          .errors = {404}};
}

openapi::Description describe_move_schedule() {
  using namespace openapi;
  return {.summary = "Have a scheduled message come at another time",
          .parameters = {dry_run_parameter()},
          .body = json_content(schedule_times_schema()),
          .answers = {json_answer("The schedule, with its next times.", previewed_schema())},
          .errors = {404}};
}

}  // namespace

Result<flows::ScheduleWish> read_times(const Request& request) {
  flows::ScheduleWish wish;
  std::string zone;
  auto body = read_object(
      request, {{"at", &wish.at}, {"in", &wish.in}, {"cron", &wish.cron}, {"timezone", &zone}});
  if (!body) return model::fail(body.error());
  if (!zone.empty()) wish.timezone = std::move(zone);
  return wish;
}

Result<Schedule> move_schedule(SessionServices& services, Schedule schedule,
                               const flows::ScheduleWish& wish, DryRun dry_run) {
  auto timed = flows::set_times(schedule, wish, services.schedule_clock.now());
  if (!timed) return model::fail(timed.error());
  if (dry_run == DryRun::yes) return schedule;
  auto moved = services.store.schedules().reschedule(
      schedule.session.project_id, schedule.id,
      {.cron = schedule.cron, .timezone = schedule.timezone, .due_at = schedule.due_at});
  if (!moved) return model::fail(store_error(moved.error()));
  if (services.schedule) services.schedule(*moved);
  return moved;
}

openapi::Schema schedule_times_schema() {
  using namespace openapi;
  const Value example{{"in", "20m"}};
  return named("ScheduleTimes", with_example(example, with_one_time(with_times(object({})))));
}

Operations schedules_operations() {
  static constexpr Operation rows[] = {
      for_operators("createSchedule", Method::post, "/management/schedules",
                    Role::conversation_admin, create_schedule, describe_create_schedule),
      for_operators("listSchedules", Method::get, "/management/schedules", Role::conversation_admin,
                    list_schedules, describe_list_schedules),
      for_operators("showSchedule", Method::get, "/management/schedules/{scheduleId}",
                    Role::conversation_admin, show_schedule, describe_show_schedule),
      for_operators("cancelSchedule", Method::delete_, "/management/schedules/{scheduleId}",
                    Role::conversation_admin, cancel_schedule, describe_cancel_schedule),
      for_operators("reschedule", Method::post, "/management/schedules/{scheduleId}/reschedule",
                    Role::conversation_admin, reschedule, describe_move_schedule),
  };
  return rows;
}

}  // namespace conversed::api
