// Ramps of Flows: a share of the sessions runs another version than the Flow's own.
#include <nlohmann/json.hpp>

#include "store/assets/assets.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Errc;
using nlohmann::json;

class FlowRamps : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    organisation_ =
        store_->accounts().create_first_organisation("Acme", {.email = "root@example.com"})->id;
    root_ = store_->accounts().user_by_email(organisation_, "root@example.com")->id;
    const auto report = import(1);
    ASSERT_TRUE(report);
    project_ = (*report)["project"]["_id"];
    flow_ = (*report)["flows"][0]["_id"];
    ASSERT_EQ((*import(2, NewVersions::held))["flows"][0]["version"], 2);
  }
  Assets& assets() { return store_->assets(); }

  // Imports the Flow with a text that names the round.
  model::Result<json> import(int round, NewVersions versions = NewVersions::in_effect) {
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en"};
    bundle.flows = {
        {"Main", {{"name", "Main"}, {"nodes", json::array({{{"say", std::to_string(round)}}})}}}};
    return assets().import_bundle(organisation_, bundle, {}, root_, versions);
  }
  model::Result<RampInfo> set(std::int64_t version, std::int64_t share,
                              std::optional<std::int64_t> max_errors = {}) {
    return assets().set_ramp({flow_, version, share, max_errors, root_});
  }
  std::int64_t in_effect() { return (*assets().flow(flow_, 0))->version; }
  bool has(std::int64_t version) { return assets().flow(flow_, version)->has_value(); }
  std::vector<std::int64_t> shares() {
    std::vector<std::int64_t> list;
    const auto versions = assets().flow_versions(flow_);
    for (const auto& each : *versions) list.push_back(each.share);
    return list;
  }
  std::map<std::string, model::Ramp, std::less<>> running() {
    return assets().project_assets(project_)->ramps;
  }
  std::vector<AuditEntry> entries() {
    return store_->audit().list({organisation_, "", "stopFlowRamp"}, 0, 10)->rows;
  }

  // Commits Turns of the running ramp's version, or of the stable one.
  void count(std::int64_t turns, std::int64_t failures,
             RampUse::Version version = RampUse::Version::ramped) {
    ++sessions_;
    const auto key = key_of("u" + std::to_string(sessions_), project_);
    SessionCommit commit = turn(key, 0, sessions_, model::Delivery::none);
    commit.ramps = {{(*assets().ramp(flow_))->id, version, turns, failures}};
    ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  }

  std::string organisation_;
  std::string root_;
  std::string project_;
  std::string flow_;
  int sessions_ = 0;
};

TEST_F(FlowRamps, AHeldVersionIsNotInEffectUntilItsRampIsFinished) {
  EXPECT_EQ(in_effect(), 1);
  EXPECT_EQ((*import(2, NewVersions::held))["flows"][0]["version"], 2) << "it is there already";
  const auto generation = assets().generation();
  const auto begun = set(2, 10);
  ASSERT_TRUE(begun) << begun.error().message;
  EXPECT_GT(assets().generation(), generation) << "caches must take it up";
  EXPECT_EQ(begun->began_by, "root@example.com");
  EXPECT_EQ(begun->max_errors, usual_ramp_errors);
  EXPECT_EQ(running().at(flow_), (model::Ramp{begun->id, 2, 1, 10}));
  EXPECT_EQ(shares(), (std::vector<std::int64_t>{10, 90}));
  EXPECT_EQ(in_effect(), 1);
  EXPECT_EQ(set(2, 50, 7)->id, begun->id);
  EXPECT_EQ(set(2, 60)->max_errors, 7) << "the bound stays";
  const auto finished = set(2, 100);
  EXPECT_EQ(finished->ending, "finished");
  EXPECT_TRUE(running().empty());
  EXPECT_EQ(in_effect(), 2);
  EXPECT_EQ(shares(), (std::vector<std::int64_t>{100, 0}));
  EXPECT_EQ((*import(3))["flows"][0]["version"], 3);
}

TEST_F(FlowRamps, AreStoppedOnce) {
  EXPECT_EQ(assets().stop_ramp(flow_).error().code, Errc::conflict);
  ASSERT_TRUE(set(2, 10));
  EXPECT_EQ(assets().stop_ramp(flow_)->ending, "stopped");
  EXPECT_EQ(assets().stop_ramp(flow_).error().code, Errc::conflict);
  EXPECT_TRUE(running().empty());
  EXPECT_EQ(shares(), (std::vector<std::int64_t>{0, 100}));
  EXPECT_NE(set(2, 10)->id, "") << "a version that was taken back may be tried again";
  EXPECT_EQ((*assets().ramp(flow_))->ending, "");
}

TEST_F(FlowRamps, AreNotStoppedByACallerWhoSawTheRampOfAnotherVersion) {
  ASSERT_EQ((*import(3, NewVersions::held))["flows"][0]["version"], 3);
  ASSERT_TRUE(set(2, 10));
  const auto seen = (*assets().ramp(flow_))->version;
  // Another user gives version 3 to the share meanwhile.
  ASSERT_TRUE(assets().stop_ramp(flow_, 2));
  ASSERT_TRUE(set(3, 10));
  const auto late = assets().stop_ramp(flow_, seen);
  ASSERT_FALSE(late);
  EXPECT_EQ(late.error().code, Errc::conflict);
  EXPECT_EQ(running().at(flow_).version, 3);
  EXPECT_EQ(assets().stop_ramp(flow_, 3)->ending, "stopped");
}

TEST_F(FlowRamps, RefuseAThirdVersionUnlessItIsHeld) {
  ASSERT_TRUE(set(2, 10));
  const auto refused = import(3);
  EXPECT_EQ(refused.error().code, Errc::conflict);
  EXPECT_NE(refused.error().message.find("'Main' is in a ramp with version 2"), std::string::npos);
  EXPECT_FALSE(has(3)) << "nothing was imported";
  EXPECT_EQ((*import(1))["flows"][0]["version"], 1) << "the stable version stays";
  EXPECT_EQ((*import(2))["flows"][0]["version"], 2) << "the ramped version stays in its ramp";
  EXPECT_EQ(in_effect(), 1);
  EXPECT_EQ((*import(3, NewVersions::held))["flows"][0]["version"], 3);
  EXPECT_EQ(assets().roll_back(flow_, 1, root_).error().code, Errc::conflict);
  EXPECT_EQ(set(3, 10).error().code, Errc::conflict);
  EXPECT_EQ(running().at(flow_).version, 2);
}

TEST_F(FlowRamps, TakeOnlyAKeptVersionThatIsNotInEffect) {
  EXPECT_EQ(set(1, 10).error().code, Errc::conflict);
  EXPECT_EQ(set(3, 10).error().code, Errc::not_found);
  EXPECT_EQ(assets().set_ramp({"none", 1, 10}).error().code, Errc::not_found);
  EXPECT_FALSE(*assets().ramp(flow_));
}

TEST_F(FlowRamps, KeepTheirVersionsBeyondTheLastTwenty) {
  ASSERT_TRUE(set(2, 10));
  for (int round = 3; round <= 30; ++round) ASSERT_TRUE(import(round, NewVersions::held));
  EXPECT_TRUE(has(1)) << "in effect";
  EXPECT_TRUE(has(2)) << "in the ramp";
  EXPECT_FALSE(has(10));
  EXPECT_TRUE(has(11));
  ASSERT_TRUE(assets().stop_ramp(flow_));
  ASSERT_TRUE(import(31, NewVersions::held));
  EXPECT_TRUE(has(1));
  EXPECT_FALSE(has(2));
}

TEST_F(FlowRamps, AreTakenBackWhenTooManyTurnsFail) {
  ASSERT_TRUE(set(2, 10, 50));
  count(least_ramp_turns - 1, least_ramp_turns - 1);
  count(100, 100, RampUse::Version::stable);
  EXPECT_TRUE(assets().take_back_ramps()->empty()) << "too few Turns of the version";
  count(least_ramp_turns - 1, 0);
  EXPECT_TRUE(assets().take_back_ramps()->empty()) << "the bound is reached, not passed";
  count(1, 1);
  const auto ended = assets().take_back_ramps();
  ASSERT_EQ(ended->size(), 1U);
  EXPECT_EQ(ended->front().name, "Main");
  EXPECT_EQ(ended->front().ending, "errors");
  EXPECT_EQ(ended->front().ramped.turns, 2 * least_ramp_turns - 1);
  EXPECT_EQ(ended->front().ramped.failures, least_ramp_turns);
  EXPECT_EQ(ended->front().stable.failures, 100);
  EXPECT_TRUE(running().empty());
  EXPECT_TRUE(assets().take_back_ramps()->empty()) << "once";
  const auto noted = entries();
  ASSERT_EQ(noted.size(), 1U);
  EXPECT_EQ(noted[0].organisation_id, organisation_);
  EXPECT_EQ(noted[0].credential, "daemon");
  EXPECT_EQ(noted[0].object,
            "flowId=" + flow_ + ", name=Main, version=2, reason=20 of 39 Turns have failed");
  count(5, 5);
  EXPECT_EQ((*assets().ramp(flow_))->ramped.failures, least_ramp_turns)
      << "later Turns are not counted";
}

TEST_F(FlowRamps, ANewOneCountsFromTheBeginning) {
  ASSERT_TRUE(set(2, 10));
  count(3, 1);
  const auto former = (*assets().ramp(flow_))->id;
  ASSERT_TRUE(assets().stop_ramp(flow_));
  ASSERT_TRUE(set(2, 10));
  SessionCommit late = turn(key_of("late", project_), 0, 99, model::Delivery::none);
  late.ramps = {{former, RampUse::Version::ramped, 1, 1}};
  ASSERT_EQ(commit_now(std::move(late)), Outcome::committed);
  EXPECT_EQ((*assets().ramp(flow_))->ramped.turns, 0);
}

}  // namespace
}  // namespace conversed::store
