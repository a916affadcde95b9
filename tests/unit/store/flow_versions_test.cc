// The versions of a Flow that are kept, their authors, and the way back to a version.
#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/assets/assets.h"
#include "store/sql/sql.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Errc;
using nlohmann::json;

class FlowVersions : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    organisation_ =
        store_->accounts().create_first_organisation("Acme", {.email = "root@example.com"})->id;
    root_ = store_->accounts().user_by_email(organisation_, "root@example.com")->id;
  }
  Assets& assets() { return store_->assets(); }

  static json definition(const std::string& name, int round) {
    return {{"name", name}, {"nodes", json::array({{{"say", std::to_string(round)}}})}};
  }

  // Imports both Flows with texts that name the round.
  json import(int round) {
    model::Bundle bundle;
    bundle.project_name = "Shop";
    bundle.locales = {"en"};
    bundle.flows = {{"Main", definition("Main", round)}, {"Sub", definition("Sub", round)}};
    auto report = assets().import_bundle(organisation_, bundle, {}, root_);
    EXPECT_TRUE(report) << report.error().message;
    return report ? *report : json();
  }

  // Stores a session of the project that waits for a call, with this execution.
  void pin(const std::string& user, const std::string& project, const model::Execution& execution) {
    SessionCommit commit = turn(key_of(user, project), 0, 1, model::Delivery::none);
    commit.after.execution = execution;
    ASSERT_EQ(commit_now(std::move(commit)), Outcome::committed);
  }

  bool has(const std::string& flow, std::int64_t version) {
    return assets().flow(flow, version)->has_value();
  }

  std::string organisation_;
  std::string root_;
};

TEST_F(FlowVersions, AVersionThatASessionIsPinnedToIsKeptBeyondTheLastTwenty) {
  const auto report = import(1);
  const std::string project = report["project"]["_id"];
  const std::string main = report["flows"][0]["_id"];
  const std::string sub = report["flows"][1]["_id"];
  for (int round = 2; round <= 4; ++round) import(round);
  model::Execution execution;
  execution.flow_id = main;
  execution.flow_version = 2;
  execution.entered = {{"Sub", 3}};
  pin("ann", project, execution);
  for (int round = 5; round <= 30; ++round) import(round);
  for (std::int64_t version = 1; version <= 30; ++version) {
    EXPECT_EQ(has(main, version), version > 10 || version == 2) << version;
    EXPECT_EQ(has(sub, version), version > 10 || version == 3) << version;
  }
  // The execution ends. The next import removes its version.
  SessionCommit over = turn(key_of("ann", project), 1, 2, model::Delivery::none);
  ASSERT_EQ(commit_now(std::move(over)), Outcome::committed);
  import(31);
  EXPECT_FALSE(has(main, 2));
  EXPECT_FALSE(has(sub, 3));
  EXPECT_TRUE(has(main, 12));
}

TEST_F(FlowVersions, SessionsOfOtherProjectsPinNothing) {
  const auto report = import(1);
  const std::string main = report["flows"][0]["_id"];
  model::Execution execution;
  execution.flow_id = "other";
  execution.flow_version = 1;
  execution.entered = {{"Main", 1}};
  pin("ann", "another project", execution);
  for (int round = 2; round <= 22; ++round) import(round);
  EXPECT_FALSE(has(main, 1));
}

TEST_F(FlowVersions, AreListedWithAuthorAndTime) {
  const std::string main = import(1)["flows"][0]["_id"];
  const auto first = clock_.now();
  clock_.advance(std::chrono::hours(1));
  import(2);
  const auto versions = assets().flow_versions(main);
  ASSERT_EQ(versions->size(), 2U);
  EXPECT_EQ(versions->at(0).version, 2);
  EXPECT_EQ(versions->at(0).created_at, first + std::chrono::hours(1));
  EXPECT_EQ(versions->at(1).created_at, first);
  EXPECT_EQ(versions->at(1).created_by, "root@example.com");
  EXPECT_FALSE(versions->at(1).restored_from);
  EXPECT_EQ(assets().flow_versions("none").error().code, Errc::not_found);
}

TEST_F(FlowVersions, RollbackMakesANewVersionEqualToTheOld) {
  const auto report = import(1);
  const std::string main = report["flows"][0]["_id"];
  import(2);
  const auto generation = assets().generation();
  const auto made = assets().roll_back(main, 1, root_);
  ASSERT_TRUE(made) << made.error().message;
  EXPECT_EQ(made->version, 3);
  EXPECT_EQ(made->definition, (*assets().flow(main, 1))->definition);
  EXPECT_EQ((*assets().flow(main, 0))->definition, made->definition);
  EXPECT_GT(assets().generation(), generation) << "caches must not keep the old version";
  EXPECT_EQ(assets().flow_versions(main)->front().restored_from, 1);
  EXPECT_EQ((*assets().flow(report["flows"][1]["_id"], 0))->version, 2) << "the other Flow stays";
  // This version equals the old one already.
  EXPECT_EQ(assets().roll_back(main, 3, root_)->version, 3);
  EXPECT_EQ(assets().roll_back(main, 1, root_)->version, 3);
  EXPECT_EQ(assets().roll_back(main, 9, root_).error().code, Errc::not_found);
  EXPECT_EQ(assets().roll_back("none", 1, root_).error().code, Errc::not_found);
}

TEST_F(FlowVersions, PlacesOfSessionsComePageByPage) {
  const std::string project = import(1)["project"]["_id"];
  model::Execution execution;
  execution.state = {{"at", "ask"}};
  pin("ann", project, execution);
  ASSERT_EQ(commit_now(turn(key_of("bob", project), 0, 2)), Outcome::committed);
  const auto first = store_->first().sessions().places(project, 0, 1);
  ASSERT_EQ(first->size(), 1U);
  EXPECT_EQ(first->front().key.user_id, "bob");
  EXPECT_FALSE(first->front().execution);
  const auto second = store_->first().sessions().places(project, first->front().row, 9);
  ASSERT_EQ(second->size(), 1U);
  EXPECT_EQ(second->front().execution->state, execution.state);
}

TEST_F(FlowVersions, ExportHasSourcesAndNoSecrets) {
  model::Bundle bundle;
  bundle.project_name = "Shop";
  bundle.locales = {"de", "en"};
  bundle.flows = {{"Main", definition("Main", 1)}};
  bundle.connections = {{"crm", "httpBearer", {{"token", "very-secret"}}, {{"token", nullptr}}}};
  bundle.lexicons = {
      {"Cities", {"b", "a"}, {{"Rome", {"roma"}, {"a"}, nullptr}, {"Bonn", {}, {}, 5}}}};
  bundle.knowledge_stores = {{"Manual", {{"Z", {{"two", nullptr}, {"one", 1}}}, {"A", {}}}}};
  model::BundleEndpoint endpoint;
  endpoint.name = "web";
  endpoint.flow = "Main";
  endpoint.webhook = {{"http://127.0.0.1/hook", "very-secret", "", "http://127.0.0.1/${X}"}};
  bundle.endpoints = {endpoint};
  const auto report = assets().import_bundle(organisation_, bundle);
  ASSERT_TRUE(report);
  const auto exported = assets().export_bundle((*report)["project"]["_id"]);
  ASSERT_TRUE(exported) << exported.error().message;
  EXPECT_EQ(exported->locales, bundle.locales);
  EXPECT_TRUE(exported->connections.at(0).fields.is_null());
  EXPECT_TRUE(exported->connections.at(0).source.at("token").is_null());
  EXPECT_EQ(exported->lexicons.at(0).slots, bundle.lexicons[0].slots);
  EXPECT_EQ(exported->lexicons.at(0).entries.at(0).slots, std::vector<std::string>{"a"});
  EXPECT_EQ(exported->knowledge_stores.at(0).sources.at(0).name, "Z");
  EXPECT_EQ(exported->knowledge_stores.at(0).sources.at(0).chunks.at(1).text, "one");
  const auto& webhook = exported->endpoints.at(0).webhook.at(0);
  EXPECT_TRUE(webhook.secret.empty());
  EXPECT_TRUE(webhook.has_secret);
  EXPECT_EQ(webhook.url_source, "http://127.0.0.1/${X}");
  EXPECT_EQ(assets().export_bundle("none").error().code, Errc::not_found);
}

}  // namespace
}  // namespace conversed::store
