#include "daemon/jobs/proactive_setup.h"

#include <algorithm>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <random>
#include <utility>

#include "daemon/calls/call_request.h"
#include "daemon/jobs/await_answers.h"
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

const store::Jobs::Progress tenant_stored{.progress = 10, .current_step = 1};
const store::Jobs::Progress tenant_complete{.progress = 25, .current_step = 2};

// The names of the tries in the job's `data`.
constexpr const char* announcing = "announcing";
constexpr const char* withdrawing = "withdrawing";

std::string text_of(const json& data, const char* name) {
  const auto found = data.find(name);
  return found != data.end() && found->is_string() ? found->get<std::string>() : std::string();
}

// Whether a retry may help, or another worker goes on with the job.
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

class SetUp {
 public:
  SetUp(const ProactiveSetupSettings& settings, store::Store& store, HttpClient& http,
        const Job& job, JobHold& hold)
      : settings_(settings),
        store_(store),
        http_(http),
        job_(job),
        hold_(hold),
        made_(job.data.is_object() ? job.data : json::object()) {}

  Result<void> advance() {
    if (job_.state == JobState::cancelling || made_.contains("undoing")) {
      return undo_last();
    }
    const auto tried = tries(announcing);
    if (job_.fencing_token - (tried ? tried->lease : 0) > JobHold::max_leases) {
      return begin_undo("The set-up was begun " + std::to_string(JobHold::max_leases) +
                        " times and never ended. The daemon's log has the reason.");
    }
    auto done = do_next();
    if (done || is_passing(done.error())) return done;
    log::error("set-up failed", {{"jobId", job_.id}, {"error", done.error().message}});
    return begin_undo("The set-up failed inside the daemon (" + done.error().message +
                      "). Try again. If it fails again, read the daemon's log.");
  }

 private:
  using Make = std::function<Result<void>(store::Writer&, json& data)>;
  using Write = std::function<Result<void>(store::Writer&)>;

  Result<void> do_next() {
    model::fault_point("job.before_step");
    if (job_.current_step == 0) {
      return store_.jobs().step(job_.id, job_.fencing_token, {.progress = 0, .current_step = 1});
    }
    if (!made_.contains("tenantId")) return provision();
    if (!settings_.provisioning_url.empty() && !made_.contains("provisioned")) {
      return announce();
    }
    if (!made_.contains("journeyId")) return create_journey();
    if (!made_.contains("flowId")) return generate_flow();
    return switch_on();
  }

  Result<void> commit(const char* fault_point, store::Jobs::Progress reached, const Make& make) {
    std::optional<std::string> refused;
    auto written = write(fault_point, [&](store::Writer& writer) -> Result<void> {
      refused.reset();
      reached.data = made_;
      if (auto made = make(writer, *reached.data); !made) {
        refused = made.error().message;
        return made;
      }
      store_.assets().grow(writer);
      return store_.jobs().step(writer, job_.id, job_.fencing_token, reached);
    });
    return refused ? begin_undo(*refused) : written;
  }

  Result<void> write(const char* fault_point, const Write& work) {
    auto written = store_.committer().write_and_wait(work);
    if (written) model::fault_point(fault_point);
    return written;
  }

  Result<void> provision() {
    const store::Tenant tenant{.id = model::new_id(),
                               .project_id = job_.project_id,
                               .follow_ups_per_month = settings_.follow_ups_per_month};
    // Without a provisioning service the tenant is complete.
    const store::Jobs::Progress reached =
        settings_.provisioning_url.empty() ? tenant_complete : tenant_stored;
    return commit("job.after_step", reached, [&](store::Writer& writer, json& data) {
      data["tenantId"] = tenant.id;
      return store_.proactive().add_tenant(writer, tenant);
    });
  }

  Result<void> announce() {
    const auto tenant_id = text_of(made_, "tenantId");
    auto project = store_.assets().project(job_.project_id);
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
    auto outcome = send(wanted, announcing);
    if (!outcome) return fail(outcome.error());
    if (!*outcome) return {};
    if (!(*outcome)->success()) {
      return begin_undo("The provisioning service " + describe(**outcome) +
                        ". Check proactive.provisioning and the service, then set up again.");
    }
    model::fault_point("job.after_provisioning");
    return commit(
        "job.after_step", tenant_complete, [&](store::Writer& writer, json& data) -> Result<void> {
          data["provisioned"] = true;
          data.erase(announcing);
          store::Proactive::set_external_id(writer, tenant_id, external_id_of((*outcome)->body));
          return {};
        });
  }

  Result<void> create_journey() {
    auto proactive = store_.assets().proactive(job_.project_id);
    if (!proactive) return fail(proactive.error());
    auto locales = store_.assets().locales(job_.project_id);
    if (!locales) return fail(locales.error());
    const auto journey =
        flows::complete_journey(*proactive, locales->empty() ? "en" : locales->front().name);
    const auto id = model::new_id();
    return commit("job.after_step", {.progress = 50, .current_step = 3},
                  [&](store::Writer& writer, json& data) {
                    data["journeyId"] = id;
                    return store::Proactive::add_journey(writer, job_.project_id, id, journey);
                  });
  }

  Result<void> generate_flow() {
    auto journey = store_.proactive().journey(job_.project_id);
    if (!journey) return fail(journey.error());
    const auto named = text_of(*journey, "flow");
    const auto make = [&](store::Writer& writer, json& data) -> Result<void> {
      Result<std::string> flow_id = fail(Errc::internal, "");
      if (!named.empty()) {
        flow_id = store::Proactive::flow_named(writer, job_.project_id, named);
      } else {
        const auto name = store::Proactive::free_flow_name(writer, job_.project_id, "Follow-up");
        auto definition = flows::follow_up_flow(*journey, name);
        if (!definition) return fail(definition.error());
        auto put = store::Assets::put_flow(writer, job_.project_id, name, definition->dump());
        if (!put) return fail(put.error());
        data["generated"] = true;
        flow_id = put->flow_id;
      }
      if (!flow_id) {
        return fail(Errc::invalid_argument, "proactive.journey.flow: " + flow_id.error().message +
                                                ". Import it, then set up again.");
      }
      data["flowId"] = *flow_id;
      auto attached = store::Proactive::attach(writer, job_.project_id, *flow_id,
                                               text_of(*journey, "endpoint"));
      if (attached) return attached;
      return fail(Errc::invalid_argument,
                  "proactive.journey.endpoint: " + attached.error().message +
                      ". Import it, then set up again.");
    };
    return commit("job.after_step", {.progress = 75, .current_step = 4}, make);
  }

  Result<void> switch_on() {
    return write("job.after_step", [&](store::Writer& writer) -> Result<void> {
      // Cancelled at the last moment: the follow-up is not switched on, and all steps are undone.
      if (store::Jobs::is_cancelling(writer, job_.id)) return {};
      store::Proactive::activate(writer, text_of(made_, "journeyId"));
      store_.assets().grow(writer);
      const json ids = {{"tenantId", made_.at("tenantId")},
                        {"journeyId", made_.at("journeyId")},
                        {"flowId", made_.at("flowId")}};
      const int steps = job_.total_steps;
      auto kept = store_.jobs().step(writer, job_.id, job_.fencing_token,
                                     {.progress = 100, .current_step = steps, .data = ids});
      if (!kept) return kept;
      return store_.jobs().finish(writer, job_.id, job_.fencing_token, JobState::done, "");
    });
  }

  Result<void> begin_undo(const std::string& reason) {
    json data = made_;
    data["undoing"] = reason;
    return store_.jobs().step(job_.id, job_.fencing_token, {.data = std::move(data)});
  }

  Result<void> undo_last() {
    model::fault_point("job.before_undo");
    if (made_.contains("flowId")) {
      return undo({"flowId", "generated"}, [&](store::Writer& writer) {
        store::Proactive::detach(writer, job_.project_id);
        if (made_.contains("generated")) {
          store::Proactive::remove_generated_flow(writer, text_of(made_, "flowId"));
        }
      });
    }
    if (made_.contains("journeyId")) {
      return undo({"journeyId"}, [&](store::Writer& writer) {
        store::Proactive::remove_journey(writer, text_of(made_, "journeyId"));
      });
    }
    if (!made_.contains("tenantId")) return end_undone();
    if (!settings_.provisioning_url.empty() && !made_.contains("withdrawn")) {
      return withdraw();
    }
    return undo({"tenantId"}, [&](store::Writer& writer) {
      store::Proactive::remove_tenant(writer, text_of(made_, "tenantId"));
    });
  }

  // Undoes the part of the job's data with these names.
  Result<void> undo(std::initializer_list<const char*> names,
                    const std::function<void(store::Writer&)>& remove) {
    return commit("job.after_undo", {}, [&](store::Writer& writer, json& data) -> Result<void> {
      remove(writer);
      for (const char* name : names) data.erase(name);
      return {};
    });
  }

  // Runs even if the announcement is not stored: it may have reached the service before a crash.
  Result<void> withdraw() {
    const auto tenant_id = text_of(made_, "tenantId");
    auto outcome = send(
        request("DELETE", settings_.provisioning_url + "/" + tenant_id, tenant_id + "-withdraw"),
        withdrawing);
    if (!outcome) return fail(outcome.error());
    if (!*outcome) return {};
    const HttpOutcome& came = **outcome;
    const bool gone = came.success() || came.status == 404 || came.status == 410;
    return commit("job.after_undo", {}, [&](store::Writer&, json& data) -> Result<void> {
      data["withdrawn"] = true;
      data.erase(withdrawing);
      if (!gone) {
        data["left"] = "The tenant " + tenant_id +
                       " is still known to the provisioning service, which " + describe(came) +
                       "; remove it there.";
      }
      return {};
    });
  }

  Result<void> end_undone() {
    const auto left = text_of(made_, "left");
    const auto why = text_of(made_, "undoing");
    const bool cancelled = job_.state == JobState::cancelling && left.empty();
    const std::string reason = why.empty() || left.empty() ? why + left : why + " " + left;
    return write("job.after_undo", [&](store::Writer& writer) -> Result<void> {
      auto kept = store_.jobs().step(writer, job_.id, job_.fencing_token, {.data = json(nullptr)});
      if (!kept) return kept;
      return store_.jobs().finish(writer, job_.id, job_.fencing_token,
                                  cancelled ? JobState::cancelled : JobState::error,
                                  cancelled ? "" : reason);
    });
  }

  HttpRequest request(const std::string& method, const std::string& url,
                      const std::string& idempotency_key) const {
    HttpRequest made{.method = method, .url = url};
    made.timeout = settings_.timeout;
    made.headers.emplace_back("Idempotency-Key", idempotency_key);
    if (!settings_.provisioning_token.empty()) {
      made.headers.emplace_back("Authorization", "Bearer " + settings_.provisioning_token);
    }
    return made;
  }

  // The failed tries of a request, in the job's `data` under a name. Times use the clock of timers.
  struct Tries {
    int failed = 0;
    model::Timestamp until{};  // no try begins after it
    model::Timestamp next{};
    std::int64_t lease = 0;  // of the last try
  };

  [[nodiscard]] std::optional<Tries> tries(const char* name) const {
    const auto found = made_.find(name);
    if (found == made_.end() || !found->is_object()) return std::nullopt;
    const auto number = [&](const char* field) {
      const auto at = found->find(field);
      return at != found->end() && at->is_number_integer() ? at->get<std::int64_t>() : 0;
    };
    return Tries{.failed = static_cast<int>(std::min<std::int64_t>(number("failed"), 1'000'000)),
                 .until = model::from_unix_ms(number("until")),
                 .next = model::from_unix_ms(number("next")),
                 .lease = number("lease")};
  }

  Result<void> keep(const char* name, const Tries& made) {
    json data = made_;
    data[name] = {{"failed", made.failed},
                  {"until", model::to_unix_ms(made.until)},
                  {"next", model::to_unix_ms(made.next)},
                  {"lease", job_.fencing_token}};
    return store_.jobs().step(job_.id, job_.fencing_token, {.data = std::move(data)});
  }

  // Makes one try if its time has come. Nullopt: a later step makes the next try, so the caller has
  // to return. `name`: of the tries in the job's `data`.
  Result<std::optional<HttpOutcome>> send(const HttpRequest& wanted, const char* name) {
    const auto now = store_.timer_now();
    const auto longest = longest_wait(settings_.backoff);
    auto made = tries(name).value_or(Tries{.until = now + settings_.retry_for});
    // A longer wait than any pause shows that the clock was set back while no daemon ran.
    if (const auto left = made.next - now; left > milliseconds(0) && left <= longest) {
      hold_.put_off(std::chrono::ceil<milliseconds>(left));
      return std::nullopt;
    }
    auto outcome = exchange(wanted);
    if (!outcome) return fail(outcome.error());
    if (outcome->success()) return *std::move(outcome);
    ++made.failed;
    std::mt19937_64 random{std::random_device{}()};
    made.next = store_.timer_now() +
                backoff(settings_.backoff, made.failed, outcome->retry_after, random());
    if (!worth_retrying(*outcome) || made.next > made.until) return *std::move(outcome);
    model::fault_point("job.after_try");
    auto kept = keep(name, made);
    if (!kept) return fail(kept.error());
    return std::nullopt;
  }

  // Makes one request and waits for its answer. If the daemon stops meanwhile, the request goes on
  // and its answer is dropped.
  Result<HttpOutcome> exchange(const HttpRequest& wanted) {
    auto answers = await_answers<HttpOutcome>(
        hold_, 1, [&](auto done) { http_.send(wanted, std::move(done)); });
    if (!answers) return fail(answers.error());
    return std::move(answers->front());
  }

  const ProactiveSetupSettings& settings_;
  store::Store& store_;
  HttpClient& http_;
  const Job& job_;
  JobHold& hold_;
  const json made_;  // the job's `data` of the parts made so far
};

}  // namespace

Result<void> ProactiveSetup::advance(const Job& job, JobHold& hold) {
  return SetUp(settings_, store_, http_, job, hold).advance();
}

}  // namespace conversed::daemon
