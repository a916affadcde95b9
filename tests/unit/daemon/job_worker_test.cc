#include "daemon/jobs/job_worker.h"

#include <algorithm>
#include <atomic>
#include <functional>
#include <mutex>
#include <optional>
#include <set>
#include <string>
#include <thread>
#include <vector>

#include "daemon/jobs/await_answers.h"
#include "daemon/jobs/bulk_work.h"
#include "daemon/jobs/proactive_setup.h"
#include "tests/support/http_receiver.h"
#include "tests/support/manual_clock.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using model::JobState;
using tests::HttpReceiver;

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

// Jobs named "long" have steps until the test lets them end. So have jobs named "restless", which
// put themselves off after each step. Other jobs have one step.
class LongAndShort final : public JobSteps {
 public:
  explicit LongAndShort(store::Jobs& jobs) : jobs_(jobs) {}

  model::Result<void> advance(const model::Job& job, JobHold& hold) override {
    if (job.name == "restless" && !may_end) {
      ++put_off;
      hold.put_off(0ms);
      return {};
    }
    if (job.name == "long" && !may_end) {
      return jobs_.step(job.id, job.fencing_token, {.progress = 1});
    }
    return jobs_.finish(job.id, job.fencing_token, JobState::done, "");
  }

  std::atomic<bool> may_end{false};
  std::atomic<int> put_off{0};

 private:
  store::Jobs& jobs_;
};

// One step that waits for answers of other threads.
class Gatherer final : public JobSteps {
 public:
  using Done = std::function<void(int)>;

  Gatherer(store::Jobs& jobs, std::size_t count, std::function<void(Done)> begin)
      : jobs_(jobs), count_(count), begin_(std::move(begin)) {}

  model::Result<void> advance(const model::Job& job, JobHold& hold) override {
    auto came = await_answers<int>(hold, count_, begin_);
    if (!came) return model::fail(came.error());
    answers = *std::move(came);
    return jobs_.finish(job.id, job.fencing_token, JobState::done, "");
  }

  std::vector<int> answers;

 private:
  store::Jobs& jobs_;
  const std::size_t count_;
  const std::function<void(Done)> begin_;
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
  void start(JobSteps& steps) {
    replace_worker(nullptr);
    replace_worker(std::make_unique<JobWorker>(JobWorkerSettings{}, store_->jobs(), steps, clock_));
    ASSERT_TRUE(worker_->start());
  }
  std::string create() { return create(project()); }
  std::string create(const std::string& of) {
    model::Job job;
    job.id = model::new_id();
    job.project_id = of;
    job.type = model::proactive_setup;
    job.name = "Set-up";
    job.total_steps = 4;
    job.created_at = clock_.now();
    EXPECT_TRUE(store_->jobs().create(job));
    return job.id;
  }
  // The tries of a set-up's announcement that have failed.
  [[nodiscard]] int failed_tries(const std::string& id) {
    const auto data = store_->jobs().get(id)->data;
    if (!data.is_object() || !data.contains("announcing")) return 0;
    return data["announcing"]["failed"];
  }
  // Whether a thread has put the job off: its lease ends later than that of a job in hand.
  [[nodiscard]] bool is_put_off(const std::string& id) {
    return store_->jobs().get(id)->lease_until > clock_.now() + 2min;
  }
  std::string create(std::string_view type, const std::string& name, const std::string& of) {
    const model::Job job{.id = model::new_id(),
                         .project_id = of,
                         .type = std::string(type),
                         .name = name,
                         .created_at = clock_.now()};
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
  start(&store_->first().notifications());
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
                                             &store_->first().notifications()));
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
  store_->first().notifications().tell(std::string(store::Jobs::wake_topic) + ' ' + other.id);
  EXPECT_TRUE(becomes(other.id, JobState::done));
}

TEST_F(JobWorkerTest, ShortJobEndsWhileLongOnesOfAnotherProjectRun) {
  LongAndShort steps(store_->jobs());
  replace_worker(
      std::make_unique<JobWorker>(JobWorkerSettings{.threads = 2}, store_->jobs(), steps, clock_));
  EXPECT_TRUE(worker_->start());
  const auto first = create(model::retry_deliveries, "long", project());
  const auto second = create(model::drop_deliveries, "long", project());
  for (const auto& id : {first, second}) {
    EXPECT_TRUE(eventually([&] { return store_->jobs().get(id)->progress > 0; }));
  }
  EXPECT_TRUE(becomes(create(model::drop_deliveries, "short", "other"), JobState::done));
  for (const auto& id : {first, second}) EXPECT_EQ(state(id), JobState::active);
  steps.may_end = true;
  for (const auto& id : {first, second}) EXPECT_TRUE(becomes(id, JobState::done));
  replace_worker(nullptr);  // before what it uses
}

TEST_F(JobWorkerTest, NewJobsAndJobsThatWerePutOffTakeTurns) {
  LongAndShort steps(store_->jobs());
  replace_worker(
      std::make_unique<JobWorker>(JobWorkerSettings{.threads = 1}, store_->jobs(), steps, clock_));
  ASSERT_TRUE(worker_->start());
  std::vector<std::string> ids;
  for (const char* of : {"a", "b"}) {
    ids.push_back(create(model::retry_deliveries, "restless", of));
    ids.push_back(create(model::drop_deliveries, "restless", of));
  }
  EXPECT_TRUE(becomes(create(model::drop_deliveries, "short", "other"), JobState::done));
  for (const char* of : {"c", "d"}) ids.push_back(create(model::retry_deliveries, "long", of));
  EXPECT_TRUE(eventually([&] { return store_->jobs().get(ids.back())->progress > 0; }));
  const int before = steps.put_off;
  EXPECT_TRUE(eventually([&] { return steps.put_off > before + 20; }));
  steps.may_end = true;
  for (const auto& id : ids) EXPECT_TRUE(becomes(id, JobState::done));
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

constexpr BackoffSettings ten_minutes{.first = 10min, .max = 10min, .max_asked = 10min};

HttpReceiver::Answer refusing(const HttpReceiver::Request& /*request*/) {
  return {.status = 503};
}

TEST_F(JobWorkerTest, SetUpsWhoseServiceIsDownHoldUpNoOtherJob) {
  const auto first_project = project();
  model::Bundle bundle;
  bundle.project_name = "Second";
  bundle.locales = {"en"};
  const auto second = store_->assets().import_bundle(organisation_, bundle);
  ASSERT_TRUE(second) << second.error().message;
  HttpReceiver service(refusing);
  HttpClient http({}, loopback_egress());
  ASSERT_TRUE(http.start());
  ProactiveSetup setup(
      {.provisioning_url = service.url("/tenants"), .retry_for = 1h, .backoff = ten_minutes},
      *store_, http);
  BulkWork bulk(*store_, clock_, {.append = [](auto&&...) {}});
  StepsByType steps(setup, bulk);
  start(steps);
  const auto cancelled = create(first_project);
  const auto done = create((*second)["project"]["_id"]);
  for (const auto& id : {cancelled, done}) {
    ASSERT_TRUE(eventually([&] { return is_put_off(id); }));
    EXPECT_EQ(failed_tries(id), 1);
  }
  const model::Job other{.id = model::new_id(),
                         .project_id = "of another organization",
                         .type = std::string(model::drop_deliveries),
                         .name = "work",
                         .data = {{"filter", nlohmann::json::object()}},
                         .created_at = clock_.now()};
  ASSERT_TRUE(store_->jobs().create(other));
  EXPECT_TRUE(becomes(other.id, JobState::done));
  EXPECT_EQ(service.count(), 2U);
  service.set_handler({});
  ASSERT_TRUE(store_->jobs().cancel(cancelled));
  EXPECT_TRUE(becomes(cancelled, JobState::cancelled)) << "a cancel waits for no try";
  EXPECT_EQ(service.requests().back().method, "DELETE");
  EXPECT_EQ(state(done), JobState::active);
  clock_.advance(15min);
  worker_->offer(done);
  EXPECT_TRUE(becomes(done, JobState::done));
  EXPECT_EQ(service.count(), 4U);
  replace_worker(nullptr);  // before what it uses
  http.stop();
}

TEST_F(JobWorkerTest, TriesOfASetUpGoOnAfterARestart) {
  HttpReceiver service([](const auto& request) {
    return HttpReceiver::Answer{.status = request.method == "POST" ? 503 : 204};
  });
  HttpClient http({}, loopback_egress());
  ASSERT_TRUE(http.start());
  ProactiveSetup setup(
      {.provisioning_url = service.url("/tenants"), .retry_for = 20min, .backoff = ten_minutes},
      *store_, http);
  start(setup);
  const auto id = create();
  ASSERT_TRUE(eventually([&] { return is_put_off(id); }));
  replace_worker(nullptr);
  EXPECT_FALSE(is_put_off(id)) << "a stop frees the lease";
  start(setup);
  ASSERT_TRUE(eventually([&] { return is_put_off(id); }));
  EXPECT_EQ(service.count(), 1U) << "a restart hastens no try";
  clock_.advance(13min);
  worker_->offer(id);
  ASSERT_TRUE(becomes(id, JobState::error)) << "a further try would begin after 20 minutes";
  EXPECT_NE(store_->jobs().get(id)->fail_reason.find("answered 503"), std::string::npos);
  std::set<std::string> keys;
  for (auto& request : service.requests()) keys.insert(request.headers["idempotency-key"]);
  EXPECT_EQ(service.count(), 3U);
  EXPECT_EQ(keys.size(), 2U) << "two tries under one key, and the withdrawal";
  replace_worker(nullptr);  // before what it uses
  http.stop();
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

class AwaitAnswersTest : public JobWorkerTest {};

TEST_F(AwaitAnswersTest, GathersAllAnswers) {
  std::jthread later;
  Gatherer steps(store_->jobs(), 3, [&](const Gatherer::Done& done) {
    done(1);
    later = std::jthread([done] {
      done(2);
      done(3);
    });
  });
  start(steps);
  EXPECT_TRUE(becomes(create(), JobState::done));
  replace_worker(nullptr);  // before what it uses
  EXPECT_EQ(steps.answers, (std::vector{1, 2, 3}));
}

TEST_F(AwaitAnswersTest, AnswersAfterAStopAreDropped) {
  std::atomic<bool> begun{false};
  Gatherer::Done late;
  Gatherer steps(store_->jobs(), 1, [&](Gatherer::Done done) {
    late = std::move(done);
    begun = true;
  });
  start(steps);
  const auto id = create();
  ASSERT_TRUE(eventually([&] { return begun.load(); }));
  replace_worker(nullptr);
  late(1);
  EXPECT_EQ(state(id), JobState::active);
  EXPECT_TRUE(steps.answers.empty());
}

}  // namespace
}  // namespace conversed::daemon
