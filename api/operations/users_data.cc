// /management/usersdata: exports or erases the data of one user of a project's conversations.
#include <initializer_list>
#include <nlohmann/json.hpp>
#include <string>
#include <utility>
#include <vector>

#include "api/live/busy_sessions.h"
#include "api/live/pending_replies.h"
#include "api/openapi/description.h"
#include "api/operations/management.h"
#include "api/operations/operations.h"
#include "api/replies.h"
#include "api/representation/input.h"
#include "queue/log.h"
#include "store/model/session_keys.h"
#include "store/store.h"

namespace conversed::api {
namespace {

using model::Errc;
using model::Result;
using nlohmann::json;
using namespace openapi;

Result<store::UserData::Place> place_of_data(const Request& request) {
  const auto text = request.parameter("after");
  if (!text) return store::UserData::Place{};
  auto place = store::UserData::Place::from_text(*text);
  if (place) return *std::move(place);
  return model::fail(Errc::invalid_argument, "after must be the `next` of the page before");
}

Result<Response> export_data(const Call& call, SessionServices& services) {
  auto project = project_of(services.store, call, Role::conversation_admin);
  if (!project) return model::fail(project.error());
  auto user = required_parameter(call.request, "userId");
  if (!user) return model::fail(user.error());
  if (auto checked = check_name("userId", *user); !checked) return model::fail(checked.error());
  auto limit = limit_parameter(call.request);
  if (!limit) return model::fail(limit.error());
  auto after = place_of_data(call.request);
  if (!after) return model::fail(after.error());
  auto& data = services.store.of({project->id, "", *user, ""}).user_data();
  auto page = data.read_page({project->id, *user}, *after, static_cast<std::size_t>(*limit));
  return from_store(std::move(page)).map([](store::UserData::Page found) {
    const auto next = found.next ? json(found.next->to_text()) : json(nullptr);
    return ok({{"items", std::move(found.items)}, {"next", next}});
  });
}

// An ended job forgets its filter, so it no longer names the user.
Result<void> cancel_jobs(SessionServices& services, const store::UserOfProject& user) {
  auto& jobs = services.store.jobs();
  for (const auto state : {model::JobState::queued, model::JobState::active}) {
    auto page = jobs.list({.project_ids = {user.project_id}, .state = state},
                          {.now = services.store.timer_now()});
    if (!page) return model::fail(store_error(page.error()));
    for (const auto& job : page->items) {
      static const json::json_pointer name("/filter/userId");
      if (!job.data.is_object() || job.data.value(name, "") != user.user_id) continue;
      const auto cancelled = jobs.cancel(job.id);
      const bool ended = !cancelled && cancelled.error().code == Errc::conflict;
      if (!cancelled && !ended) return model::fail(store_error(cancelled.error()));
    }
  }
  return {};
}

// An accepted event that has not run yet would store new data after the erasure.
Result<void> check_nothing_waits(SessionServices& services, const store::UserOfProject& user) {
  auto waiting = services.log.unfinished(model::keys_of_user(user.project_id, user.user_id));
  if (!waiting && waiting.error().code == Errc::not_supported) return {};
  if (!waiting)
    return model::fail(Errc::unavailable, "the queue can't be searched; try again later");
  if (*waiting == 0) return {};
  return model::fail(
      Errc::conflict,
      "events of this user, or events before them in the log, are not finished; try again later");
}

void add_erased(store::UserData::Erased& all, const store::UserData::Erased& more) {
  using Erased = store::UserData::Erased;
  for (const auto count :
       {&Erased::sessions, &Erased::outputs, &Erased::pending, &Erased::dead_letters,
        &Erased::answers, &Erased::profiles, &Erased::receipts}) {
    all.*count += more.*count;
  }
}

Result<store::UserData::Erased> erase_from_store(SessionServices& services,
                                                 const store::UserOfProject& user) {
  const auto ranges = services.log.ranges();
  if (!ranges) return model::fail(Errc::unavailable, "the queue can't be asked; try again later");
  const auto finished = [&](const model::Position& at) { return queue::is_finished(*ranges, at); };
  const auto ended = [&](const model::SessionKey& key, const std::vector<std::string>& inputs) {
    services.busy.set(key, 0);
    for (const auto& input : inputs) {
      services.pending_replies.finish(
          input, model::fail(Errc::internal, "The conversation was erased before it answered."));
    }
    // The store has no outputs of the session left to deliver.
    if (services.deliver) services.deliver(key);
  };
  const auto forget_keys = [&](const model::KeyRange& sessions) {
    return services.log.forget_keys(sessions);
  };
  store::UserData::EraseHooks hooks{
      .finished = finished, .ended = ended, .forget_keys = forget_keys};
  auto& first = services.store.first();
  auto& own = services.store.of({user.project_id, "", user.user_id, ""});
  store::UserData::Erased of_first;
  if (&own != &first) {
    // The first shard has Idempotency-Keys of the user's sessions. They go before the answers, too.
    auto inner = hooks;
    inner.lives_elsewhere = true;
    hooks.forget_keys = [&, inner = std::move(inner)](const model::KeyRange&) -> Result<void> {
      auto erased = first.user_data().erase(user, inner);
      if (!erased) return model::fail(erased.error());
      of_first = *erased;
      return {};
    };
  }
  auto erased = own.user_data().erase(user, hooks);
  if (erased) add_erased(*erased, of_first);
  if (services.forget) services.forget();
  return from_store(std::move(erased));
}

Result<Response> erase_data(const Call& call, SessionServices& services) {
  auto project = project_of(services.store, call, Role::conversation_admin);
  if (!project) return model::fail(project.error());
  store::UserOfProject whose{project->id, ""};
  auto body = read_object(call.request, {{"userId", &whose.user_id}});
  if (!body) return model::fail(body.error());
  if (auto good = check_name("userId", whose.user_id); !good) return model::fail(good.error());
  const auto alone = services.store.first().user_data().begin_erasure();
  if (!alone) return model::fail(alone.error());
  if (auto ended = cancel_jobs(services, whose); !ended) return model::fail(ended.error());
  if (auto free = check_nothing_waits(services, whose); !free) return model::fail(free.error());
  auto erased = erase_from_store(services, whose);
  if (!erased) return model::fail(erased.error());
  const auto purged = services.log.purge();
  if (!purged && purged.error().code == Errc::conflict) {
    return model::fail(Errc::conflict,
                       "everything is erased from the store, but a backup holds the queue as it "
                       "is; try again when that is made");
  }
  if (!purged && purged.error().code != Errc::not_supported) {
    return model::fail(Errc::unavailable,
                       "everything is erased from the store, but the queue can't be cleared at "
                       "present; try again");
  }
  return ok({{"userId", whose.user_id},
             {"projectId", whose.project_id},
             {"sessions", erased->sessions},
             {"outputs", erased->outputs},
             {"pending", erased->pending},
             {"receipts", erased->receipts},
             {"deadLetters", erased->dead_letters},
             {"answers", erased->answers},
             {"profiles", erased->profiles},
             {"queue", purged ? "cleared" : "kept"}});
}

// An item of UserData::read_page, for each kind of data.
Schema item_schema() {
  const auto kind = [](const char* name, std::initializer_list<Property> members) {
    return with_members(object({{"kind", constant(name)}}), members);
  };
  const auto of_session = [&](const char* name, std::initializer_list<Property> members) {
    return with_members(kind(name, {{"endpointId", id()}, {"sessionId", conversation_name()}}),
                        members);
  };
  return any_of({kind("profile", {{"data", anything()}}),
                 of_session("session", {{"startedAt", unix_time()},
                                        {"lastActivityAt", unix_time()},
                                        {"context", anything()},
                                        {"flowState", anything()},
                                        {"execution", anything()}}),
                 of_session("output", {{"seq", integer(1)},
                                       {"text", text()},
                                       {"data", anything()},
                                       {"source", text()},
                                       {"createdAt", unix_time()}}),
                 of_session("receipt", {{"eventId", text(1)},
                                        {"step", anything()},
                                        {"laterSteps", anything()},
                                        {"writtenAt", unix_time()}}),
                 of_session("waitingEvent", {{"type", text(1)}, {"event", anything()}}),
                 of_session("call", {{"request", anything(), Need::optional}}),
                 of_session("timer", {{"dueAt", unix_time()}}),
                 of_session("followUp", {{"dueAt", unix_time()}, {"followUp", anything()}}),
                 of_session("schedule", {{"dueAt", unix_time()}, {"event", anything()}}),
                 of_session("deadLetter", {{"type", text(1)},
                                           {"event", anything()},
                                           {"reason", text()},
                                           {"state", text(1)},
                                           {"createdAt", unix_time()}}),
                 of_session("answer", {{"answer", anything()}})});
}

Description describe_export_data() {
  const auto page = object(
      {{"items", list_of(named("UserDataItem", item_schema()))}, {"next", nullable(text(1))}});
  return {
      .summary = "Export the stored data of a user",
      .parameters = {page_limit(),
                     query_parameter("userId", "The user.", conversation_name(), Need::required),
                     query_parameter("after", "`next` of the page before.",
                                     text_like("^((0|[89]|10)\\.|[1-7]\\.(0|[1-9][0-9]{0,17}))"
                                               "\\.[A-Za-z0-9_-]{0,64}$")),
                     project_parameter()},
      .answers = {json_answer("A page of the data; empty for an unknown user.",
                              named("UserDataPage", page))},
      .errors = {404}};
}

Description describe_erase() {
  const auto count = integer(0);
  const auto body = object({{"userId", conversation_name()}});
  const auto answer = object(
      {{"userId", text(1)},
       {"projectId", id()},
       {"sessions", count},
       {"outputs", count},
       {"pending", described("Waiting events, calls, timers, follow-ups and schedules.", count)},
       {"receipts", described("Events whose receipts are erased.", count)},
       {"deadLetters", count},
       {"answers", count},
       {"profiles", count},
       {"queue", described("`cleared`, or `kept` by Kafka until its retention ends.",
                           one_of({"cleared", "kept"}))}});
  return {.summary = "Erase the stored data of a user",
          .details =
              "Erases all sessions, outputs, receipts, waiting events, timers, calls, follow-ups, "
              "schedules, "
              "dead letters, answers, Idempotency-Keys and the profile for good. A request that is "
              "repeated under such a key counts as new. 409 while events of the user are on their "
              "way, or while another user is erased. Backups keep their copies.",
          .parameters = {project_parameter()},
          .body = json_content(named("UserToErase", body)),
          .answers = {json_answer("The data is erased.", named("ErasedUserData", answer))},
          .errors = {404, 409}};
}

}  // namespace

Operations users_data_operations() {
  static constexpr Operation rows[] = {
      for_operators("exportUserData", Method::get, "/management/usersdata",
                    Role::conversation_admin, export_data, describe_export_data, Audited::always),
      for_operators("eraseUserData", Method::post, "/management/usersdata/erase",
                    Role::conversation_admin, erase_data, describe_erase),
  };
  return rows;
}

}  // namespace conversed::api
