#include "daemon/jobs/job_worker.h"

#include <atomic>
#include <mutex>
#include <optional>
#include <string>

#include "daemon/jobs/proactive_setup.h"
#include "tests/support/manual_clock.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using model::JobState;

// Two steps. The test can hold up the first one.
class TwoSteps final : public JobSteps {
 public:
  explicit TwoSteps(store::Jobs& jobs) : jobs_(jobs) {}

  model::Result<void> advance(const model::Job& job, JobHold& hold) override {
    if (job.progress > 0) {
      return jobs_.finish(job.id, job.fencing_token,
                          job.state == JobState::cancelling ? JobState::cancelled : JobState::done,
                          "");
    }
    ++begun;
    while (held) {
      if (!hold.wait(1h)) return model::fail(model::Errc::unavailable, "stopped");
      const auto now = jobs_.get(job.id);
      if (now && now->state == JobState::cancelling) break;
    }
    return jobs_.step(job.id, job.fencing_token, {.progress = 50, .current_step = 1});
  }

  std::atomic<bool> held{false};
  std::atomic<int> begun{0};

 private:
  store::Jobs& jobs_;
};

// Jobs named "long" have steps until the test lets them end; other jobs have one.
class LongAndShort final : public JobSteps {
 public:
  explicit LongAndShort(store::Jobs& jobs) : jobs_(jobs) {}

  model::Result<void> advance(const model::Job& job, JobHold& /*hold*/) override {
    if (job.name == "long" && !may_end) {
      return jobs_.step(job.id, job.fencing_token, {.progress = 1});
    }
    return jobs_.finish(job.id, job.fencing_token, JobState::done, "");
  }

  std::atomic<bool> may_end{false};

 private:
  store::Jobs& jobs_;
};

class JobWorkerTest : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    import({{ "web", "" }});
    steps_ = std::make_unique<TwoSteps>(store_->jobs());
    store_->jobs().on_change([this](const std::string& id) {
      const std::lock_guard lock(worker_mutex_);
      if (worker_ && !deaf_) worker_->offer(id);
    });
  }
  void TearDown() override { replace_worker(nullptr); }

  // The old worker ends outside the lock: it may wait for a commit that takes the lock to notify
  // it.
  void replace_worker(std::unique_ptr<JobWorker> worker) {
    const std::lock_guard lock(worker_mutex_);
    worker_.swap(worker);
  }

  void start(store::Notifications* others = nullptr) {
    replace_worker(nullptr);
    replace_worker(std::make_unique<JobWorker>(
        JobWorkerSettings{.rescue_interval = 10ms, .retention = 24h, .prune_interval = 10ms},
        store_->jobs(), *steps_, clock_, others));
    ASSERT_TRUE(worker_->start());
  }
  std::string create() {
    model::Job job;
    job.id = model::new_id();
    job.project_id = project();
    job.type = model::proactive_setup;
    job.name = "Set-up";
    job.total_steps = 4;
    job.created_at = clock_.now();
    EXPECT_TRUE(store_->jobs().create(job));
    return job.id;
  }
  [[nodiscard]] JobState state(const std::string& id) { return store_->jobs().get(id)->state; }
  [[nodiscard]] bool becomes(const std::string& id, JobState wanted) {
    return eventually([&] { return state(id) == wanted; });
  }

  std::unique_ptr<TwoSteps> steps_;
  std::mutex worker_mutex_;  // the Committer's thread notifies the worker
  bool deaf_ = false;        // ignores notifications of this store
  std::unique_ptr<JobWorker> worker_;
};

TEST_F(JobWorkerTest, JobThatWasMadeBeforeTheStartIsDone) {
  const auto id = create();
  start();
  EXPECT_TRUE(becomes(id, JobState::done));
  EXPECT_EQ(store_->jobs().get(id)->progress, 100);
}

TEST_F(JobWorkerTest, CancelReachesAStepThatWaits) {
  steps_->held = true;
  start();
  const auto id = create();
  ASSERT_TRUE(eventually([&] { return steps_->begun > 0; }));
  ASSERT_TRUE(store_->jobs().cancel(id));
  EXPECT_TRUE(becomes(id, JobState::cancelled));
}

TEST_F(JobWorkerTest, JobOfAWorkerThatVanishedGoesOnAfterItsLease) {
  const auto id = create();
  ASSERT_TRUE(store_->jobs().lease(id, clock_.now() + 1min));
  start(&store_->notifications());
  EXPECT_EQ(state(id), JobState::active);
  clock_.advance(2min);
  EXPECT_TRUE(becomes(id, JobState::done));
}

TEST_F(JobWorkerTest, WithoutOtherDaemonsLeasesOfAnEarlierRunEndAtTheStart) {
  const auto id = create();
  ASSERT_TRUE(store_->jobs().lease(id, clock_.now() + 1h));
  start();
  EXPECT_TRUE(becomes(id, JobState::done));
}

TEST_F(JobWorkerTest, StopLeavesTheJobToTheNextRun) {
  steps_->held = true;
  const auto id = create();
  start();
  ASSERT_TRUE(eventually([&] { return steps_->begun > 0; }));
  worker_->stop();
  worker_->stop();
  EXPECT_EQ(state(id), JobState::active);
  steps_->held = false;
  start();
  EXPECT_TRUE(becomes(id, JobState::done));
}

TEST_F(JobWorkerTest, OldJobsAreForgottenExceptADoneSetUp) {
  const auto cancelled = create();
  ASSERT_TRUE(store_->jobs().cancel(cancelled));
  start();
  const auto done = create();
  ASSERT_TRUE(becomes(done, JobState::done));
  EXPECT_TRUE(store_->jobs().get(cancelled));
  clock_.advance(48h);
  EXPECT_TRUE(eventually([&] { return !store_->jobs().get(cancelled); }));
  EXPECT_TRUE(store_->jobs().get(done));
}

TEST_F(JobWorkerTest, JobOfAnotherDaemonBeginsWithItsNotification) {
  const auto first = create();
  replace_worker(std::make_unique<JobWorker>(JobWorkerSettings{.rescue_interval = 24h},
                                             store_->jobs(), *steps_, clock_,
                                             &store_->notifications()));
  ASSERT_TRUE(worker_->start());
  ASSERT_TRUE(becomes(first, JobState::done)) << "the rescue finds the job";
  {
    const std::lock_guard lock(worker_mutex_);
    deaf_ = true;
  }
  model::Job other = *store_->jobs().get(first);
  other.id = model::new_id();
  other.type = "other";
  ASSERT_TRUE(store_->jobs().create(other));
  EXPECT_EQ(state(other.id), JobState::queued);
  store_->notifications().tell(std::string(store::Jobs::wake_topic) + ' ' + other.id);
  EXPECT_TRUE(becomes(other.id, JobState::done));
}

TEST_F(JobWorkerTest, ShortJobEndsWhileLongOnesOfAnotherProjectRun) {
  LongAndShort steps(store_->jobs());
  replace_worker(
      std::make_unique<JobWorker>(JobWorkerSettings{.threads = 2}, store_->jobs(), steps, clock_));
  EXPECT_TRUE(worker_->start());
  const auto make = [&](const std::string& of, std::string_view type, const std::string& name) {
    const model::Job job{.id = model::new_id(),
                         .project_id = of,
                         .type = std::string(type),
                         .name = name,
                         .created_at = clock_.now()};
    EXPECT_TRUE(store_->jobs().create(job));
    return job.id;
  };
  const auto first = make(project(), model::retry_deliveries, "long");
  const auto second = make(project(), model::drop_deliveries, "long");
  for (const auto& id : {first, second}) {
    EXPECT_TRUE(eventually([&] { return store_->jobs().get(id)->progress > 0; }));
  }
  EXPECT_TRUE(becomes(make("other", model::drop_deliveries, "short"), JobState::done));
  for (const auto& id : {first, second}) EXPECT_EQ(state(id), JobState::active);
  steps.may_end = true;
  for (const auto& id : {first, second}) EXPECT_TRUE(becomes(id, JobState::done));
  replace_worker(nullptr);  // before what it uses
}

TEST_F(JobWorkerTest, SetUpThatWasLeasedAHundredTimesIsUndone) {
  const auto id = create();
  for (int n = 0; n < 100; ++n) ASSERT_TRUE(store_->jobs().lease(id, clock_.now()));
  HttpClient http({}, loopback_egress());
  ProactiveSetup setup({}, *store_, http);
  replace_worker(
      std::make_unique<JobWorker>(JobWorkerSettings{}, store_->jobs(), setup, clock_, nullptr));
  ASSERT_TRUE(worker_->start());
  EXPECT_TRUE(becomes(id, JobState::error));
  EXPECT_NE(store_->jobs().get(id)->fail_reason.find("100 times"), std::string::npos);
  replace_worker(nullptr);  // before what it uses
}

TEST_F(JobWorkerTest, SetUpMakesAFlowThatItsAuthorCanEdit) {
  HttpClient http({}, loopback_egress());
  ProactiveSetup setup({}, *store_, http);
  replace_worker(nullptr);
  replace_worker(
      std::make_unique<JobWorker>(JobWorkerSettings{}, store_->jobs(), setup, clock_, nullptr));
  ASSERT_TRUE(worker_->start());
  const auto id = create();
  ASSERT_TRUE(becomes(id, JobState::done));
  const auto data = store_->jobs().get(id)->data;
  const auto flow = store_->assets().flow(data["flowId"], 0);
  ASSERT_TRUE(flow && *flow);
  EXPECT_EQ((*flow)->name, "Follow-up");
  EXPECT_EQ(nlohmann::json::parse((*flow)->definition)["nodes"][0]["say"]["text"],
            "Are you still there? I am happy to help.");
  EXPECT_EQ((*store_->assets().endpoint(id_of("endpoints", "web")))->follow_up_flow_id,
            data["flowId"]);
  EXPECT_EQ(store_->assets().project_assets(project())->journey->after, 20min);
  import({{"web", ""}, { "phone", "" }});
  EXPECT_EQ((*store_->assets().endpoint(id_of("endpoints", "phone")))->follow_up_flow_id,
            data["flowId"])
      << "later Endpoints are followed up, too";
  replace_worker(nullptr);  // before what it uses
}

}  // namespace
}  // namespace conversed::daemon
