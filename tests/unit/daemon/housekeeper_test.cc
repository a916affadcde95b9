#include "daemon/data/housekeeper.h"

#include <gtest/gtest.h>

#include <set>
#include <string>

#include "store/shards/backlog.h"
#include "store/sql/read.h"
#include "tests/support/receipt_step.h"
#include "tests/unit/store/fixture.h"

namespace conversed::daemon {
namespace {

using namespace std::chrono_literals;
using store::key_of;

class HousekeeperTest : public store::StoreTest {
 protected:
  static bool never() { return false; }

  TidyReport tidy_now() {
    auto report = tidy(*store_, settings_, clock_.now(), never);
    EXPECT_TRUE(report) << report.error().message;
    return report.value_or(TidyReport{});
  }

  // Stores a session with one output. The output has been delivered unless `delivery` says
  // otherwise.
  void say(const std::string& user, model::Delivery delivery = model::Delivery::none) {
    auto commit = store::turn(key_of(user), 0, 1, delivery);
    commit.after.started_at = commit.after.last_activity_at = clock_.now();
    for (auto& output : commit.outputs) output.created_at = clock_.now();
    ASSERT_EQ(commit_now(std::move(commit)), store::Outcome::committed);
  }

  void bury(const std::string& user) {
    auto commit = store::turn(key_of(user), 0, 1, model::Delivery::none);
    commit.outputs.clear();
    commit.dead_letters.push_back({model::new_id(), {model::new_id(), "inject", "", "{}"}, "why"});
    ASSERT_EQ(commit_now(std::move(commit)), store::Outcome::committed);
  }

  std::size_t letters() {
    return store_->first().dead_letters().list({.project_id = "project"}, 0, 1'000)->rows.size();
  }

  HousekeeperSettings settings_{.batch = 3};
};

TEST_F(HousekeeperTest, CountsOfEndedRampsAreDeleted) {
  auto commit = store::turn(key_of("ann"), 0, 1, model::Delivery::none);
  commit.ramps = {{"ended", store::RampUse::Version::ramped, 1, 0}};
  ASSERT_EQ(commit_now(std::move(commit)), store::Outcome::committed);
  const auto counts = [&] {
    return store::read(store_->first().database(),
                       [](store::Connection& connection) {
                         return connection.number("SELECT COUNT(*) FROM ramp_counts");
                       })
        .value();
  };
  EXPECT_EQ(counts(), 1);
  tidy_now();
  EXPECT_EQ(counts(), 0);
}

TEST_F(HousekeeperTest, ReceiptsGoByTheAgeOfTheirEvents) {
  settings_.receipts = std::chrono::days(1);
  const auto take = [&](const std::string& user) {
    auto commit = store::turn(key_of(user), 0, 1, model::Delivery::none);
    commit.receipts.push_back({model::new_id(clock_.now()), store::NewReceiptRow::First{},
                               tests::receipt_step({{"what", "turn"}})});
    commit.after.last_receipt = commit.receipts.back().input_id;
    EXPECT_EQ(commit_now(std::move(commit)), store::Outcome::committed);
  };
  for (int n = 0; n < 7; ++n) take("old" + std::to_string(n));
  clock_.advance(std::chrono::hours(25));
  take("new");
  EXPECT_EQ(tidy_now().receipts, 7);
  settings_.receipts = 0ms;
  EXPECT_EQ(tidy_now().receipts, 0) << "of the same millisecond";
  clock_.advance(1ms);
  EXPECT_EQ(tidy_now().receipts, 1) << "0 keeps none";
}

TEST_F(HousekeeperTest, NothingIsRemovedUnlessSettingsSaySo) {
  say("ann");
  bury("bob");
  clock_.advance(std::chrono::days(3'000));
  tidy_now();
  EXPECT_TRUE(*store_->first().sessions().load(key_of("ann")));
  EXPECT_EQ(letters(), 1U);
}

TEST_F(HousekeeperTest, TranscriptsGoWithTheirSessionsByBatches) {
  settings_.transcripts = std::chrono::days(1);
  for (int n = 0; n < 10; ++n) say("old" + std::to_string(n));
  clock_.advance(23h);
  say("young");
  clock_.advance(1h + 1ms);
  const auto transactions = store_->committer().transactions();
  const auto report = tidy_now();
  EXPECT_EQ(report.outputs, 10);
  EXPECT_EQ(report.sessions, 10);
  EXPECT_GE(store_->committer().transactions() - transactions, 7U)
      << "several batches, one transaction each";
  EXPECT_FALSE(*store_->first().sessions().load(key_of("old0")));
  EXPECT_TRUE(*store_->first().sessions().load(key_of("young")));
  EXPECT_EQ(store_->first().outbox().outputs(key_of("young"), 0, 10)->size(), 1U);
}

TEST_F(HousekeeperTest, PendingDeliveriesStay) {
  settings_.transcripts = std::chrono::days(1);
  say("ann", model::Delivery::pending);
  clock_.advance(std::chrono::days(2));
  EXPECT_EQ(tidy_now().sessions, 0);
  EXPECT_EQ(store::read_backlog(store_->shards()).value().deliveries, 1);
}

TEST_F(HousekeeperTest, SessionsOfADeadWebhookDelayNoOthers) {
  settings_.transcripts = std::chrono::days(1);
  settings_.batch = 1;
  say("ann", model::Delivery::pending);
  for (int n = 0; n < 10; ++n) say("old" + std::to_string(n));
  clock_.advance(std::chrono::days(2));
  EXPECT_EQ(tidy_now().outputs, 10);
  EXPECT_EQ(store::read_backlog(store_->shards()).value().deliveries, 1);
}

TEST_F(HousekeeperTest, SessionWithAPendingTimerStays) {
  settings_.transcripts = std::chrono::days(1);
  auto commit = store::turn(key_of("ann"), 0, 1, model::Delivery::none);
  commit.outputs.clear();
  commit.after.last_activity_at = clock_.now();
  model::PendingCall timer;
  timer.id = "timer";
  timer.session = commit.key;
  timer.due_at = clock_.now() + std::chrono::days(9);
  commit.calls.started.push_back(timer);
  ASSERT_EQ(commit_now(std::move(commit)), store::Outcome::committed);
  clock_.advance(std::chrono::days(2));
  EXPECT_EQ(tidy_now().sessions, 0);
  EXPECT_TRUE(*store_->first().sessions().load(key_of("ann")));
}

// A restart reads every record after the committed one again, finished or not.
TEST_F(HousekeeperTest, SessionWhoseRecordMayComeAgainStays) {
  settings_.transcripts = std::chrono::hours(1);
  settings_.batch = 10;
  for (const auto offset : {1, 2, 3, 4, 5}) {
    auto commit =
        store::turn(key_of("user" + std::to_string(offset)), 0, offset, model::Delivery::none);
    commit.after.started_at = commit.after.last_activity_at = clock_.now();
    for (auto& output : commit.outputs) output.created_at = clock_.now();
    ASSERT_EQ(commit_now(std::move(commit)), store::Outcome::committed);
  }
  std::set<std::int64_t> finished{1, 2, 4};
  settings_.finished = [&]() -> model::Result<store::Sessions::Finished> {
    return [&](const model::Position& at) { return finished.contains(at.offset); };
  };
  clock_.advance(2h);
  EXPECT_EQ(tidy_now().sessions, 3);
  EXPECT_TRUE(*store_->first().sessions().load(key_of("user3")));
  EXPECT_FALSE(*store_->first().sessions().load(key_of("user4")));
  finished = {3, 5};
  EXPECT_EQ(tidy_now().sessions, 2);
  settings_.finished = []() -> model::Result<store::Sessions::Finished> {
    return model::fail(model::Errc::unavailable, "the log is away");
  };
  EXPECT_FALSE(tidy(*store_, settings_, clock_.now(), never));
}

TEST_F(HousekeeperTest, DeadLettersGoByAge) {
  settings_.dead_letters = std::chrono::days(1);
  for (int n = 0; n < 7; ++n) bury("old" + std::to_string(n));
  clock_.advance(std::chrono::days(1));
  bury("young");
  clock_.advance(1ms);
  EXPECT_EQ(tidy_now().dead_letters, 7);
  EXPECT_EQ(letters(), 1U);
  clock_.advance(std::chrono::days(1));
  EXPECT_EQ(tidy_now().dead_letters, 1) << "the last dead letter goes, too";
}

TEST_F(HousekeeperTest, ExpiredAnswersGoWhateverTheSettings) {
  auto commit = store::turn(key_of("ann"), 0, 1, model::Delivery::none);
  for (int n = 0; n < 8; ++n) {
    commit.answers.kept.push_back({"input" + std::to_string(n), "{}", clock_.now() + 1h});
  }
  ASSERT_EQ(commit_now(std::move(commit)), store::Outcome::committed);
  EXPECT_EQ(tidy_now().answers, 0);
  clock_.advance(1h);
  EXPECT_EQ(tidy_now().answers, 8);
}

TEST_F(HousekeeperTest, ConversationsOfADeletedProjectAreErased) {
  say("ann");
  bury("bob");
  ASSERT_TRUE(store_->committer().write_and_wait([&](store::Writer& writer) {
    writer.connection().run("INSERT INTO removed_projects (id, removed_at) VALUES (:i, :t)",
                            "project", clock_.now());
  }));
  const auto report = tidy_now();
  EXPECT_EQ(report.deleted_projects.sessions, 2);
  EXPECT_FALSE(store_->first().sessions().load(key_of("ann"))->has_value());
  EXPECT_EQ(letters(), 0U);
}

TEST_F(HousekeeperTest, RoundStopsWhenAsked) {
  settings_.dead_letters = std::chrono::days(1);
  for (int n = 0; n < 9; ++n) bury("old" + std::to_string(n));
  clock_.advance(std::chrono::days(2));
  int asked = 0;
  const auto report = tidy(*store_, settings_, clock_.now(),
                           [&] { return store_->committer().healthy() && ++asked > 3; });
  ASSERT_TRUE(report);
  EXPECT_LT(report->dead_letters, 9);
}

}  // namespace
}  // namespace conversed::daemon
