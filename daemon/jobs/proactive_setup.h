#pragma once

#include <chrono>
#include <cstdint>
#include <string>

#include "daemon/jobs/job_worker.h"
#include "daemon/outbound/http_client.h"
#include "daemon/service/backoff.h"
#include "store/jobs/jobs.h"
#include "store/store.h"

namespace conversed::daemon {

struct ProactiveSetupSettings {
  std::int64_t follow_ups_per_month = 0;  // of a new tenant; 0: unlimited
  std::string provisioning_url;           // empty: there is no provisioning service
  std::string provisioning_token;         // empty: none is sent
  std::chrono::milliseconds timeout{10'000};
  std::chrono::milliseconds retry_for{120'000};
  BackoffSettings backoff{.first = std::chrono::milliseconds(250),
                          .max = std::chrono::milliseconds(10'000),
                          .max_asked = std::chrono::milliseconds(30'000)};
};

// The steps of a `proactiveSetup` job: the project's tenant, its journey, its follow-up Flow, the
// switch. A step's effects and the job's progress are one transaction, so each step has its effects
// once, also after crashes. The job's `data` names the parts that were made: `tenantId`,
// `journeyId`, `flowId`, and until the job has ended `provisioned`, `generated`, `undoing` (the
// reason), `withdrawn`, `left` (the part that could not be undone), and the failed tries of
// requests: `announcing` and `withdrawing`.
//
// The provisioning service is called before its step is committed, under a constant
// `Idempotency-Key`: it may get a request again and has to treat it as a repeat. A step makes one
// try. If it fails, the job is put off until the next one, so that other jobs get the thread. The
// number of failed tries and the time of the next one are in the row, so that a restart neither
// hastens nor extends the tries. Thread-safe.
// Kept by: JobWorkerTest.SetUpsWhoseServiceIsDownHoldUpNoOtherJob,
// JobWorkerTest.TriesOfASetUpGoOnAfterARestart.
class ProactiveSetup final : public JobSteps {
 public:
  // Both must outlive it.
  ProactiveSetup(ProactiveSetupSettings settings, store::Store& store, HttpClient& http)
      : settings_(std::move(settings)), store_(store), http_(http) {}

  [[nodiscard]] model::Result<void> advance(const model::Job& job, JobHold& hold) override;

 private:
  const ProactiveSetupSettings settings_;
  store::Store& store_;
  HttpClient& http_;
};

}  // namespace conversed::daemon
