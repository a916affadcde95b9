// Jobs that work on all dead letters or deliveries that fit a filter.
#include "daemon/jobs/bulk_work.h"

#include <algorithm>
#include <optional>
#include <string>

#include "store/conversation/filters.h"
#include "store/sql/sql.h"
#include "tests/unit/daemon/world.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using model::JobState;
using nlohmann::json;
using store::DeadLetters;
using store::DeadLetterState;
using store::Deliveries;
using Texts = std::vector<std::string>;

class BulkWorkTest : public World {
 protected:
  void SetUp() override {
    World::SetUp();
    import({{"web", "http://127.0.0.1:9/"}, { "app", "http://127.0.0.1:9/" }});
    work_ = std::make_unique<BulkWork>(
        *store_, clock_,
        BulkWorkPorts{.append = sink_.append(),
                      .deliver = [this](const auto& key) { delivered_.push_back(key.user_id); },
                      .retry = [this](const auto& key) { retried_.push_back(key.user_id); }});
  }
  void TearDown() override { stop(); }

  void start() {
    worker_ = std::make_unique<JobWorker>(JobWorkerSettings{.rescue_interval = 10ms},
                                          store_->jobs(), *work_, clock_);
    ASSERT_TRUE(worker_->start());
  }
  void stop() { worker_.reset(); }

  // Adds a dead letter of an inject with this text.
  void bury(const model::SessionKey& key, const std::string& text, const std::string& flow = "F",
            model::EventType type = model::EventType::inject) {
    model::Event event;
    event.id = model::new_id();
    event.type = type;
    event.session = key;
    event.accepted_at = clock_.now();
    event.text = text;
    auto commit = turn(key, {});
    commit.dead_letters = {{.id = model::new_id(),
                            .event = {event.id, std::string(model::to_string(type)),
                                      std::string(32, '7'), model::encode_value(event)},
                            .reason = "too many steps",
                            .flow = flow,
                            .flow_version = 1,
                            .node = "main/1"}};
    commit_now(std::move(commit));
  }
  std::string create(std::string_view type, const json& filter) {
    const model::Job job{.id = model::new_id(),
                         .project_id = project(),
                         .type = std::string(type),
                         .name = "work",
                         .data = {{"filter", filter}},
                         .created_at = clock_.now() + 1ms};
    EXPECT_TRUE(store_->jobs().create(job));
    return job.id;
  }
  model::Job ended(const std::string& id) {
    EXPECT_TRUE(eventually([&] { return model::is_final(store_->jobs().get(id)->state); }));
    return *store_->jobs().get(id);
  }
  model::Job run(std::string_view type, const json& filter) {
    const auto id = create(type, filter);
    start();
    auto job = ended(id);
    stop();
    return job;
  }
  std::vector<store::DeadLetter> letters(std::optional<DeadLetterState> state) {
    return store_->first()
        .dead_letters()
        .list({.project_id = project(), .state = state}, 0, 1'000)
        ->rows;
  }
  Texts appended() {
    Texts texts;
    for (const auto& event : sink_.events()) texts.push_back(*event.text);
    return texts;
  }
  // 60 outputs in one session.
  void say_much(const std::string& user) {
    for (int i = 0; i < 6; ++i) commit_now(turn(key(user), Texts(10, "text")));
  }
  std::vector<store::PendingDelivery> deliveries() {
    return store_->first()
        .deliveries()
        .list({.project_id = project(),
               .endpoints = {id_of("endpoints", "web"), id_of("endpoints", "app")}},
              {}, 1'000, clock_.now())
        ->rows;
  }

  EventSink sink_;
  std::vector<std::string> delivered_;
  std::vector<std::string> retried_;
  std::unique_ptr<BulkWork> work_;
  std::unique_ptr<JobWorker> worker_;
};

TEST_F(BulkWorkTest, ReplaysOfASessionKeepTheirOrder) {
  for (int i = 0; i < 250; ++i) {
    bury(key("ann"), "a" + std::to_string(i));
    if (i % 50 == 0) bury(key("bob"), "b" + std::to_string(i));
  }
  const auto job = run(model::replay_dead_letters, json::object());
  EXPECT_EQ(job.state, JobState::done) << job.fail_reason;
  EXPECT_EQ(job.progress, 100);
  EXPECT_EQ(job.data.at("changed"), 255);
  Texts of_ann = appended();
  std::erase_if(of_ann, [](const auto& text) { return text.front() != 'a'; });
  ASSERT_EQ(of_ann.size(), 250U);
  for (int i = 0; i < 250; ++i)
    EXPECT_EQ(of_ann[static_cast<std::size_t>(i)], "a" + std::to_string(i));
  const auto event = sink_.events().front();
  EXPECT_EQ(event.claim->kind, model::Claim::Kind::dead_letter);
}

TEST_F(BulkWorkTest, OnlyWhatFitsTheFilterIsDiscarded) {
  bury(key("ann"), "1", "Orders");
  bury(key("ann"), "2", "Returns");
  bury(key("ann", "app"), "3", "Orders");
  bury(key("bob"), "4", "Orders");
  const auto job = run(model::discard_dead_letters,
                       to_json(DeadLetters::Filter{.flow = "Orders", .session = key("ann")}));
  EXPECT_EQ(job.data.at("changed"), 1);
  ASSERT_EQ(letters(DeadLetterState::discarded).size(), 1U);
  EXPECT_EQ(letters(DeadLetterState::discarded)[0].flow, "Orders");
  const auto rest =
      run(model::discard_dead_letters,
          to_json(DeadLetters::Filter{.flow = "Orders", .endpoint_id = id_of("endpoints", "web")}));
  EXPECT_EQ(rest.data.at("changed"), 1);
  EXPECT_EQ(letters(DeadLetterState::fresh).size(), 2U);
}

TEST_F(BulkWorkTest, AWalkPastLettersThatDoNotFitIsFewTransactions) {
  bury(key("ann"), "1", "Orders");
  ASSERT_TRUE(store_->committer().write_and_wait([](store::Writer& writer) {
    writer.connection().run(
        "WITH RECURSIVE n (i) AS (SELECT 2 UNION ALL SELECT i + 1 FROM n WHERE i < 6000)"
        " INSERT INTO dead_letters SELECT 'letter ' || i, i, project_id, key, event_id, type,"
        " trace_id, value, output_seq, attempts, reason, flow, flow_version, node, state,"
        " created_at FROM dead_letters, n");
  }));
  const auto before = store_->committer().transactions();
  const auto job =
      run(model::discard_dead_letters, to_json(DeadLetters::Filter{.flow = "Returns"}));
  EXPECT_EQ(job.state, JobState::done) << job.fail_reason;
  EXPECT_EQ(job.data.at("changed"), 0);
  EXPECT_LT(store_->committer().transactions() - before, 20U) << "30 pages";
}

TEST_F(BulkWorkTest, LettersThatCanNotBeReplayedAreSkipped) {
  bury(key("ann"), "time-out", "F", model::EventType::time_out);
  bury(key("ann"), "inject");
  const auto job = run(model::replay_dead_letters, json::object());
  EXPECT_EQ(job.data.at("changed"), 1);
  EXPECT_EQ(job.data.at("skipped"), 1);
  EXPECT_EQ(
      job.data.at("reasons"),
      (json{{"nothing waits for the event (timeOut) any more, so it can only be discarded", 1}}));
  EXPECT_EQ(appended(), Texts{"inject"});
}

TEST_F(BulkWorkTest, ACrashAfterAppendsDoublesNoReplay) {
  bury(key("ann"), "1");
  bury(key("ann"), "2");
  sink_.fail(0, model::Errc::unavailable);
  const auto id = create(model::replay_dead_letters, json::object());
  // The first worker appends, and vanishes before its step is stored.
  sink_.fail(1, model::Errc::unavailable);
  start();
  ASSERT_TRUE(sink_.wait_for(1));
  EXPECT_EQ(ended(id).state, JobState::done);
  std::map<std::string, std::set<std::string>> claims;
  for (const auto& event : sink_.events()) claims[*event.text].insert(event.claim->id);
  ASSERT_EQ(claims.size(), 2U);
  for (const auto& [text, of_text] : claims) EXPECT_EQ(of_text.size(), 1U) << text;
}

TEST_F(BulkWorkTest, ACancelledJobKeepsWhatItHasDone) {
  for (int i = 0; i < 3; ++i) bury(key("ann"), std::to_string(i));
  const auto id = create(model::discard_dead_letters, json::object());
  ASSERT_TRUE(store_->jobs().lease(id, clock_.now() + 1h));
  ASSERT_TRUE(store_->jobs().cancel(id));
  start();
  EXPECT_EQ(ended(id).state, JobState::cancelled);
  EXPECT_EQ(letters(DeadLetterState::fresh).size(), 3U);
}

TEST_F(BulkWorkTest, DroppedDeliveriesAreThoseOfBeforeTheJob) {
  commit_now(turn(key("ann"), {"1", "2"}));
  commit_now(turn(key("bob", "app"), {"3"}));
  const auto id = create(model::drop_deliveries,
                         to_json(Deliveries::Filter{.endpoint_id = id_of("endpoints", "web")}));
  clock_.advance(1s);
  commit_now(turn(key("ann"), {"late"}));
  start();
  const auto job = ended(id);
  EXPECT_EQ(job.data.at("changed"), 2) << job.fail_reason;
  EXPECT_EQ(deliveries().size(), 2U);
  EXPECT_EQ(letters(DeadLetterState::discarded).size(), 2U);
}

TEST_F(BulkWorkTest, ARetryIsOneForASession) {
  commit_now(turn(key("ann"), {"1", "2"}));
  commit_now(turn(key("bob"), {"3"}));
  for (const auto& delivery : deliveries()) {
    model::Output output;
    output.id = delivery.output_id;
    output.seq = delivery.seq;
    store_->first().outbox().reschedule(delivery.key, output, clock_.now() + 1h, 3);
  }
  flush();
  const auto job = run(model::retry_deliveries, json{{"state", "waiting"}});
  EXPECT_EQ(job.data.at("changed"), 2) << job.fail_reason;
  for (const auto& delivery : deliveries()) {
    EXPECT_NE(delivery.state, store::DeliveryState::waiting) << delivery.output_id;
  }
  EXPECT_EQ(retried_, (Texts{"ann", "bob"}));
}

TEST_F(BulkWorkTest, ALongSessionIsRetriedOnce) {
  say_much("ann");
  commit_now(turn(key("bob"), {"last"}));
  const auto job = run(model::retry_deliveries, json::object());
  EXPECT_EQ(job.data.at("changed"), 2) << job.fail_reason;
  EXPECT_EQ(retried_, (Texts{"ann", "bob"}));
}

TEST_F(BulkWorkTest, DropsOfManyOutputsAreSmallTransactions) {
  say_much("ann");
  const auto job = run(model::drop_deliveries, json::object());
  EXPECT_EQ(job.data.at("changed"), 60) << job.fail_reason;
  EXPECT_EQ(delivered_, (Texts{"ann", "ann", "ann"})) << "at most 25 drops each";
  EXPECT_TRUE(deliveries().empty());
}

TEST_F(BulkWorkTest, AReplayOutlastsAnOutageOfTheLog) {
  bury(key("ann"), "1");
  sink_.fail(120, model::Errc::unavailable);
  const auto job = run(model::replay_dead_letters, json::object());
  EXPECT_EQ(job.state, JobState::done) << job.fail_reason;
  EXPECT_GT(job.fencing_token, 100);
  EXPECT_EQ(appended(), Texts{"1"});
}

TEST_F(BulkWorkTest, AJobThatAHundredLeasesDidNotBringForwardEndsWithAnError) {
  bury(key("ann"), "1");
  const auto id = create(model::replay_dead_letters, json::object());
  for (int n = 0; n < 100; ++n) ASSERT_TRUE(store_->jobs().lease(id, clock_.now()));
  start();
  EXPECT_EQ(ended(id).state, JobState::error);
}

TEST_F(BulkWorkTest, NothingToDoIsDone) {
  EXPECT_EQ(run(model::drop_deliveries, json::object()).state, JobState::done);
  EXPECT_EQ(run(model::replay_dead_letters, json::object()).data.at("changed"), 0);
}

TEST_F(BulkWorkTest, AFilterOfAnotherFormEndsTheJobWithAnError) {
  EXPECT_EQ(run(model::drop_deliveries, json{{"createdFromMs", "now"}}).state, JobState::error);
}

}  // namespace
}  // namespace conversed::daemon
