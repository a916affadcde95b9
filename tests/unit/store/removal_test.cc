#include "store/assets/removal.h"

#include <algorithm>
#include <nlohmann/json.hpp>

#include "store/assets/project_removal.h"
#include "tests/unit/store/fixture.h"

namespace conversed::store {
namespace {

using model::Errc;
using model::fail;
using model::Result;
using nlohmann::json;

model::BundleEndpoint endpoint_of(const std::string& name, const std::string& flow) {
  model::BundleEndpoint endpoint;
  endpoint.name = name;
  endpoint.flow = flow;
  endpoint.session_expiry = std::chrono::minutes(30);
  return endpoint;
}

model::BundleFlow flow_of(const std::string& name, const json& enters = json::array()) {
  return {name, {{"name", name}, {"nodes", json::array()}, {"enters", enters}}};
}

// The project's own Flow and Endpoint, and those that are deleted.
model::Bundle both() {
  model::Bundle bundle;
  bundle.project_name = "Shop";
  bundle.locales = {"en"};
  bundle.flows = {flow_of("Main"), flow_of("Old")};
  bundle.endpoints = {endpoint_of("old", "Main"), endpoint_of("web", "Main")};
  return bundle;
}

// Definitions of these tests name what they enter, and sessions where they wait.
const FlowReader reader{
    .standing =
        [](const json& flow_state, const std::optional<model::Execution>& execution) {
          std::vector<std::string> names;
          if (flow_state.is_object() && flow_state.contains("waiting")) {
            names.push_back(flow_state.at("waiting").at("flow"));
          }
          if (execution) names.push_back(execution->state.at("flow"));
          return names;
        },
    .entered = [](const std::string& definition) -> std::vector<std::string> {
      return json::parse(definition).at("enters");
    }};

class RemovalTest : public StoreTest {
 protected:
  void SetUp() override {
    StoreTest::SetUp();
    organisation_ =
        store_->accounts().create_first_organisation("Acme", {.email = "root@example.com"})->id;
    import(both());
  }

  void import(const model::Bundle& bundle) {
    const auto report = store_->assets().import_bundle(organisation_, bundle);
    ASSERT_TRUE(report) << report.error().message;
    project_ = report->at("project").at("_id");
    for (const auto& each : report->at("flows")) flows_[each.at("name")] = each.at("_id");
    for (const auto& each : report->at("endpoints")) endpoints_[each.at("name")] = each.at("_id");
  }

  Result<std::vector<PartUsage>> second_step(const PartsToDelete& parts) {
    return store_->committer().write_and_wait(
        [&](Writer& writer) { return Removals::remove(writer, parts); });
  }
  std::vector<PartUsage> removed(const Result<PartsToDelete>& parts) {
    EXPECT_TRUE(parts) << parts.error().message;
    if (!parts->usages.empty()) return parts->usages;
    const auto usages = second_step(*parts);
    EXPECT_TRUE(usages) << usages.error().message;
    return *usages;
  }
  Result<PartsToDelete> whole_project() {
    return parts_of_project(store_->removals(), project_, reader, clock_.now());
  }
  Result<std::vector<PartUsage>> second_step_of_project(
      const PartsToDelete& parts, Removals::Mode mode = Removals::Mode::real) {
    return store_->committer().write_and_wait(
        [&](Writer& writer) { return remove_project(writer, parts, mode); });
  }
  std::int64_t number(const std::string& sql, const std::string& value) {
    std::int64_t found = -1;
    EXPECT_TRUE(store_->committer().write_and_wait(
        [&](Writer& writer) { found = writer.connection().number(sql, value); }));
    return found;
  }
  Result<PartsToDelete> old_flow() {
    return store_->removals().flow(flows_.at("Old"), reader, clock_.now());
  }
  Result<PartsToDelete> old_endpoint() {
    return store_->removals().endpoint(endpoints_.at("old"), reader, clock_.now());
  }
  std::vector<PartUsage> remove_the_flow() { return removed(old_flow()); }
  std::vector<PartUsage> remove_the_endpoint() { return removed(old_endpoint()); }

  // Keeps the transaction only if nothing uses the parts.
  Removal prune(const model::Bundle& bundle, const ImportLimits& limits = {}) {
    const auto left_over = store_->removals().left_over(project_, bundle, reader, clock_.now());
    EXPECT_TRUE(left_over) << left_over.error().message;
    Removal removal;
    const auto done = store_->committer().write_and_wait([&](Writer& writer) -> Result<void> {
      const auto take = [&]() -> Result<void> {
        auto imported = store_->assets().import_bundle(writer, organisation_, bundle, limits);
        return imported ? Result<void>() : fail(imported.error());
      };
      auto pruned = Removals::prune(writer, *left_over, bundle, Removals::Mode::real, take);
      if (!pruned) return fail(pruned.error());
      removal = *std::move(pruned);
      if (!removal.usages.empty()) return fail(Errc::conflict, "used");
      return {};
    });
    EXPECT_EQ(done.has_value(), removal.usages.empty()) << (done ? "" : done.error().message);
    return removal;
  }
  std::vector<std::string> names_of_flows() {
    std::vector<std::string> names;
    const auto flows = store_->assets().flows(project_);
    for (const auto& flow : *flows) names.push_back(flow.name);
    return names;
  }
  void run(const std::string& sql, const std::string& value) {
    ASSERT_TRUE(store_->committer().write_and_wait(
        [&](Writer& writer) { writer.connection().run(sql, value); }));
  }

  SessionCommit session(const std::string& endpoint, const std::string& waits_in = "") {
    SessionCommit commit;
    commit.key = {project_, endpoints_.at(endpoint), "ann", "s" + std::to_string(++sessions_)};
    commit.after.key = commit.key;
    commit.after.position = {.epoch = 1, .partition = 0, .offset = sessions_};
    commit.after.last_activity_at = clock_.now();
    if (!waits_in.empty()) {
      commit.after.flow_state = {{"waiting", {{"flow", waits_in}, {"at", "ask"}}}};
    }
    return commit;
  }

  std::string organisation_;
  std::string project_;
  std::map<std::string, std::string> flows_;      // ids by name
  std::map<std::string, std::string> endpoints_;  // ids by name
  int sessions_ = 0;
};

TEST_F(RemovalTest, UnusedFlowsAndEndpointsAreDeleted) {
  EXPECT_EQ(remove_the_flow(), std::vector<PartUsage>());
  EXPECT_EQ(remove_the_endpoint(), std::vector<PartUsage>());
  const auto left = store_->assets().export_bundle(project_);
  ASSERT_TRUE(left);
  EXPECT_EQ(left->flows.size(), 1U);
  EXPECT_EQ(left->endpoints.size(), 1U);
  EXPECT_EQ(left->endpoints.front().name, "web");
  EXPECT_EQ(old_flow().error().code, Errc::not_found);
}

TEST_F(RemovalTest, EachUseOfAFlowKeepsIt) {
  const std::vector<PartUsage> by_endpoints{{"Flow", "Main", PartUsage::Kind::endpoint, "old"},
                                            {"Flow", "Main", PartUsage::Kind::endpoint, "web"}};
  EXPECT_EQ(removed(store_->removals().flow(flows_["Main"], reader, clock_.now())), by_endpoints);
  auto bundle = both();
  bundle.flows[0] = flow_of("Main", {"Old"});
  import(bundle);
  EXPECT_EQ(remove_the_flow(),
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::flow, "Main"}}));
  bundle = both();
  bundle.proactive = {{"journey", {{"flow", "Old"}}}};
  import(bundle);
  EXPECT_EQ(remove_the_flow(), (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::journey}}));
  import(both());
  run("UPDATE endpoints SET follow_up_flow_id = :f WHERE name = 'web'", flows_["Old"]);
  EXPECT_EQ(remove_the_flow(),
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::follow_up_flow, "web"}}));
  run("UPDATE endpoints SET follow_up_flow_id = NULL WHERE follow_up_flow_id = :f", flows_["Old"]);
  run("UPDATE endpoints SET error_flow_id = :f WHERE name = 'web'", flows_["Old"]);
  EXPECT_EQ(remove_the_flow(),
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::endpoint, "web"}}));
  run("UPDATE endpoints SET error_flow_id = NULL WHERE error_flow_id = :f", flows_["Old"]);
  ASSERT_EQ(commit_now(session("web", "Old")), Outcome::committed);
  ASSERT_EQ(commit_now(session("web", "Main")), Outcome::committed);
  auto busy = session("web");
  busy.after.execution.emplace();
  busy.after.execution->input_id = "input";
  busy.after.execution->pending_call_id = "call";
  busy.after.execution->state = {{"flow", "Old"}};
  ASSERT_EQ(commit_now(busy), Outcome::committed);
  EXPECT_EQ(remove_the_flow(),
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::sessions, "", 2}}));
}

TEST_F(RemovalTest, EachUseOfAnEndpointKeepsIt) {
  ASSERT_EQ(commit_now(session("web", "Main")), Outcome::committed);
  ASSERT_EQ(commit_now(session("old")), Outcome::committed);
  auto waiting = session("old", "Main");
  waiting.after.last_output_seq = 1;
  waiting.outputs.push_back({.id = model::new_id(),
                             .seq = 1,
                             .input_id = "input",
                             .text = "hello",
                             .data = nullptr,
                             .trace_id = model::new_trace_id(),
                             .delivery = model::Delivery::pending});
  model::FollowUp follow_up;
  follow_up.id = model::new_id();
  follow_up.session = waiting.key;
  follow_up.due_at = clock_.now();
  waiting.follow_ups.added.push_back(follow_up);
  ASSERT_EQ(commit_now(waiting), Outcome::committed);
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = waiting.key;
  schedule.text = "later";
  schedule.due_at = clock_.now() + std::chrono::hours(1);
  schedule.created_at = clock_.now();
  schedule.created_by = model::new_id();
  ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  EXPECT_EQ(remove_the_endpoint(),
            (std::vector<PartUsage>{{"Endpoint", "old", PartUsage::Kind::sessions, "", 1},
                                    {"Endpoint", "old", PartUsage::Kind::follow_ups, "", 1},
                                    {"Endpoint", "old", PartUsage::Kind::outputs, "", 1},
                                    {"Endpoint", "old", PartUsage::Kind::schedules, "", 1}}));
  EXPECT_TRUE(store_->assets().endpoint(endpoints_["old"])->has_value());
}

TEST_F(RemovalTest, ASessionKeepsAFlowUntilItExpiresOrItsTimerIsGone) {
  ASSERT_EQ(commit_now(session("web", "Old")), Outcome::committed);
  auto asked = session("web", "Old");
  model::PendingCall timer;
  timer.id = model::new_id();
  timer.session = asked.key;
  timer.due_at = clock_.now() + std::chrono::hours(1);
  asked.calls.started.push_back(timer);
  ASSERT_EQ(commit_now(asked), Outcome::committed);
  EXPECT_EQ(remove_the_flow(),
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::sessions, "", 2}}));
  clock_.advance(std::chrono::minutes(31));
  EXPECT_EQ(remove_the_flow(),
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::sessions, "", 1}}));
  ASSERT_TRUE(store_->first().sessions().reset(asked.key));
  EXPECT_EQ(remove_the_flow(), std::vector<PartUsage>());
}

TEST_F(RemovalTest, OnlyFollowUpsOfTheProjectThatRunAFlowKeepIt) {
  const auto follow_up = [&](const model::SessionKey& key, const std::string& flow) {
    auto commit = session("web");
    commit.key = commit.after.key = key;
    model::FollowUp later;
    later.id = model::new_id();
    later.session = key;
    later.due_at = clock_.now();
    later.text = "The id is " + flows_["Old"];
    later.plan.flow_id = flow;
    commit.follow_ups.added.push_back(later);
    EXPECT_EQ(commit_now(commit), Outcome::committed);
  };
  follow_up({model::new_id(), endpoints_["web"], "bob", "s"}, flows_["Old"]);
  follow_up({project_, endpoints_["web"], "ann", "s"}, flows_["Main"]);
  EXPECT_EQ(old_flow()->usages, std::vector<PartUsage>());
  follow_up({project_, endpoints_["web"], "cleo", "s"}, flows_["Old"]);
  EXPECT_EQ(remove_the_flow(),
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::follow_ups, "", 1}}));
}

TEST_F(RemovalTest, AllSessionsAreReadPageByPage) {
  for (int i = 0; i < 999; ++i) {
    store_->committer().submit(session("web", "Main"), [](Outcome, const auto&) {});
  }
  ASSERT_EQ(commit_now(session("web", "Main")), Outcome::committed);
  EXPECT_EQ(old_flow()->usages, std::vector<PartUsage>());
  ASSERT_EQ(commit_now(session("web", "Old")), Outcome::committed);
  EXPECT_EQ(remove_the_flow(),
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::sessions, "", 1}}));
}

TEST_F(RemovalTest, AUseThatBeginsBetweenTheStepsKeepsThePart) {
  const auto flow = old_flow();
  auto bundle = both();
  bundle.flows[0] = flow_of("Main", {"Old"});
  import(bundle);
  EXPECT_EQ(second_step(*flow).error().code, Errc::conflict) << "a Flow may enter it now";
  import(both());
  const auto endpoint = old_endpoint();
  ASSERT_TRUE(endpoint);
  EXPECT_EQ(endpoint->usages, std::vector<PartUsage>());
  auto answered = session("old");
  answered.after.last_output_seq = 1;
  answered.outputs.push_back({.id = model::new_id(),
                              .seq = 1,
                              .input_id = "input",
                              .text = "hello",
                              .data = nullptr,
                              .trace_id = model::new_trace_id(),
                              .delivery = model::Delivery::pending});
  ASSERT_EQ(commit_now(answered), Outcome::committed);
  EXPECT_EQ(*second_step(*endpoint),
            (std::vector<PartUsage>{{"Endpoint", "old", PartUsage::Kind::outputs, "", 1}}));
  EXPECT_TRUE(store_->assets().endpoint(endpoints_["old"])->has_value());
}

TEST_F(RemovalTest, ADeletedEndpointGetsNoSchedule) {
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = session("old").key;
  schedule.text = "later";
  schedule.due_at = clock_.now() + std::chrono::hours(1);
  schedule.created_at = clock_.now();
  schedule.created_by = model::new_id();
  EXPECT_EQ(remove_the_endpoint(), std::vector<PartUsage>());
  EXPECT_EQ(store_->first().schedules().create(schedule, std::nullopt).error().code,
            Errc::not_found);
}

TEST_F(RemovalTest, AnImportThatPrunesKeepsTheFollowUpFlowThatTheSetUpHasMade) {
  run("UPDATE endpoints SET follow_up_flow_id = :f WHERE name = 'web'", flows_["Old"]);
  auto less = both();
  less.flows.pop_back();
  const auto removal = prune(less);
  EXPECT_EQ(removal.usages, std::vector<PartUsage>());
  EXPECT_EQ(removal.parts, std::vector<RemovedPart>());
  EXPECT_EQ(names_of_flows(), (std::vector<std::string>{"Main", "Old"}));
  less.proactive = {{"journey", {{"flow", "Main"}}}};
  EXPECT_EQ(prune(less).usages,
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::follow_up_flow, "web"}}));
}

TEST_F(RemovalTest, AnImportThatPrunesMayReplaceATokenAtTheQuotaAndRenameAnEndpoint) {
  auto bundle = both();
  bundle.tokens = {{"one", "custom", "x"}, {"two", "custom", "x"}};
  bundle.endpoints[0].url_token = std::string(64, 'a');
  import(bundle);
  bundle.tokens[0].label = "three";
  bundle.endpoints[0].name = "renamed";
  const auto removal = prune(bundle, {.tokens = 2});
  EXPECT_EQ(removal.parts, (std::vector<RemovedPart>{{"Endpoint", "old"}, {"Token", "one"}}));
  const auto found = store_->assets().endpoint_by_token(std::string(64, 'a'));
  ASSERT_TRUE(found->has_value());
  EXPECT_EQ((*found)->name, "renamed");
}

TEST_F(RemovalTest, AnImportThatPrunesLeavesWhatItsBundleNames) {
  auto bundle = both();
  bundle.members = {{"ann@example.com", "Ann", {"projectAdmin"}, {}}};
  bundle.tokens = {{"old", "custom", "x"}, {"shop", "custom", "x"}};
  bundle.connections = {{"crm", "httpBearer", {{"token", "t"}}, {{"token", "${T}"}}},
                        {"old", "httpBearer", {{"token", "t"}}, {{"token", "${T}"}}}};
  bundle.lexicons = {{"Cities", {"city", "town"}, {{"Paris", {}, {"city"}, nullptr}}},
                     {"Old", {"old"}, {{"Rome", {}, {"old"}, nullptr}}}};
  bundle.knowledge_stores = {{"Manual", {{"FAQ", {{"a", nullptr}}}, {"Old", {{"b", nullptr}}}}},
                             {"Old", {{"Old", {{"c", nullptr}}}}}};
  import(bundle);
  auto less = bundle;
  less.members.clear();
  less.tokens.erase(less.tokens.begin());
  less.connections.pop_back();
  less.lexicons.pop_back();
  less.lexicons[0].slots = {"city"};
  less.knowledge_stores.pop_back();
  less.knowledge_stores[0].sources.pop_back();
  less.flows.pop_back();
  less.endpoints.erase(less.endpoints.begin());
  const auto removal = prune(less);
  EXPECT_EQ(removal.usages, std::vector<PartUsage>());
  EXPECT_EQ(removal.parts, (std::vector<RemovedPart>{{"Flow", "Old"},
                                                     {"Endpoint", "old"},
                                                     {"Token", "old"},
                                                     {"Connection", "old"},
                                                     {"lexicon", "Old"},
                                                     {"knowledge store", "Old"}}));
  const auto left = store_->assets().export_bundle(project_);
  ASSERT_TRUE(left) << left.error().message;
  EXPECT_EQ(left->members.size(), 1U) << "members stay";
  EXPECT_EQ(left->tokens.size(), 1U);
  EXPECT_EQ(left->connections.size(), 1U);
  ASSERT_EQ(left->lexicons.size(), 1U);
  EXPECT_EQ(left->lexicons[0].slots, std::vector<std::string>{"city"});
  ASSERT_EQ(left->knowledge_stores.size(), 1U);
  EXPECT_EQ(left->knowledge_stores[0].sources.size(), 1U);
  EXPECT_EQ(store_->assets().count_chunks(organisation_).value(), 1);
}

TEST_F(RemovalTest, AnImportWhoseLeftOversAreInUseChangesNothing) {
  ASSERT_EQ(commit_now(session("web", "Old")), Outcome::committed);
  auto less = both();
  less.flows.pop_back();
  less.flows.push_back(flow_of("New"));
  less.endpoints.erase(less.endpoints.begin());
  EXPECT_EQ(prune(less).usages,
            (std::vector<PartUsage>{{"Flow", "Old", PartUsage::Kind::sessions, "", 1}}));
  const auto left = store_->assets().export_bundle(project_);
  ASSERT_EQ(left->flows.size(), 2U);
  EXPECT_EQ(left->flows[1].name, "Old");
  EXPECT_EQ(left->endpoints.size(), 2U);
}

TEST_F(RemovalTest, ErasureFindsSessionsOfADeletedEndpoint) {
  const auto over = session("old");
  ASSERT_EQ(commit_now(over), Outcome::committed);
  EXPECT_EQ(remove_the_endpoint(), std::vector<PartUsage>());
  const auto listed = store_->first().sessions().list(project_, {.user_id = "ann"}, 0, 10);
  ASSERT_EQ(listed->rows.size(), 1U);
  const auto erased = store_->first().user_data().erase(
      {project_, "ann"},
      {.finished = [](const model::Position&) { return true; }, .ended = {}, .forget_keys = {}});
  ASSERT_TRUE(erased) << erased.error().message;
  EXPECT_EQ(erased->sessions, 1);
  EXPECT_FALSE(store_->first().sessions().load(over.key)->has_value());
}

// A part of each kind.
model::Bundle of_everything() {
  auto bundle = both();
  bundle.tokens = {{"name", "custom", "the Shop"}};
  bundle.connections = {{"crm", "httpBearer", {{"token", "t"}}, {{"token", "${T}"}}}};
  bundle.lexicons = {{"Cities", {"city"}, {{"Paris", {}, {"city"}, nullptr}}}};
  bundle.knowledge_stores = {{"Manual", {{"FAQ", {{"Open till eight.", nullptr}}}}}};
  return bundle;
}

TEST_F(RemovalTest, AProjectIsDeletedWithAllItsPartsAndNoOther) {
  auto other = of_everything();
  other.project_name = "Neighbor";
  other.endpoints.clear();
  import(other);
  const auto neighbor = project_;
  import(of_everything());
  const auto parts = whole_project();
  ASSERT_TRUE(parts) << parts.error().message;
  EXPECT_EQ(parts->usages, std::vector<PartUsage>());
  const auto deleted = second_step_of_project(*parts);
  ASSERT_TRUE(deleted) << deleted.error().message;
  EXPECT_EQ(*deleted, std::vector<PartUsage>());
  for (const char* table : {"endpoints", "flows", "tokens", "connections", "lexicons",
                            "knowledge_stores", "locales", "members", "journeys"}) {
    EXPECT_EQ(
        number("SELECT COUNT(*) FROM " + std::string(table) + " WHERE project_id = :p", project_),
        0)
        << table;
  }
  EXPECT_EQ(number("SELECT COUNT(*) FROM projects WHERE id = :i", project_), 0);
  EXPECT_EQ(number("SELECT COUNT(*) FROM knowledge_chunks WHERE text = :t", "Open till eight."), 1);
  const auto kept = store_->assets().export_bundle(neighbor);
  ASSERT_TRUE(kept) << kept.error().message;
  EXPECT_EQ(kept->lexicons.size(), 1U);
  EXPECT_EQ(kept->flows.size(), 2U);
  EXPECT_EQ(second_step_of_project(*parts).error().code, Errc::not_found);
  const auto gone = project_;
  import(of_everything());
  EXPECT_NE(project_, gone) << "the name is free";
}

TEST_F(RemovalTest, EachUseOfAProjectKeepsIt) {
  ASSERT_EQ(commit_now(session("web", "Main")), Outcome::committed);
  auto late = session("old");
  late.follow_ups.added.push_back(
      {.id = model::new_id(), .session = late.key, .text = "Still there?"});
  ASSERT_EQ(commit_now(std::move(late)), Outcome::committed);
  auto says = session("old");
  says.after.last_output_seq = 1;
  says.outputs.push_back({.id = model::new_id(),
                          .seq = 1,
                          .input_id = model::new_id(),
                          .text = "hello",
                          .delivery = model::Delivery::pending});
  ASSERT_EQ(commit_now(std::move(says)), Outcome::committed);
  model::Schedule schedule;
  schedule.id = model::new_id();
  schedule.session = {project_, endpoints_.at("web"), "ann", "s"};
  schedule.created_by = model::new_id();
  ASSERT_TRUE(store_->first().schedules().create(schedule, std::nullopt));
  const auto parts = whole_project();
  ASSERT_TRUE(parts) << parts.error().message;
  const std::vector<PartUsage> all{{"Endpoint", "old", PartUsage::Kind::follow_ups, "", 1},
                                   {"Endpoint", "web", PartUsage::Kind::sessions, "", 1},
                                   {"Endpoint", "old", PartUsage::Kind::outputs, "", 1},
                                   {"Endpoint", "web", PartUsage::Kind::schedules, "", 1}};
  for (const auto mode : {Removals::Mode::dry_run, Removals::Mode::real}) {
    const auto usages = second_step_of_project(*parts, mode);
    ASSERT_TRUE(usages) << usages.error().message;
    EXPECT_TRUE(std::ranges::is_permutation(*usages, all));
  }
  EXPECT_EQ(names_of_flows().size(), 2U) << "nothing is deleted";
}

TEST_F(RemovalTest, AJobThatHasNotEndedKeepsItsProject) {
  const auto id = model::new_id();
  ASSERT_TRUE(store_->jobs().create(
      {.id = id, .project_id = project_, .type = "replayDeadLetters", .name = "again"}));
  const auto parts = whole_project();
  EXPECT_EQ(second_step_of_project(*parts).error().code, Errc::conflict);
  ASSERT_TRUE(store_->jobs().cancel(id));
  EXPECT_EQ(second_step_of_project(*parts, Removals::Mode::dry_run), std::vector<PartUsage>());
  EXPECT_EQ(names_of_flows().size(), 2U) << "a dry run deletes nothing";
  EXPECT_EQ(second_step_of_project(*parts), std::vector<PartUsage>());
}

TEST_F(RemovalTest, AProjectWithANewEndpointIsSearchedAgain) {
  const auto parts = whole_project();
  auto more = both();
  more.endpoints.push_back(endpoint_of("app", "Main"));
  import(more);
  EXPECT_EQ(second_step_of_project(*parts).error().code, Errc::conflict);
  EXPECT_EQ(second_step_of_project(*whole_project()), std::vector<PartUsage>());
}

}  // namespace
}  // namespace conversed::store
