#include "daemon/jobs/proactive_setup.h"

#include <memory>
#include <mutex>
#include <random>
#include <utility>

#include "daemon/calls/call_request.h"
#include "daemon/ops/logging.h"
#include "flows/journey.h"
#include "store/model/ids.h"
#include "store/model/json.h"
#include "store/runtime/fault_points.h"

namespace conversed::daemon {

using model::Errc;
using model::fail;
using model::Job;
using model::JobState;
using model::Result;
using nlohmann::json;
using std::chrono::milliseconds;

namespace {

// After this many leases a step of the job probably ends the daemon each time.
constexpr std::int64_t max_leases = 100;
constexpr milliseconds look_interval{60'000};  // while an answer is awaited

// The parts that the set-up has made so far.
json data_of(const Job& job) {
  return job.data.is_object() ? job.data : json::object();
}
std::string text_of(const json& data, const char* name) {
  const auto found = data.find(name);
  return found != data.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// A retry may help, or another worker goes on.
bool is_passing(const model::Error& error) {
  return error.code == Errc::unavailable || error.code == Errc::timed_out ||
         error.code == Errc::conflict;
}

// The service's own id for the tenant, if its answer has one.
std::string external_id_of(const std::string& body) {
  constexpr std::size_t longest = 200;
  const auto answer = model::parse_json(body);
  if (!answer || !answer->is_object()) return {};
  for (const char* name : {"tenantId", "id"}) {
    if (auto id = text_of(*answer, name); !id.empty() && id.size() <= longest) return id;
  }
  return {};
}

}  // namespace

Result<void> ProactiveSetup::advance(const Job& job, JobHold& hold) {
  if (job.state == JobState::cancelling || data_of(job).contains("undoing")) {
    return undo_last(job, hold);
  }
  if (job.fencing_token > max_leases) {
    return begin_undo(job, "The set-up was begun " + std::to_string(max_leases) +
                               " times and never came to an end; the daemon's log says more.");
  }
  auto done = do_next(job, hold);
  if (done || is_passing(done.error())) return done;
  log::error("set-up failed", {{"jobId", job.id}, {"error", done.error().message}});
  return begin_undo(job, "The set-up failed inside the daemon (" + done.error().message +
                             "); try again, and if it stays so, see the daemon's log.");
}

Result<void> ProactiveSetup::do_next(const Job& job, JobHold& hold) {
  model::fault_point("job.before_step");
  if (job.current_step == 0) {
    return store_.jobs().step(job.id, job.fencing_token, {.progress = 0, .current_step = 1});
  }
  const json data = data_of(job);
  if (!data.contains("tenantId")) return provision(job, hold);
  if (!settings_.provisioning_url.empty() && !data.contains("provisioned")) {
    return announce(job, hold);
  }
  if (!data.contains("journeyId")) return create_journey(job);
  if (!data.contains("flowId")) return generate_flow(job);
  return switch_on(job);
}

Result<void> ProactiveSetup::commit(const Job& job, Reach reached, const Make& make) {
  static constexpr std::array<std::pair<int, int>, 4> places{{{10, 1}, {25, 2}, {50, 3}, {75, 4}}};
  const std::pair<int, int> place = places.at(static_cast<std::size_t>(reached));
  std::optional<std::string> refused;
  auto written = write("job.after_step", [&](store::Writer& writer) -> Result<void> {
    refused.reset();
    json data = data_of(job);
    if (auto made = make(writer, data); !made) {
      refused = made.error().message;
      return made;
    }
    store_.assets().grow(writer, store::Assets::Lexicons::stay);
    return store_.jobs().step(
        writer, job.id, job.fencing_token,
        {.progress = place.first, .current_step = place.second, .data = data});
  });
  return refused ? begin_undo(job, *refused) : written;
}

Result<void> ProactiveSetup::write(const char* fault_point, const Write& work) {
  auto written = store_.committer().write_and_wait(work);
  if (written) model::fault_point(fault_point);
  return written;
}

Result<void> ProactiveSetup::provision(const Job& job, JobHold&) {
  const store::Tenant tenant{.id = model::new_id(),
                             .project_id = job.project_id,
                             .follow_ups_per_month = settings_.follow_ups_per_month,
                             .external_id = {}};
  const bool is_known_here_alone = settings_.provisioning_url.empty();
  return commit(job, is_known_here_alone ? Reach::tenant : Reach::tenant_row,
                [&](store::Writer& writer, json& data) {
                  data["tenantId"] = tenant.id;
                  return store_.proactive().add_tenant(writer, tenant);
                });
}

Result<void> ProactiveSetup::announce(const Job& job, JobHold& hold) {
  const auto tenant_id = text_of(data_of(job), "tenantId");
  auto project = store_.assets().project(job.project_id);
  if (!project) return fail(project.error());
  auto secret = store_.proactive().tenant_secret(tenant_id);
  if (!secret) return fail(secret.error());
  HttpRequest wanted = request("POST", settings_.provisioning_url, tenant_id + "-provision");
  wanted.headers.emplace_back("Content-Type", "application/json");
  wanted.body = json{{"tenantId", tenant_id},
                     {"projectId", project->id},
                     {"projectName", project->name},
                     {"organisationId", project->organisation_id},
                     {"secret", *secret},
                     {"followUpsPerMonth", settings_.follow_ups_per_month}}
                    .dump();
  auto outcome = send(job, hold, wanted, Cancellable::yes);
  if (!outcome) return fail(outcome.error());
  if (!*outcome) return {};
  if (!(*outcome)->success()) {
    return begin_undo(job,
                      "The provisioning service " + describe(**outcome) +
                          ". Check proactive.provisioning and the service, then set up again.");
  }
  model::fault_point("job.after_provisioning");
  return commit(job, Reach::tenant, [&](store::Writer& writer, json& data) -> Result<void> {
    data["provisioned"] = true;
    store::Proactive::set_external_id(writer, tenant_id, external_id_of((*outcome)->body));
    return {};
  });
}

Result<void> ProactiveSetup::create_journey(const Job& job) {
  auto proactive = store_.assets().proactive(job.project_id);
  if (!proactive) return fail(proactive.error());
  auto locales = store_.assets().locales(job.project_id);
  if (!locales) return fail(locales.error());
  const auto journey =
      flows::complete_journey(*proactive, locales->empty() ? "en" : locales->front().name);
  const auto id = model::new_id();
  return commit(job, Reach::journey, [&](store::Writer& writer, json& data) {
    data["journeyId"] = id;
    return store::Proactive::add_journey(writer, job.project_id, id, journey);
  });
}

Result<void> ProactiveSetup::generate_flow(const Job& job) {
  auto journey = store_.proactive().journey(job.project_id);
  if (!journey) return fail(journey.error());
  const auto named = text_of(*journey, "flow");
  return commit(job, Reach::flow, [&](store::Writer& writer, json& data) -> Result<void> {
    Result<std::string> flow_id = fail(Errc::internal, "");
    if (!named.empty()) {
      flow_id = store::Proactive::flow_named(writer, job.project_id, named);
    } else {
      const auto name = store::Proactive::free_flow_name(writer, job.project_id, "Follow-up");
      auto definition = flows::follow_up_flow(*journey, name);
      if (!definition) return fail(definition.error());
      auto put = store::Assets::put_flow(writer, job.project_id, name, definition->dump());
      if (!put) return fail(put.error());
      data["generated"] = true;
      flow_id = put->flow_id;
    }
    if (!flow_id) {
      return fail(Errc::invalid_argument, "proactive.journey.flow: " + flow_id.error().message +
                                              ". Import it, then set up again.");
    }
    data["flowId"] = *flow_id;
    auto attached =
        store::Proactive::attach(writer, job.project_id, *flow_id, text_of(*journey, "endpoint"));
    if (attached) return attached;
    return fail(Errc::invalid_argument, "proactive.journey.endpoint: " + attached.error().message +
                                            ". Import it, then set up again.");
  });
}

Result<void> ProactiveSetup::switch_on(const Job& job) {
  const json made = data_of(job);
  return write("job.after_step", [&](store::Writer& writer) -> Result<void> {
    // Cancelled at the last moment: nothing is switched on, and all is undone.
    if (store::Jobs::is_cancelling(writer, job.id)) return {};
    store::Proactive::activate(writer, text_of(made, "journeyId"));
    store_.assets().grow(writer, store::Assets::Lexicons::stay);
    const json ids = {{"tenantId", made.at("tenantId")},
                      {"journeyId", made.at("journeyId")},
                      {"flowId", made.at("flowId")}};
    const int steps = job.total_steps;
    auto kept = store_.jobs().step(writer, job.id, job.fencing_token,
                                   {.progress = 100, .current_step = steps, .data = ids});
    if (!kept) return kept;
    return store_.jobs().finish(writer, job.id, job.fencing_token, JobState::done, "");
  });
}

Result<void> ProactiveSetup::begin_undo(const Job& job, const std::string& reason) {
  json data = data_of(job);
  data["undoing"] = reason;
  return store_.jobs().step(job.id, job.fencing_token, {.data = std::move(data)});
}

Result<void> ProactiveSetup::commit_undo(const Job& job, const Make& make) {
  return write("job.after_undo", [&](store::Writer& writer) -> Result<void> {
    json data = data_of(job);
    if (auto made = make(writer, data); !made) return made;
    store_.assets().grow(writer, store::Assets::Lexicons::stay);
    return store_.jobs().step(writer, job.id, job.fencing_token, {.data = std::move(data)});
  });
}

// Undoes the steps in reverse order.
Result<void> ProactiveSetup::undo_last(const Job& job, JobHold& hold) {
  model::fault_point("job.before_undo");
  const json made = data_of(job);
  if (made.contains("flowId")) {
    return commit_undo(job, [&](store::Writer& writer, json& data) -> Result<void> {
      store::Proactive::detach(writer, job.project_id);
      if (data.contains("generated")) {
        store::Proactive::remove_generated_flow(writer, text_of(data, "flowId"));
      }
      data.erase("flowId");
      data.erase("generated");
      return {};
    });
  }
  if (made.contains("journeyId")) {
    return commit_undo(job, [&](store::Writer& writer, json& data) -> Result<void> {
      store::Proactive::remove_journey(writer, text_of(data, "journeyId"));
      data.erase("journeyId");
      return {};
    });
  }
  if (!made.contains("tenantId")) return end_undone(job);
  if (!settings_.provisioning_url.empty() && !made.contains("withdrawn")) {
    return withdraw(job, hold);
  }
  return commit_undo(job, [&](store::Writer& writer, json& data) -> Result<void> {
    store::Proactive::remove_tenant(writer, text_of(data, "tenantId"));
    data.erase("tenantId");
    return {};
  });
}

// Even if the announcement is not stored: it may have reached the service before a crash.
Result<void> ProactiveSetup::withdraw(const Job& job, JobHold& hold) {
  const auto tenant_id = text_of(data_of(job), "tenantId");
  auto outcome =
      send(job, hold,
           request("DELETE", settings_.provisioning_url + "/" + tenant_id, tenant_id + "-withdraw"),
           Cancellable::no);
  if (!outcome) return fail(outcome.error());
  const HttpOutcome& came = **outcome;
  const bool gone = came.success() || came.status == 404 || came.status == 410;
  return commit_undo(job, [&](store::Writer&, json& data) -> Result<void> {
    data["withdrawn"] = true;
    if (!gone) {
      data["left"] = "The tenant " + tenant_id +
                     " is still known to the provisioning service, which " + describe(came) +
                     "; remove it there.";
    }
    return {};
  });
}

Result<void> ProactiveSetup::end_undone(const Job& job) {
  const json data = data_of(job);
  const auto left = text_of(data, "left");
  const auto why = text_of(data, "undoing");
  const bool cancelled = job.state == JobState::cancelling && left.empty();
  const std::string reason = why.empty() || left.empty() ? why + left : why + " " + left;
  return write("job.after_undo", [&](store::Writer& writer) -> Result<void> {
    auto kept = store_.jobs().step(writer, job.id, job.fencing_token, {.data = json(nullptr)});
    if (!kept) return kept;
    return store_.jobs().finish(writer, job.id, job.fencing_token,
                                cancelled ? JobState::cancelled : JobState::error,
                                cancelled ? "" : reason);
  });
}

HttpRequest ProactiveSetup::request(const std::string& method, const std::string& url,
                                    const std::string& idempotency_key) const {
  HttpRequest made{.method = method, .url = url};
  made.timeout = settings_.timeout;
  made.headers.emplace_back("Idempotency-Key", idempotency_key);
  if (!settings_.provisioning_token.empty()) {
    made.headers.emplace_back("Authorization", "Bearer " + settings_.provisioning_token);
  }
  return made;
}

bool ProactiveSetup::is_cancelled(const Job& job) const {
  const auto now = store_.jobs().get(job.id);
  return now && now->state == JobState::cancelling;
}

Result<std::optional<HttpOutcome>> ProactiveSetup::send(const Job& job, JobHold& hold,
                                                        const HttpRequest& request,
                                                        Cancellable cancellable) {
  using SteadyClock = std::chrono::steady_clock;
  std::mt19937_64 random{std::random_device{}()};
  const auto deadline = SteadyClock::now() + settings_.retry_for;
  for (int attempts = 1;; ++attempts) {
    auto outcome = exchange(hold, request);
    if (!outcome) return fail(outcome.error());
    if (outcome->success()) return *std::move(outcome);
    const auto again =
        SteadyClock::now() + backoff(settings_.backoff, attempts, outcome->retry_after, random());
    if (!worth_retrying(*outcome) || again > deadline) return *std::move(outcome);
    while (SteadyClock::now() < again) {
      if (cancellable == Cancellable::yes && is_cancelled(job)) return std::nullopt;
      const auto left = std::chrono::ceil<milliseconds>(again - SteadyClock::now());
      if (!hold.wait(left)) return fail(Errc::unavailable, "the worker stops");
    }
  }
}

// One request and its answer. If the daemon stops meanwhile, the request goes on and its answer is
// dropped.
Result<HttpOutcome> ProactiveSetup::exchange(JobHold& hold, const HttpRequest& request) {
  struct Awaited {
    std::mutex mutex;
    JobHold* hold = nullptr;  // null: the wait has ended
    std::optional<HttpOutcome> outcome;
  };
  auto awaited = std::make_shared<Awaited>();
  awaited->hold = &hold;
  http_.send(request, [awaited](HttpOutcome outcome) {
    const std::lock_guard lock(awaited->mutex);
    awaited->outcome = std::move(outcome);
    if (awaited->hold != nullptr) awaited->hold->notify();
  });
  for (;;) {
    {
      const std::lock_guard lock(awaited->mutex);
      if (awaited->outcome) return *std::move(awaited->outcome);
    }
    if (hold.wait(look_interval)) continue;
    const std::lock_guard lock(awaited->mutex);
    awaited->hold = nullptr;
    return fail(Errc::unavailable, "the worker stops");
  }
}

}  // namespace conversed::daemon
