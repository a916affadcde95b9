#include "store/jobs/jobs.h"

#include "store/shards/backlog.h"
#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::JobState;
using std::chrono::seconds;

class JobsTest : public StoreTest {
 protected:
  std::string create(const std::string& project = "project") {
    model::Job job;
    job.id = model::new_id();
    job.project_id = project;
    job.type = "proactiveSetup";
    job.name = "Set-up";
    job.total_steps = 3;
    job.created_at = clock_.now();
    created_ = jobs().create(job);
    return job.id;
  }
  Jobs& jobs() { return store_->jobs(); }

  model::Result<std::optional<KeptAnswer>> created_;
};

TEST_F(JobsTest, SecondSetUpOfAProjectNamesTheFirst) {
  const auto first = create();
  ASSERT_TRUE(created_);
  create();
  ASSERT_EQ(created_.error().code, Errc::conflict);
  EXPECT_EQ(created_.error().message, first);
  create("other");
  EXPECT_TRUE(created_);
  ASSERT_EQ(jobs().cancel(first)->state, JobState::cancelled);
  create();
  EXPECT_TRUE(created_) << "a cancelled set-up does not count";
}

TEST_F(JobsTest, OldestQueuedJobIsTold) {
  EXPECT_FALSE(read_backlog(store_->shards()).value().queued_job);
  const auto begin = clock_.now();
  const auto first = create();
  clock_.advance(seconds(9));
  create("other");
  EXPECT_EQ(read_backlog(store_->shards()).value().queued_job, begin);
  ASSERT_TRUE(jobs().lease(first, clock_.now() + seconds(30)));
  EXPECT_EQ(read_backlog(store_->shards()).value().queued_job, clock_.now())
      << "the first one runs";
}

TEST_F(JobsTest, ProgressAndStepNeverFall) {
  const auto id = create();
  const auto job = jobs().lease(id, clock_.now() + seconds(30));
  ASSERT_TRUE(job);
  EXPECT_EQ(job->state, JobState::active);
  ASSERT_TRUE(jobs().step(id, job->fencing_token,
                          {.progress = 60, .current_step = 2, .data = {{{"flow", "f"}}}}));
  ASSERT_TRUE(jobs().step(id, job->fencing_token, {.progress = 10, .current_step = 1, .data = {}}));
  const auto now = jobs().get(id);
  EXPECT_EQ(now->progress, 60);
  EXPECT_EQ(now->current_step, 2);
  EXPECT_EQ(now->data["flow"], "f");
  ASSERT_TRUE(jobs().finish(id, job->fencing_token, JobState::done, ""));
  EXPECT_EQ(jobs().get(id)->progress, 100);
  EXPECT_EQ(jobs().cancel(id).error().code, Errc::conflict);
}

TEST_F(JobsTest, WorkerWithAnOldLeaseCanNotWrite) {
  const auto id = create();
  const auto first = jobs().lease(id, clock_.now() + seconds(30));
  EXPECT_EQ(jobs().lease(id, clock_.now() + seconds(60)).error().code, Errc::conflict);
  EXPECT_TRUE(jobs().waiting(clock_.now(), 10)->empty());
  clock_.advance(seconds(31));
  EXPECT_EQ(jobs().waiting(clock_.now(), 10)->size(), 1U);
  const auto second = jobs().lease(id, clock_.now() + seconds(30));
  ASSERT_TRUE(second);
  EXPECT_GT(second->fencing_token, first->fencing_token);
  EXPECT_EQ(jobs().step(id, first->fencing_token, {}).error().code, Errc::conflict);
  EXPECT_EQ(jobs().finish(id, first->fencing_token, JobState::done, "").error().code,
            Errc::conflict);
  EXPECT_TRUE(jobs().renew(id, second->fencing_token, clock_.now() + seconds(60)));
}

TEST_F(JobsTest, CancellingJobEndsAndStaysEnded) {
  const auto id = create();
  const auto job = jobs().lease(id, clock_.now() + seconds(30));
  EXPECT_EQ(jobs().cancel(id)->state, JobState::cancelling);
  EXPECT_EQ(jobs().cancel(id)->state, JobState::cancelling);
  ASSERT_TRUE(jobs().finish(id, job->fencing_token, JobState::cancelled, ""));
  EXPECT_EQ(jobs().lease(id, clock_.now()).error().code, Errc::conflict);
  EXPECT_EQ(jobs().finish(id, job->fencing_token, JobState::done, "").error().code, Errc::conflict);
}

TEST_F(JobsTest, EndedJobForgetsItsFilter) {
  const auto begin = [&](std::string_view type) {
    const model::Job job{.id = model::new_id(),
                         .project_id = "project",
                         .type = std::string(type),
                         .name = "work",
                         .data = {{"filter", {{"userId", "ann"}}}, {"changed", 7}},
                         .created_at = clock_.now()};
    EXPECT_TRUE(jobs().create(job));
    return job.id;
  };
  const auto queued = begin(model::drop_deliveries);
  ASSERT_TRUE(jobs().cancel(queued));
  EXPECT_EQ(jobs().get(queued)->data, (nlohmann::json{{"changed", 7}}));
  const auto leased = begin(model::replay_dead_letters);
  const auto job = jobs().lease(leased, clock_.now() + seconds(30));
  EXPECT_TRUE(job->data.contains("filter"));
  ASSERT_TRUE(jobs().finish(leased, job->fencing_token, JobState::done, ""));
  EXPECT_EQ(jobs().get(leased)->data, (nlohmann::json{{"changed", 7}}));
}

TEST_F(JobsTest, StepsResultAndProgressAreOneTransaction) {
  const auto id = create();
  const auto job = jobs().lease(id, clock_.now() + seconds(30));
  const auto written = store_->committer().write_and_wait([&](Writer& writer) {
    writer.connection().run("INSERT INTO meta (name, value) VALUES ('made', 1)");
    return jobs().step(writer, id, job->fencing_token - 1, {.progress = 50});
  });
  EXPECT_EQ(written.error().code, Errc::conflict);
  const auto made = store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
    if (writer.connection().value<std::int64_t>("SELECT value FROM meta WHERE name = 'made'")) {
      return model::fail(Errc::internal, "the refused step left something behind");
    }
    return {};
  });
  EXPECT_TRUE(made);
}

TEST_F(JobsTest, ListShowsTheGivenProjectsNewestFirst) {
  const auto a = create("a");
  const auto b = create("b");
  create("c");
  const auto page = jobs().list({.project_ids = {"a", "b"}}, {.limit = 1});
  EXPECT_EQ(page->total, 2);
  ASSERT_EQ(page->items.size(), 1U);
  EXPECT_EQ(page->items.front().id, b);
  EXPECT_EQ(jobs().list({.project_ids = {"a"}, .state = JobState::done}, {})->total, 0);
}

TEST_F(JobsTest, StoredStatesAreThoseOfTheTable) {
  for (const auto& [from, to] : model::job_transitions) {
    for (const auto state : {from, to}) {
      const auto written =
          store_->committer().write_and_wait([&](Writer& writer) -> model::Result<void> {
            writer.connection().run(
                "INSERT INTO jobs (id, n, project_id, type, name, state, progress, current_step,"
                " total_steps, fail_reason, data, created_at, changed_at, fencing_token,"
                " lease_until) VALUES (:i, 1, :p, 't', '', :s, 0, 0, 0, '', 'null', 0, 0, 0, 0)",
                model::new_id(), model::new_id(), model::to_string(state));
            return model::fail(Errc::too_many, "undone");
          });
      EXPECT_EQ(written.error().code, Errc::too_many) << model::to_string(state);
    }
  }
}

}  // namespace
}  // namespace conversed::store
