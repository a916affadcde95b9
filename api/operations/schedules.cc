// /management/schedules: injects at a set time, once or by a cron rule. Operators create, list,
// show, cancel and reschedule them.
//
// /management/timers: timers of all kinds: follow-ups, sleeping executions, questions with a
// time-out, schedules. Operators list, cancel and reschedule them.
#include <charconv>
#include <nlohmann/json.hpp>
#include <string>
#include <tuple>
#include <utility>

#include "api/openapi/description.h"
#include "api/operations/accept.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/operations/why.h"
#include "api/reasons/reasons.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "flows/time/cron.h"
#include "flows/time/schedule_times.h"
#include "store/model/ids.h"
#include "store/shards/across_shards.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using model::Schedule;
using nlohmann::json;
using store::Timers;
using namespace openapi;

constexpr std::size_t previewed = 10;
constexpr char place_separator = '.';

const Shape<Schedule>& schedule_shape() {
  static const auto shape =
      session_shape<Schedule>(&Schedule::session)
          .with("Schedule",
                {{"_id", id(), &Schedule::id},
                 {"text", nullable(text()), null_if_absent(&Schedule::text)},
                 {"data", anything(), &Schedule::data},
                 {"cron", nullable(text(1)), null_if_empty(&Schedule::cron)},
                 {"timezone", text(1), &Schedule::timezone},
                 {"dueAt", described("The next time.", unix_time()), &Schedule::due_at},
                 {"fired", described("How often it has fired.", integer(0)), &Schedule::fired},
                 {"createdAt", unix_time(), &Schedule::created_at},
                 {"createdBy", text(1), &Schedule::created_by}});
  return shape;
}

const Shape<Schedule>& preview_shape() {
  const auto next = [](const Schedule& schedule) {
    Value times = Value::array();
    for (const auto time : flows::next_times(schedule, previewed)) {
      times.push_back(unix_seconds(time));
    }
    return times;
  };
  static const auto shape = schedule_shape().with(
      "ScheduleWithPreview", {{"next", list_of(unix_time(), previewed), next}});
  return shape;
}

const Shape<Timers::Row>& timer_shape() {
  using Row = Timers::Row;
  const auto kinds = store::timer_kinds();
  static const auto shape =
      session_shape<Row>(&Row::session)
          .with("",
                {{"_id", described("For a schedule, the schedule's id.", text(1)), &Row::id},
                 {"kind",
                  described(
                      "`journey`: a follow-up of the project's journey. `followUp`: a follow-up "
                      "that a Node asked for. `sleep`: an execution continues then. `question`: a "
                      "question, a `waitForEvent` or a `collect` stops waiting then. `schedule`: "
                      "a scheduled inject.",
                      one_of(std::span(kinds))),
                  [](const Row& row) { return store::to_string(row.kind); }},
                 {"dueAt", unix_time(), &Row::due_at}});
  return shape;
}

json timer_json(const Timers::Row& timer, SessionServices& services) {
  json item = timer_shape()(timer);
  item["waits"] = waits_json(services.reasons.of_timer(timer));
  return item;
}

Schema timer_schema() {
  return named("Timer",
               with_members(timer_shape().schema(), {{"waits", nullable(waits_schema())}}));
}

// Reads `at`, `in`, `cron` and `timezone` of the body.
Result<flows::ScheduleWish> read_times(const Request& request) {
  flows::ScheduleWish wish;
  auto body = read_object(
      request,
      {{"at", &wish.at}, {"in", &wish.in}, {"cron", &wish.cron}, {"timezone", &wish.timezone}});
  if (!body) return model::fail(body.error());
  if (wish.timezone.empty()) wish.timezone = "UTC";
  return wish;
}

enum class DryRun : bool { no, yes };

// Moves the schedule to the wished time. Stores it and tells the scheduler, unless it is a dry run.
Result<Schedule> move_schedule(SessionServices& services, Schedule schedule,
                               const flows::ScheduleWish& wish, DryRun dry_run) {
  auto timed = flows::set_times(schedule, wish, services.schedule_clock.now());
  if (!timed) return model::fail(timed.error());
  if (dry_run == DryRun::yes) return schedule;
  auto& schedules = services.store.of(schedule.session).schedules();
  auto moved = from_store(schedules.reschedule(
      schedule.session.project_id, schedule.id,
      {.cron = schedule.cron, .timezone = schedule.timezone, .due_at = schedule.due_at}));
  if (moved && services.schedule) services.schedule(*moved);
  return moved;
}

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
  const json body = preview_shape()(schedule);
  if (wanted->dry_run) return ok(body);
  std::optional<store::KeyedAnswer> keyed;
  if (wanted->key) {
    keyed = store::KeyedAnswer{answer_key(*wanted->key),
                               {status::created, std::string(), body.dump()},
                               schedule.session.encode()};
  }
  auto earlier = services.store.of(schedule.session).schedules().create(schedule, keyed);
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
  const auto list = [&](store::Shard& shard) {
    return shard.schedules().list(project->id, page->after, page->limit);
  };
  const auto rows = merge_shards(services.store.shards(), page->limit, list,
                                 [](const auto& a, const auto& b) { return a.n < b.n; });
  return rows_response(rows, *page, &store::Schedules::Row::n,
                       [](const auto& row) { return schedule_shape()(row.schedule); });
}

Result<Schedule> find_schedule(const Call& call, SessionServices& services) {
  const auto find = [&, id = std::string(call.parameters["scheduleId"])](const auto& project_id) {
    return find_in_shards(services.store.shards(), [&](store::Shard& shard) {
      return shard.schedules().get(project_id, id);
    });
  };
  return find_in_projects(services.store, call, find, "there is no such schedule");
}

Response shown(const Schedule& schedule) {
  return ok(preview_shape()(schedule));
}

Result<Response> show_schedule(const Call& call, SessionServices& services) {
  return find_schedule(call, services).map(shown);
}

Result<Response> cancel_schedule(const Call& call, SessionServices& services) {
  auto schedule = find_schedule(call, services);
  if (!schedule) return model::fail(schedule.error());
  auto& schedules = services.store.of(schedule->session).schedules();
  return from_store(schedules.cancel(schedule->session.project_id, schedule->id)).map(no_content);
}

Result<Response> reschedule(const Call& call, SessionServices& services) {
  auto dry_run = read_dry_run(call.request);
  if (!dry_run) return model::fail(dry_run.error());
  auto schedule = find_schedule(call, services);
  if (!schedule) return model::fail(schedule.error());
  auto wish = read_times(call.request);
  if (!wish) return model::fail(wish.error());
  const auto mode = *dry_run ? DryRun::yes : DryRun::no;
  return move_schedule(services, *std::move(schedule), *wish, mode).map(shown);
}

std::string place_text(const Timers::Place& place) {
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

// All three parameters name a session, or none is given.
Result<std::optional<model::SessionKey>> session_filter(const Call& call, SessionServices& services,
                                                        const std::string& project_id) {
  const auto token = call.request.parameter("URLToken");
  const auto user = call.request.parameter("userId");
  const auto session = call.request.parameter("sessionId");
  if (!token && !user && !session) return std::nullopt;
  auto key = session_of(services.assets, *call.principal, token.value_or(""), user.value_or(""),
                        session.value_or(""));
  if (!key) return model::fail(key.error());
  if (key->project_id != project_id) {
    return model::fail(Errc::not_found, "the project has no such Endpoint");
  }
  return *std::move(key);
}

Result<Timers::Page> page_of_timers(store::Store& store, const Timers::Filter& filter,
                                    const Timers::Place& after, std::size_t limit) {
  const auto list = [&](store::Shard& shard) { return shard.timers().list(filter, after, limit); };
  if (filter.session) return list(store.of(*filter.session));
  const auto before = [](const Timers::Place& a, const Timers::Place& b) {
    return std::tie(a.due, a.claim) < std::tie(b.due, b.claim);
  };
  return merge_pages(store.shards(), limit, list, &Timers::Row::place, before);
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
  auto reason = reason_filter(call.request, model::Listed::timers);
  if (!reason) return model::fail(reason.error());
  const auto page =
      page_of_timers(services.store, filter, *after, static_cast<std::size_t>(*limit));
  if (!page) return model::fail(store_error(page.error()));
  const auto waits = services.reasons.of_page(page->rows);
  if (!waits) return model::fail(store_error(waits.error()));
  json items = json::array();
  for (std::size_t i = 0; i < page->rows.size(); ++i) {
    if (!has_reason((*waits)[i], *reason)) continue;
    json item = timer_shape()(page->rows[i]);
    item["waits"] = json(waits_json((*waits)[i]));
    items.push_back(std::move(item));
  }
  return ok({{"items", std::move(items)},
             {"next", page->next ? json(place_text(*page->next)) : json(nullptr)}});
}

// The timer of the path, in any of the principal's projects.
Result<Timers::Row> find_timer(const Call& call, SessionServices& services) {
  const std::string id(call.parameters["timerId"]);
  auto row = find_in_shards(services.store.shards(),
                            [&](store::Shard& shard) { return shard.timers().get(id); });
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
  auto& timers = services.store.of(timer->session).timers();
  return from_store(timers.cancel(timer->id)).map(no_content);
}

Result<Response> reschedule_timer(const Call& call, SessionServices& services) {
  auto timer = find_timer(call, services);
  if (!timer) return model::fail(timer.error());
  auto wish = read_times(call.request);
  if (!wish) return model::fail(wish.error());
  store::Shard& shard = services.store.of(timer->session);
  if (timer->kind == Timers::Kind::schedule) {
    auto schedule = shard.schedules().get(timer->session.project_id, timer->id);
    if (!schedule) return model::fail(store_error(schedule.error()));
    auto moved = move_schedule(services, *std::move(schedule), *wish, DryRun::no);
    if (!moved) return model::fail(moved.error());
    timer->due_at = moved->due_at;
    return ok(timer_json(*timer, services));
  }
  if (!wish->cron.empty()) {
    return model::fail(Errc::conflict, "cron: only a schedule can repeat; leave it out");
  }
  model::Schedule once;
  auto timed = flows::set_times(once, *wish, services.schedule_clock.now());
  if (!timed) return model::fail(timed.error());
  auto moved = shard.timers().reschedule(timer->id, once.due_at);
  if (!moved) return model::fail(store_error(moved.error()));
  if (services.timer) services.timer(moved->place.due);
  return ok(timer_json(*moved, services));
}

// The syntax of `at`, and of a time table.
constexpr std::string_view at_expression =
    "^([0-9]{4}-((0[13578]|1[02])-(0[1-9]|[12][0-9]|3[01])|(0[469]|11)-(0[1-9]|[12][0-9]|30)|"
    "02-(0[1-9]|[12][0-9]))[Tt ]([01][0-9]|2[0-3]):[0-5][0-9](:[0-5][0-9])?"
    "([Zz]|[+-]([01][0-9]|2[0-3]):[0-5][0-9])?)?$";
constexpr std::string_view cron_expression =
    "^(@(hourly|daily|midnight|weekly|monthly|yearly)|"
    "[ \\t]*[0-9A-Za-z*,/-]+([ \\t]+[0-9A-Za-z*,/-]+){4}[ \\t]*)?$";
constexpr std::string_view timezone_expression = "^[A-Za-z0-9_+:/-]*$";

Schema with_times(Schema schema) {
  Schema cron = text_like(cron_expression);
  cron["maxLength"] = flows::Cron::max_length;
  return with_members(
      std::move(schema),
      {{"at",
        described("2027-03-28T14:30, optionally with seconds, and Z or an offset; not more "
                  "than a day ago, and within ten years.",
                  nullable(text_like(at_expression))),
        Need::optional},
       {"in",
        described("A duration from now on, such as 20m, in ms, s, m, h or d; at most 3660d.",
                  nullable(duration_or_empty_schema())),
        Need::optional},
       {"cron",
        described("Repeats: minute, hour, day of the month, month, day of the week, as "
                  "crontab(5) has them.",
                  nullable(std::move(cron))),
        Need::optional},
       {"timezone",
        described("The name of a time zone, such as Europe/Berlin, for `at` and `cron`.",
                  with_default("UTC", nullable(text_like(timezone_expression)))),
        Need::optional}});
}

// Requires exactly one of `at`, `in` and `cron`. An empty text counts as absent.
Schema with_one_time(Schema schema) {
  const Schema none = nullable(text(0, 0));
  const Schema no_cron = object({{"cron", none, Need::optional}});
  const Schema no_in = with_members(no_cron, {{"in", none, Need::optional}});
  return with_condition(std::move(schema), has_text("at"), no_in,
                        with_condition(anything(), has_text("in"), no_cron, has_text("cron")));
}

Schema schedule_times_schema() {
  const Value example{{"in", "20m"}};
  return named("ScheduleTimes", with_example(example, with_one_time(with_times(object({})))));
}

Schema creation_schema() {
  auto schema = message_schema(UrlTokenIn::body);
  schema.erase(component_mark);
  Value example = schema["examples"][0];
  example["cron"] = "0 9 * * mon-fri";
  example["timezone"] = "Europe/Berlin";
  // An object has one condition, so the times' condition goes into both branches.
  for (const char* branch : {"then", "else"}) {
    schema[branch] = with_one_time(schema.contains(branch) ? schema[branch] : anything());
  }
  return named("ScheduleCreation", with_example(std::move(example), with_times(std::move(schema))));
}

Parameter dry_run_parameter() {
  return query_parameter("dryRun", "Only shows the next times; stores nothing.",
                         with_default(false, boolean()));
}

Link link(std::string_view name, std::string_view operation, std::string_view from) {
  return {name, operation, "scheduleId", from};
}

Description describe_create_schedule() {
  constexpr std::string_view of_it = "$response.body#/_id";
  return {.summary = "Schedule an inject, once or by a cron rule",
          .details =
              "Quotas and `activeOnly` of the Endpoint apply when it fires. Missed times fire "
              "once, late. Times follow the time zone's clock: a time in the hour that is skipped "
              "in spring fires an hour later, and a time in the hour that is repeated in autumn "
              "fires once. With `*` as the hour, it fires by elapsed time.",
          .parameters = {dry_run_parameter(), idempotency_parameter()},
          .body = json_content(creation_schema()),
          .answers = {json_answer("The next times, for a dry run.", preview_shape().schema()),
                      {.status = status::created,
                       .description = "The schedule, with its next times.",
                       .content = json_content(preview_shape().schema()),
                       .links = {link("show", "showSchedule", of_it),
                                 link("cancel", "cancelSchedule", of_it),
                                 link("reschedule", "reschedule", of_it)}}},
          .errors = {404, 409}};
}

Description describe_list_schedules() {
  constexpr std::string_view first = "$response.body#/items/0/_id";
  return {
      .summary = "List scheduled messages",
      .parameters = row_parameters({project_parameter()}),
      .answers = {{.description = "A page of the schedules that will fire again, the oldest first.",
                   .content = json_content(row_page(schedule_shape().schema())),
                   .links = {link("show", "showSchedule", first),
                             link("cancel", "cancelSchedule", first)}}},
      .errors = {404}};
}

Description describe_show_schedule() {
  return {.summary = "Show a scheduled message",
          .answers = {json_answer("The schedule, with its next times.", preview_shape().schema())}};
}

Description describe_cancel_schedule() {
  return {.summary = "Cancel a scheduled message",
          .answers = {empty_answer("The schedule is canceled.")}};
}

Description describe_move_schedule() {
  return {.summary = "Change the time of a scheduled message",
          .parameters = {dry_run_parameter()},
          .body = json_content(schedule_times_schema()),
          .answers = {json_answer("The schedule, with its next times.", preview_shape().schema())}};
}

Description describe_list_timers() {
  const auto kinds = store::timer_kinds();
  const auto page = object(
      {{"items", list_of(timer_schema())},
       {"next", described("Give it as `after`; null on the last page.", nullable(text(1)))}});
  return {
      .summary = "List timers, earliest first",
      .details =
          "A page may hold fewer timers than `limit` although there is a `next`, because timers of "
          "other projects, and timers with another reason, are left out.",
      .parameters = {page_limit(),
                     query_parameter("after", "The `next` of the page before.",
                                     text_like("^-?[0-9]{1,15}\\.[a-z0-9-]{0,200}$")),
                     project_parameter(),
                     query_parameter("kind", "Only this kind.", one_of(std::span(kinds))),
                     reason_parameter(model::Listed::timers),
                     query_parameter("URLToken",
                                     "With `userId` and `sessionId`: only this session.",
                                     url_token()),
                     query_parameter("userId", "The session's user.", conversation_name()),
                     query_parameter("sessionId", "The session.", conversation_name())},
      .answers = {{.description = "A page of timers.",
                   .content = json_content(named("TimerPage", page)),
                   .links = {{"cancel", "cancelTimer", "timerId", "$response.body#/items/0/_id"}}}},
      .errors = {404}};
}

Description describe_cancel_timer() {
  return {.summary = "Cancel a timer",
          .details =
              "A question then waits without a time limit. A `waitForEvent` then waits until its "
              "session expires, at the earliest `sessionExpiry` after the timer's time; its "
              "`onMessage` "
              "sets the timer again. So does a `collect`, whose next event sets it again, too. A "
              "`sleep` can't be canceled (409), since its execution would "
              "never "
              "continue: bring it forward, or reset the session.",
          .answers = {empty_answer("The timer is canceled.")},
          .errors = {404, 409}};
}

Description describe_reschedule_timer() {
  return {.summary = "Change the time of a timer",
          .details =
              "`cron` is for schedules only (409). A follow-up can't be put off past its expiry "
              "(409). A timer "
              "that has just fallen due fires in any case.",
          .body = json_content(schedule_times_schema()),
          .answers = {json_answer("The timer with its new time.", timer_schema())},
          .errors = {404, 409}};
}

}  // namespace

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
