#pragma once

#include <chrono>
#include <cstdint>
#include <functional>
#include <nlohmann/json.hpp>
#include <optional>
#include <string>

#include "daemon/jobs/job_worker.h"
#include "daemon/outbound/http_client.h"
#include "daemon/service/backoff.h"
#include "store/jobs/jobs.h"
#include "store/store.h"

namespace conversed::daemon {

struct ProactiveSetupSettings {
  std::int64_t follow_ups_per_month = 0;  // of a new tenant; 0: unlimited
  std::string provisioning_url;           // empty: tenants are not announced
  std::string provisioning_token;         // empty: none is sent
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds retry_for{120'000};
  BackoffSettings backoff{.first = std::chrono::milliseconds(250),
                          .max = std::chrono::milliseconds(10'000),
                          .max_asked = std::chrono::milliseconds(30'000)};
};

// The steps of a `proactiveSetup` job: the project's tenant, its journey, its follow-up Flow, the
// switch. A step's effects and the job's progress are one transaction, so each step has its effects
// once, also after crashes. The job's `data` names what was made: `tenantId`, `journeyId`,
// `flowId`, and until the job has ended `provisioned`, `generated`, `undoing` (why), `withdrawn`
// and `left` (what could not be undone).
//
// The provisioning service is called before its step is committed, under a constant
// `Idempotency-Key`: it may see a request again and has to treat it as the same. Thread-safe.
class ProactiveSetup final : public JobSteps {
 public:
  // Both must outlive it.
  ProactiveSetup(ProactiveSetupSettings settings, store::Store& store, HttpClient& http)
      : settings_(std::move(settings)), store_(store), http_(http) {}

  [[nodiscard]] model::Result<void> advance(const model::Job& job, JobHold& hold) override;

 private:
  using Make = std::function<model::Result<void>(store::Writer&, nlohmann::json& data)>;
  using Write = std::function<model::Result<void>(store::Writer&)>;
  enum class Reach : std::uint8_t { tenant_row, tenant, journey, flow };

  model::Result<void> do_next(const model::Job& job, JobHold& hold);
  model::Result<void> provision(const model::Job& job, JobHold& hold);
  model::Result<void> announce(const model::Job& job, JobHold& hold);
  model::Result<void> create_journey(const model::Job& job);
  model::Result<void> generate_flow(const model::Job& job);
  model::Result<void> switch_on(const model::Job& job);
  model::Result<void> undo_last(const model::Job& job, JobHold& hold);
  model::Result<void> withdraw(const model::Job& job, JobHold& hold);
  model::Result<void> end_undone(const model::Job& job);
  model::Result<void> begin_undo(const model::Job& job, const std::string& reason);

  // Commits `work`, then passes the fault point of that name.
  model::Result<void> write(const char* fault_point, const Write& work);
  // Commits the writes of `make` together with the job's progress. If `make` fails, undoing begins.
  model::Result<void> commit(const model::Job& job, Reach reached, const Make& make);
  // The same while undoing: progress does not fall.
  model::Result<void> commit_undo(const model::Job& job, const Make& make);

  [[nodiscard]] HttpRequest request(const std::string& method, const std::string& url,
                                    const std::string& idempotency_key) const;
  enum class Cancellable : std::uint8_t { no, yes };
  // Retries until success or a permanent error. Nothing: the job is being cancelled.
  model::Result<std::optional<HttpOutcome>> send(const model::Job& job, JobHold& hold,
                                                 const HttpRequest& request,
                                                 Cancellable cancellable);
  model::Result<HttpOutcome> exchange(JobHold& hold, const HttpRequest& request);
  [[nodiscard]] bool is_cancelled(const model::Job& job) const;

  const ProactiveSetupSettings settings_;
  store::Store& store_;
  HttpClient& http_;
};

}  // namespace conversed::daemon
